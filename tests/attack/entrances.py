"""Every file that the command line reads, with every hostile content, by processes of the real command.

All end in time with a promised exit status and no traceback; a refusal is one line with the reason. With
`--format json` standard output is JSON or empty.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from .honest_files import COMMAND, ROOT, base
from .hostile_files import HONEST, SPECIAL, hostile_contents, put_hostile
from .probe import Case, Probe
from .watched import cpu_seconds

SECONDS, MOST_BYTES = 10, 3 << 29
# A process that uses less than `WORK_S` CPU seconds in `PATIENCE_S` seconds waits in vain, and is killed.
PATIENCE_S, WORK_S = 20.0, 0.2


class Entrance(Struct, frozen=True):
    """A command that reads a file: its arguments, with `{file}` for the hostile file and `{NAME}` for honest ones.

    `base` names the honest content; `is_json`: it is JSON, whatever the name of the file suggests.
    """

    arguments: tuple[str, ...]
    base: str
    file: str = "file.json"
    is_json: bool = True
    environment: dict[str, str] = field(default_factory=dict[str, str])
    by_stdin: bool = False
    statuses: tuple[int, ...] = (0, 1, 2)


def _e(line: str, base: str, **more: Any) -> Entrance:
    return Entrance(tuple(line.split(" ")), base, **more)


_ASK = "Llama-3.1-8B,2xH100"
_PLAN = "plan Llama-3.1-8B,1k/128,2xH100"
_NO_ENDPOINT = "--proposer llm --llm-url http://127.0.0.1:9/v1 --llm-model m --max-seconds 1"
_OF_SETTINGS: dict[str, Any] = {
    "file": "config.toml",
    "is_json": False,
    "environment": {"SHARDWRIGHT_CONFIG": "{file}"},
    "statuses": (0, 1, 2, 3),
}
ENTRANCES: dict[str, Entrance] = {
    "validate": _e("validate {file}", "plan"),
    "validate -": _e("validate -", "plan", by_stdin=True),
    "validate sarif": _e("validate {file} --format sarif", "plan"),
    "estimate": _e("estimate {file}", "plan"),
    "estimate calibration": _e("estimate {plan} --calibration {file}", "calibration"),
    "expand": _e("expand {file} --fold", "plan"),
    "expand dot": _e("expand {file} --fold --dot", "plan"),
    "compare a": _e("compare {file} {plan}", "plan"),
    "compare b": _e("compare {plan} {file}", "plan"),
    "fix": _e("fix {file} -o {out} --certificate {out}.certificate", "plan"),
    "fix -": _e("fix -", "plan", by_stdin=True),
    "fix diff": _e("fix {file} --diff", "broken"),
    "fix words": _e("fix {file}", "words", is_json=False),
    "fix yaml": _e("fix {file}", "plan", file="a.yaml"),
    "verify": _e("verify {file}", "certificate"),
    "models": _e("models {file}", "config"),
    "models -": _e("models -", "config", by_stdin=True),
    "models inline": _e("models {text}", "config"),
    "plan model": _e("plan --model {file} --hardware 1x2:h100-sxm", "config"),
    "plan model inline": _e("plan --model {text} --hardware 1x2:h100-sxm", "config"),
    "search model": _e("search --model {file} --hardware 1x2:h100-sxm --top 1", "config"),
    "plan brief json": _e("plan --brief {file}", "brief"),
    "plan brief yaml": _e("plan --brief {file}", "brief", file="brief.yaml"),
    "plan brief md": _e("plan --brief {file}", "prose", file="brief.md", is_json=False),
    "search brief": _e("search --brief {file} --top 1", "brief"),
    "plan mix json": _e(f"{_PLAN} --mix {{file}}", "mix"),
    "plan mix yaml": _e(f"{_PLAN} --mix {{file}}", "mix", file="mix.yaml"),
    "plan calibration": _e(f"{_PLAN} --calibration {{file}}", "calibration"),
    "plan request": _e("plan -", "request", is_json=False, by_stdin=True),
    "plan words": _e("plan {text}", "request", is_json=False),
    "plan hardware": _e("plan --model llama-3.1-8b --hardware {text}", "cluster", is_json=False),
    "search words": _e("search {text} --top 1", "request", is_json=False),
    "hardware": _e("hardware {text}", "card", is_json=False),
    "rules": _e("rules {text}", "rule", is_json=False),
    "plan transcript": _e(f"{_PLAN} {_NO_ENDPOINT} --transcript {{file}}", "transcript", statuses=(0, 1, 2, 3)),
    "plan output": _e(f"{_PLAN} -o {{file}}", "plan"),
    "sweep json": _e("sweep {file} -o {out}.csv --jobs 1", "sweep"),
    "sweep yaml": _e("sweep {file} -o {out}.csv --jobs 1", "sweep", file="sweep.yaml"),
    "sweep journal": _e("sweep {sweep} -o {folder}/t.csv --jobs 1", "sweep journal", file="t.csv.journal"),
    "eval dataset": _e("eval {file} --jobs 1", "dataset"),
    "eval lines": _e("eval {file} --jobs 1", "dataset", file="cases.jsonl"),
    "eval folder": _e("eval {folder} --jobs 1", "dataset"),
    "eval baseline": _e("eval {dataset} --jobs 1 --baseline {file}", "baseline"),
    "eval journal": _e("eval {dataset} --jobs 1 --journal {file}", "eval journal"),
    "eval script": _e("eval {dataset} --jobs 1 --solver scripted:{file}", "script"),
    "eval cassette": _e("eval {dataset} --jobs 1 --solver cassette:{folder}", "recording", file="recording.json"),
    "fidelity": _e("fidelity {file}", "measured", file="measured.csv", is_json=False),
    "calibrate bench": _e("calibrate {file} --hardware 1x1:h100-sxm -o {out}", "bench"),
    "calibrate csv": _e("calibrate {file} -o {out}", "measured", file="measured.csv", is_json=False),
    "calibrate from": _e("calibrate {bench} --hardware 1x1:h100-sxm --calibration {file} -o {out}", "calibration"),
    "replay": _e("replay {file}", "transcript"),
    "chat session": _e(f"chat {_ASK} --session {{file}}", "session", is_json=False),
    "chat resume": _e("chat --resume {file}", "session", file="own.sqlite", is_json=False),
    "chat words": _e("chat {text} --session {out}.chat", "request", is_json=False),
    "chat turns": _e("chat --session {out}.chat", "turns", is_json=False, by_stdin=True),
    "chat brief": _e("chat --brief {file} --session {out}.chat", "brief"),
    "settings": _e("doctor --seconds 5", "settings", **_OF_SETTINGS),
    "settings of plan": _e(_PLAN, "settings", **_OF_SETTINGS),
    "import": _e("import {text} --hardware 1x8:h100-sxm", "command", is_json=False),
    "import file": _e("import {file} --hardware 1x8:h100-sxm", "command", file="start.sh", is_json=False),
    "import manifest": _e("import {file} --hardware 1x8:h100-sxm", "manifest", file="pod.yaml", is_json=False),
    "plan trace": _e(f"{_PLAN} --trace {{file}}", "trace", file="trace.jsonl", is_json=False),
    "plan rates": _e(f"{_PLAN} --rate-curve {{file}}", "rates", file="rates.csv", is_json=False),
    "explain": _e("explain {text}", "request", is_json=False),
    "compare words": _e("compare {plan} {text}", "strategy", is_json=False),
    "fix request": _e("fix {plan} --request {text}", "request", is_json=False),
}  # fmt: skip


def entrance_cases(seed: int, count: int = 0) -> Iterator[Case]:
    """All entrances with all contents, the two formats by turns; a random `count` of them if it is not 0."""
    rng = random.Random(f"entrances:{seed}")
    every = [
        Case("entrances", json.dumps([name, content, index % 2 == 0, seed]), f"{name} < {content}")
        for name, entrance in ENTRANCES.items()
        for index, content in enumerate(hostile_contents(entrance.is_json))
    ]
    yield from rng.sample(every, min(count, len(every))) if count else every


def check_entrance(case: Case, probe: Probe) -> None:
    """Run the command of `case` and judge how it ended."""
    name, content, as_json, seed = json.loads(case.text)
    entrance = ENTRANCES[name]
    with tempfile.TemporaryDirectory() as folder:
        call = prepared(entrance, content, Path(folder), random.Random(f"{case.text}:{seed}"))
        if call is None:
            return
        arguments, environment, stdin = call
        if as_json and "--dot" not in arguments and "--diff" not in arguments and "sarif" not in arguments:
            arguments = (*arguments, "--format", "json")
        else:
            as_json = False
        ended = _run(arguments, environment, stdin, Path(folder))
        judge(name, entrance, ended, probe, as_json=as_json)
        if content == HONEST and ended.status == 2:
            probe.wrong(name, "refuses what is honest", ended.err)


def prepared(
    entrance: Entrance, content: str, place: Path, rng: random.Random
) -> tuple[tuple[str, ...], dict[str, str], Path | None] | None:
    """Arguments, environment and standard input of the call; `None` if the content cannot be an argument."""
    inner = place / "in"
    inner.mkdir()
    file = put_hostile(content, base(entrance.base), inner / entrance.file, rng)
    if entrance.by_stdin and content in SPECIAL and not content.startswith(("/dev", "200")):
        return None
    return call_of(entrance, file, place)


def call_of(entrance: Entrance, file: Path, place: Path) -> tuple[tuple[str, ...], dict[str, str], Path | None] | None:
    """The call with the hostile `file` and honest ones in `place`; `None` if its content cannot be an argument."""
    for honest in ("plan", "dataset", "sweep", "bench"):
        (place / f"{honest}.json").write_text(str(base(honest)), "utf-8")
    words = {"{file}": str(file), "{folder}": str(file.parent), "{out}": str(place / "out"), "{text}": ""}
    words |= {f"{{{honest}}}": str(place / f"{honest}.json") for honest in ("plan", "dataset", "sweep", "bench")}
    if "{text}" in entrance.arguments:
        data = file.read_bytes() if file.is_file() and not file.is_symlink() and os.access(file, os.R_OK) else b""
        if not 0 < len(data) < 100_000 or b"\x00" in data:
            return None
        words["{text}"] = os.fsdecode(data)

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    return (
        tuple(
            filled(word).replace(",", " ") if "," in word and "{" not in word else filled(word)
            for word in entrance.arguments
        ),
        {key: filled(value) for key, value in entrance.environment.items()},
        file if entrance.by_stdin else None,
    )


class Ended(Struct, frozen=True):
    """How a call ended; the status is `None` if it was killed."""

    status: int | None
    out: bytes
    err: str


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def environment_of(more: dict[str, str], folder: Path) -> dict[str, str]:
    """This process's environment without endpoints, with `folder` as home, and `more`."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "SHARDWRIGHT_"))}
    variables |= {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return {**variables, **more}


def _run(arguments: tuple[str, ...], environment: dict[str, str], stdin: Path | None, folder: Path) -> Ended:
    with (stdin or Path(os.devnull)).open("rb") as source:
        process = subprocess.Popen(
            (*COMMAND, *arguments), stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            env=environment_of(environment, folder), preexec_fn=_limits,
        )  # fmt: skip
        used = -1.0
        while True:
            try:
                out, err = process.communicate(timeout=PATIENCE_S)
                return Ended(process.returncode, out, err.decode("utf-8", "replace"))
            except subprocess.TimeoutExpired:
                # On a loaded machine it may wait for its turn: only an idle one is killed here.
                before, used = used, cpu_seconds(process.pid)
                if used - before < WORK_S:
                    process.kill()
                    out, err = process.communicate()
                    return Ended(None, out, err.decode("utf-8", "replace"))


def _reports(entrance: Entrance, ended: Ended) -> bool:
    """Whether the error is the answer itself: `doctor` reports an endpoint that is down."""
    return ended.status == 3 and entrance.arguments[0] == "doctor" and bool(ended.out.strip())


def judge(name: str, entrance: Entrance, ended: Ended, probe: Probe, *, as_json: bool) -> None:
    """Report to `probe` what is wrong with how a call ended."""
    lines = ended.err.strip().splitlines()
    if lines and lines[0].startswith("shardwright chat: session "):  # said before anything can be wrong
        del lines[0]
    last = lines[-1] if lines else ""
    if "MemoryError" in ended.err:
        probe.fault("large", name, "MemoryError", last)
    elif "Traceback (most recent call last)" in ended.err:
        probe.fault("traceback", name, f"{last.partition(':')[0][:60]} at {_innermost_project_frame(lines)}", last)
    elif ended.status is None:
        probe.fault("slow", name, "does not end, and does nothing", last)
    elif ended.status < 0:
        probe.fault("slow", name, f"ended by signal {-ended.status}: beyond its seconds of the processor", last)
    elif ended.status not in entrance.statuses:
        probe.wrong(name, f"exit status {ended.status}", ended.err)
    elif ended.status in (2, 3) and len(lines) != 1 and not _reports(entrance, ended):
        probe.wrong(name, f"status {ended.status} with {len(lines)} lines of error", ended.err)
    elif (
        as_json
        and ended.status in (0, 1)
        and ended.out.strip()
        and not name.startswith("chat")
        and not _is_json(ended.out)
    ):
        probe.wrong(name, "standard output is not JSON", ended.out[:300])


def _innermost_project_frame(lines: list[str]) -> str:
    frames = [line.split('"')[1] + ":" + line.split(",")[1].split()[1] for line in lines if line.startswith('  File "')]
    ours = [frame.removeprefix(f"{ROOT}/") for frame in frames if frame.startswith(f"{ROOT}/") and ".venv" not in frame]
    return ours[-1] if ours else "outside of the project"


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
