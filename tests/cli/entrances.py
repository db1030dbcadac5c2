"""Where text of a stranger comes in: each command line that reads a file or a word, with a sound document of its kind.

`@@` in a document marks where a hostile value can stand in place of a sound one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shardwright.agent.evaluation.solvers.tape import RecordedOptions
from shardwright.agent.fix_api import fixed
from shardwright.agent.loop.agent import AgentOptions
from shardwright.agent.pipeline import plan
from shardwright.tools.autofix.certificate import certificate
from shardwright.tools.autofix.reading import read_text_anyhow

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "docs" / "demos" / "dense-careless.json"
BENCHES = HERE.parent / "cases" / "bench_outputs.json"
MARK = "@@"
WORDS = "Serve Llama-3.1-8B on 1 H100, 1k in, 100 out"


@dataclass(frozen=True)
class Entrance:
    """A command line, in which FILE is the path of a document, PLAN that of a sound plan and TEXT the text itself."""

    arguments: tuple[str, ...]
    name: str
    documents: tuple[str, ...]
    environment: Mapping[str, str] | None = None


def marked(document: Any, *place: str | int) -> str:
    """`document` as a JSON text with the mark for the value at `place`, which may be new there."""
    document = json.loads(json.dumps(document))
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = MARK
    return json.dumps(document).replace(f'"{MARK}"', MARK)


@cache
def plan_document() -> dict[str, Any]:
    """A sound plan."""
    made = plan(WORDS).plan
    assert made is not None
    return made.model_dump(mode="json")


def plan_text() -> str:
    """The same as JSON."""
    return json.dumps(plan_document())


PLAN_PLACES: tuple[tuple[str | int, ...], ...] = (
    ("model", "config", "own"), ("model", "config", "hidden_size"), ("model", "name"), ("hardware", "accelerator"),
    ("workload", "input_tokens"), ("reasoning", 0, "decision"), ("nodes", 1, "id"), ("nodes", 1, "own"),
    ("nodes", 1, "parent"), ("edges", 0, "source"), ("construction",), ("own",), ("nodes",), ("strategy", "dp"),
    ("policy", "relaxations"), ("version",),
)  # fmt: skip


def _plans() -> tuple[str, ...]:
    return tuple(marked(plan_document(), *place) for place in PLAN_PLACES)


@cache
def _certificates() -> tuple[str, ...]:
    broken = json.loads(json.dumps(plan_document()))
    broken["strategy"]["gpu_count"] = 3
    text = json.dumps(broken)
    own = certificate(text, fixed(read_text_anyhow(text), None, safe_only=False, rules=None))
    places: list[tuple[str | int, ...]] = [(name,) for name in own]
    places += [("own",), ("read", "model", "name"), ("read", "own"), ("fixes", 0, "patch"), ("fixes", 0, "rule")]
    places += [("report", "own"), ("fixes", 0, "patch", 0, "value"), ("fixes", 0, "patch", 0, "path")]
    return tuple(marked(own, *place) for place in places)


def _transcripts() -> tuple[str, ...]:
    own = json.loads(DEMO.read_text(encoding="utf-8"))
    places: list[tuple[str | int, ...]] = [("own",), ("setup", "request"), ("steps", 0, "data", "own"), ("version",)]
    places += [("steps", 0, "kind"), ("setup", "intent", "model", "config", "own"), ("result", "plan_hash")]
    reply = next(at for at, step in enumerate(own["steps"]) if step["kind"] == "reply")
    places += [("steps", reply, "data", name) for name in own["steps"][reply]["data"]]
    return tuple(marked(own, *place) for place in places)


_CONFIG = dict(plan_document()["model"]["config"])
_SWEEP = {
    "models": ["llama-3.1-8b"], "hardware": ["1x1:h100-sxm"], "workloads": [{"name": "a", "input_tokens": 64,
    "output_tokens": 8}],
}  # fmt: skip
_CASE = {"request": WORDS, "strategy": "TP1"}
_SCRIPT = {"replies": {"*": ["TP1"]}}
_KINDS = [{"name": "a", "weight": 1, "input_tokens": 64, "output_tokens": 8}]
_CALIBRATION = {"format": "shardwright/calibration", "version": "1", "name": "own", "kernels": [], "engines": []}
_REPORT = {"format": "shardwright/eval", "version": "1", "dataset_hash": "", "solver": "a", "is_deterministic": True,
           "results": []}  # fmt: skip
_BRIEF = {"model": "llama-3.1-8b", "hardware": {"gpus": 1, "gpu": "H100"}, "input tokens": 64, "output tokens": 8}
_RECORDING = {
    "model": "m", "transport_attempts": 1, "max_answer_bytes": 1000,
    "options": RecordedOptions.of(AgentOptions()).model_dump(mode="json"),
}  # fmt: skip
_CSV = "id,model,gpu,tp,isl,osl,concurrency_or_batch,metric,value\na,llama-3.1-8b,h100-sxm,1,64,8,1,tpot_ms,@@\n"
_ASKS = ("--hardware", "1x1:h100-sxm", "--input-tokens", "64", "--output-tokens", "8")
_YAML = "model: llama-3.1-8b\nhardware: {gpus: 1, gpu: H100}\ninput tokens: 64\noutput tokens: @@\n"


def _at(document: Any, *places: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(marked(document, *place) for place in places)


def _of_bench() -> tuple[str, ...]:
    own = json.loads(BENCHES.read_text(encoding="utf-8"))["plain"]["vllm"]
    return _at(own, ("own",), ("num_prompts",), ("model_id",))


def entrances() -> dict[str, Entrance]:
    """Every entrance by its name."""
    plans, case = _plans(), _at(_CASE, ("request",), ("strategy",), ("own",), ("tags",))
    briefs = _at(_BRIEF, ("model",), ("own",), ("hardware", "gpus"), ("input tokens",), ("hardware",))
    configs = _at(_CONFIG, ("own",), ("hidden_size",), ("model_type",))
    sweeps = _at(_SWEEP, ("models",), ("models", 0), ("own",), ("workloads", 0, "name"), ("hardware",))
    sweeps += _at({**_SWEEP, "models": [_CONFIG]}, ("models", 0, "own"))
    script = _at(_SCRIPT, ("replies",), ("own",), ("about",), ("replies", "*", 0))
    settings = ('[endpoint]\nmodel = @@\nbase_url = "http://127.0.0.1:9/v1"\n', "[endpoint]\nheaders = {a = @@}\n")
    return {
        "validate": Entrance(("validate", "FILE"), "plan.json", plans),
        "validate json": Entrance(("validate", "FILE", "--format", "json"), "plan.json", plans),
        "validate sarif": Entrance(("validate", "FILE", "--format", "sarif"), "plan.json", plans),
        "estimate": Entrance(("estimate", "FILE"), "plan.json", plans),
        "estimate json": Entrance(("estimate", "FILE", "--format", "json"), "plan.json", plans),
        "expand": Entrance(("expand", "FILE", "--fold", "--format", "json"), "plan.json", plans),
        "expand dot": Entrance(("expand", "FILE", "--fold", "--dot"), "plan.json", plans),
        "compare A": Entrance(("compare", "FILE", "PLAN"), "plan.json", plans),
        "compare B": Entrance(("compare", "PLAN", "FILE", "--format", "json"), "plan.json", plans),
        "fix": Entrance(("fix", "FILE", "-o", "OUT", "--certificate", "OUT2"), "plan.json", plans),
        "fix json": Entrance(("fix", "FILE", "--format", "json"), "plan.json", plans),
        "fix diff": Entrance(("fix", "FILE", "--diff"), "plan.json", plans),
        "fix text": Entrance(("fix", "FILE"), "answer.txt", ("I propose:\n```json\n{'strategy': {'dp': @@}}\n```\n",)),
        "fix yaml": Entrance(("fix", "FILE"), "a.yaml", ("strategy:\n  dp: @@\n  own: 1\nmodel:\n  name: x\n",)),
        "fix toml": Entrance(("fix", "FILE"), "a.toml", ("[strategy]\ndp = @@\n[model]\nname = 'x'\n",)),
        "verify": Entrance(("verify", "FILE"), "certificate.json", _certificates()),
        "brief json": Entrance(("plan", "--brief", "FILE"), "brief.json", briefs),
        "brief yaml": Entrance(("plan", "--brief", "FILE"), "brief.yaml", (_YAML, "own: @@\n" + _YAML)),
        "brief words": Entrance(("plan", "--brief", "FILE"), "brief.md", (f"{WORDS}\n\nTeam: @@\n",)),
        "config": Entrance(("plan", "--model", "FILE", *_ASKS), "config.json", configs),
        "config in a call": Entrance(("plan", "--model", "TEXT", *_ASKS), "config.json", configs),
        "models": Entrance(("models", "FILE"), "config.json", configs),
        "models in a call": Entrance(("models", "TEXT"), "config.json", configs),
        "request": Entrance(("plan", "TEXT"), "request.txt", (f"{WORDS} @@", "@@")),
        "search request": Entrance(("search", "TEXT"), "request.txt", (f"{WORDS} @@",)),
        "fix request": Entrance(("fix", "PLAN", "--request", "TEXT"), "request.txt", (f"{WORDS} @@",)),
        "explain": Entrance(("explain", "TEXT"), "question.txt", ("why @@",)),
        "rules": Entrance(("rules", "TEXT"), "rule.txt", ("TP@@", "@@")),
        "hardware": Entrance(("hardware", "TEXT"), "card.txt", ("h100 @@", "@@")),
        "cluster": Entrance(("plan", "--model", "llama-3.1-8b", "--hardware", "TEXT"), "c.txt", ("1x1:@@", "@@")),
        "compare words": Entrance(("compare", "PLAN", "TEXT"), "words.txt", ("TP2 @@",)),
        "mix": Entrance(("plan", "--model", "llama-3.1-8b", *_ASKS, "--mix", "FILE"), "mix.json",
                        (*_at(_KINDS, (0, "name"), (0, "own"), (0, "weight")), "@@")),
        "mix yaml": Entrance(("plan", "--model", "llama-3.1-8b", *_ASKS, "--mix", "FILE"), "mix.yaml",
                             ("- {name: @@, weight: 1, input_tokens: 64, output_tokens: 8}\n",)),
        "sweep": Entrance(("sweep", "FILE", "--jobs", "1"), "sweep.json", sweeps),
        "sweep yaml": Entrance(("sweep", "FILE", "--jobs", "1"), "sweep.yaml",
                               ('models: [@@]\nhardware: ["1x1:h100-sxm"]\n'
                                "workloads: [{name: a, input_tokens: 64, output_tokens: 8}]\n",)),
        "eval": Entrance(("eval", "FILE", "--jobs", "1"), "cases.json", case),
        "eval lines": Entrance(("eval", "FILE", "--jobs", "1"), "cases.jsonl",
                               tuple(f"{json.dumps(_CASE)}\n{one}\n" for one in case)),
        "eval baseline": Entrance(("eval", "CASES", "--jobs", "1", "--baseline", "FILE"), "report.json",
                                  _at(_REPORT, ("own",), ("solver",), ("results",), ("version",))),
        "eval script": Entrance(("eval", "CASES", "--jobs", "1", "--solver", "scripted:FILE"), "script.json", script),
        "eval cassette": Entrance(("eval", "CASES", "--jobs", "1", "--solver", "cassette:FOLDER"), "recording.json",
                                  _at(_RECORDING, ("own",), ("model",), ("options", "limits"))),
        "eval journal": Entrance(("eval", "CASES", "--jobs", "1", "--journal", "FILE"), "run.journal",
                                 ("@@", "@@\n@@\n")),
        "calibration": Entrance(("estimate", "PLAN", "--calibration", "FILE"), "own.json",
                                _at(_CALIBRATION, ("own",), ("name",), ("kernels",))),
        "fidelity": Entrance(("fidelity", "FILE"), "rows.csv", (_CSV,)),
        "calibrate": Entrance(("calibrate", "FILE", "--hardware", "1x1:h100-sxm"), "bench.json", _of_bench()),
        "calibrate csv": Entrance(("calibrate", "FILE"), "rows.csv", (_CSV,)),
        "replay": Entrance(("replay", "FILE"), "run.json", _transcripts()),
        "settings": Entrance(("plan", WORDS, "--proposer", "llm"), "config.toml", settings,
                             {"SHARDWRIGHT_CONFIG": "FILE"}),
        "chat": Entrance(("chat", "TEXT"), "words.txt", (f"{WORDS} @@",)),
        "session": Entrance(("chat", "--resume", "FILE"), "own.sqlite", ("@@",)),
    }  # fmt: skip


# What stands in place of the mark, as the bytes of a JSON value.
VALUES: dict[str, bytes] = {
    "half a character": rb'"\ud800"',
    "half a character, the second": rb'"a\udfff"',
    "half a character in a key": rb'{"\ud800": 1}',
    "half a character deep in": rb'[[{"a": ["\ud800"]}]]',
    "300 levels": b"[" * 300 + b"]" * 300,
    "300 levels of objects": b'{"a":' * 300 + b"1" + b"}" * 300,
    "70 levels": b"[" * 70 + b"]" * 70,
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "an open end": b"[" * 100_000,
    "5,000 digits": b"9" * 5_000,
    "500 digits": b"9" * 500,
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "a key twice": b'{"a": 1, "a": 2}',
    "not UTF-8": b'"\xff\xfe"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "NUL": rb'"\u0000"',
    "a NUL byte": b'"\x00"',
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "a long text": b'"' + b"x" * 100_000 + b'"',
    "a line end": rb'"a\nb"',
    "a control": rb'"\u001b[31m\u202e"',
}
# The whole document, made of a sound one.
DOCUMENTS: dict[str, Any] = {
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "empty": lambda text: b"",
    "blank": lambda text: b" \n\n ",
    "NULs": lambda text: b"\0" * 100,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "cut": lambda text: text[: len(text) // 2],
}
