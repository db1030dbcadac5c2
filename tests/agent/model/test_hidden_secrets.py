"""A key that a server sends back in disguise does not leave the process, however often it is encoded."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from shardwright.agent.agent import Agent
from shardwright.agent.cli.app import run
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.redaction import RedactedStream, Redactor
from shardwright.agent.model.settings import EndpointFlags, read_settings
from shardwright.agent.report.plan import render_plan

from ...examples import examples
from ..loop.questions import SMALL, question, reference_document
from .fault_server import FaultServer, Step, answer, call, delta, refuses, sends, streams

KEY = "sk-Canary_7/Zq+1vB"
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
DISGUISES: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, each letter": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "Python": lambda text: "".join(f"\\x{ord(letter):02x}" if ord(letter) < 256 else letter for letter in text),
    "percent": lambda text: "".join(f"%{byte:02x}" if byte % 2 else f"%{byte:02X}" for byte in text.encode()),
    "some percent": lambda text: text.replace("a", "%61").replace("%", "%25", 1),
    "HTML": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#X{ord(letter):04x};" for letter in text),
    "HTML, named": lambda text: html.escape(text).replace("/", "&sol;").replace("_", "&lowbar;"),
    "capitals": str.upper,
    "no capitals": str.lower,
    "zero width": "\u200b".join,
    "soft hyphens": "\xad".join,
    "wide": lambda text: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text),
}
# Nested disguises, innermost first; nobody reads an escape whose letters are spaced or wide.
LAYERS = st.lists(st.sampled_from(list(DISGUISES)), max_size=3).filter(
    lambda names: not {"zero width", "soft hyphens", "wide", "capitals"} & set(names[1:])
)


def disguised(names: list[str], key: str = KEY) -> str:
    """The key in the disguises of `names`, innermost first."""
    for name in names:
        key = DISGUISES[name](key)
    return key


def readings(text: str) -> Iterator[str]:
    """Eight readings of a text in lower case, each after one more round of decoding."""
    for _ in range(8):
        plain = re.sub("[\u200b\xad]", "", text)
        plain = "".join(chr(ord(letter) - 0xFEE0) if "\uff01" <= letter <= "\uff5e" else letter for letter in plain)
        yield plain.lower()
        text = re.sub(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))", lambda m: chr(int(m[1] or m[2], 16)), text)
        text = html.unescape(unquote(re.sub(r'\\(["\\/])', r"\1", text)))


def holds_key(text: str) -> bool:
    """Whether some reading of `text` has the key."""
    middles = [base64.b64encode(f"{before}{KEY}".encode()).decode()[4:20] for before in ("", "a", "ab")]
    return any(KEY.lower() in reading for reading in readings(text)) or any(reading in text for reading in middles)


def _says(text: str) -> Step:
    return sends(answer({"content": text}))


def _submits(document: str) -> Step:
    # Arguments are JSON inside JSON: their escapes are escaped once more.
    return sends(answer({"tool_calls": [call("submit_dag", document)]}, "tool_calls"))


def _renamed(name: str) -> str:
    """Arguments that submit a valid plan in which a template with one copy names a node."""
    document = reference_document()
    inner = {node["parent"] for node in document["nodes"]}
    leaf = next(node for node in document["nodes"] if node["id"] not in inner)
    for edge in document["edges"]:
        edge.update({end: name for end in ("source", "target") if edge[end] == leaf["id"]})
    leaf.update(id=name, repeat=1)
    return json.dumps({"document": document})


_DEGREES = '{"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}'
PLACES: dict[str, Callable[[str], Step]] = {
    "words": _says,
    "rationale": lambda key: _submits(f'{{"strategy": {_DEGREES}, "rationale": "{key}"}}'),
    "rationale in words": lambda key: _says(f'{{"strategy": {_DEGREES}, "rationale": "{key}"}}'),
    "node": lambda key: _submits(
        f'{{"document": {{"strategy": {_DEGREES}, "nodes": [{{"id": "{key}", "type": "x"}}]}}}}'
    ),
    # The compact form puts numbers into names, and names of copies behind the name of their replica.
    "template": lambda key: _submits(_renamed(key.replace("+1", "+{i+1}"))),
    "copy": lambda key: _submits(
        f'{{"document": {{"strategy": {_DEGREES}, "hardware": {{"gpus_per_node": 2}}, "nodes": ['
        '{"id": "r", "type": "ReplicaNode"}, {"id": "' + key.rpartition("/")[2] + '", "type": "x", "parent": "r"},'
        '{"id": "' + key.rpartition("/")[0] + '", "type": "ReplicaNode", "like": "r"}]}}'
    ),
    "field": lambda key: _submits(f'{{"document": {{"strategy": {_DEGREES}, "{key}": {{"{key}": 1}}}}}}'),
    "field of a call": lambda key: _submits(f'{{"{key}": 1}}'),
    "tool": lambda key: sends(answer({"tool_calls": [call(key, "{}", key)]}, "tool_calls")),
    "parts": lambda key: sends(answer({"content": [{"text": key[:9]}, {"text": key[9:]}]}, model=key)),
    "refusal": lambda key: sends(answer({"content": None, "refusal": key})),
    "error": lambda key: refuses(400, key),
    "error that is cut": lambda key: sends((" " * 65_520 + f"it is {key}")[:65_540], 500, "text/plain"),
    "error with 200": lambda key: sends({"error": {"message": key}}),
    "stream": lambda key: streams([*(delta({"content": letter}) for letter in key), delta({}, "stop")]),
}


@pytest.mark.thorough
@example("template", [])
@example("copy", [])
@example("node", ["JSON, each letter"])
@example("rationale in words", ["JSON, each letter", "JSON"])
@example("words", ["HTML, hexadecimal", "some percent", "HTML, named"])
@examples(12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.sampled_from(list(PLACES)), LAYERS)
def test_no_result_and_no_transcript_holds_the_key(tmp_path: Path, place: str, names: list[str]) -> None:
    transcript = tmp_path / "run.json"
    # Inside JSON quotes only valid JSON text is sent.
    key = disguised(names).replace("\\x", "\\\\x") if "Python" in names else disguised(names)
    with FaultServer(PLACES[place](key)) as server:
        settings = read_settings(
            EndpointFlags(model="m"), {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}, Path("/dev/null")
        )
        client = EndpointClient(settings, sleep=lambda _: None)
        options = AgentOptions(limits=Limits(corrections=1, tool_calls=2), knowledge_tokens=0, transcript=transcript)
        result = Agent(client, options=options).run_question(question(SMALL), SMALL).result
    if (place, names) == ("template", []):
        assert result.report is not None and result.report.proposer == "llm"
    seen = [result.model_dump_json(), render_plan(result, width=100), transcript.read_text()]
    assert not any(map(holds_key, seen))
    assert json.loads(transcript.read_text())["result"] is not None


def test_no_output_of_the_command_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    document = f'{{"strategy": {_DEGREES}, "rationale": "{ESCAPED}"}}'
    with FaultServer(_submits(document)) as server:
        options = ("--llm-url", server.url, "--llm-model", "m", "--transcript", str(tmp_path / "run.json"))
        assert run(["plan", SMALL, "--proposer", "llm", *options, "-o", str(tmp_path / "plan.json")]) == 0
    seen = [*capsys.readouterr(), *(path.read_text() for path in tmp_path.iterdir())]
    assert len(seen) == 4
    assert not any(map(holds_key, seen))
    assert "[redacted]" in seen[0]


@examples(30)
@given(LAYERS, st.lists(st.integers(3, 30), min_size=1, max_size=20))
def test_a_disguised_key_cut_into_pieces_is_found(names: list[str], lengths: list[int]) -> None:
    text, stream, shown, at = f"it is {disguised(names)} or so", RedactedStream(Redactor([KEY])), "", 0
    for turn in range(len(text)):
        shown += stream.feed(text[at : at + lengths[turn % len(lengths)]])
        at += lengths[turn % len(lengths)]
    shown += stream.end()
    assert not holds_key(shown)
    assert shown.startswith("it is ")
    assert shown.endswith(" or so")


@given(st.text('nsk-\\"u0/&%x', min_size=6, max_size=12), st.text('nsk-\\"u0/&%x1\n', max_size=30))
def test_json_is_json_afterwards(secret: str, text: str) -> None:
    written = json.dumps({"a": f"{text}{secret}{text}", text: [secret, text]})
    assert json.loads(Redactor([secret]).text(written))


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_no_chat_holds_the_key(
    output_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "chat.sqlite"
    hidden = [ESCAPED, *(disguised([name]) for name in ("HTML", "percent", "zero width", "wide", "Python"))]
    words = f'{{"words": "{SMALL} {ESCAPED}", "is_new_request": true}}'
    steps = [
        sends(answer({"content": hidden[1], "tool_calls": [call("replan", words)]}, "tool_calls")),
        sends(answer({"tool_calls": [call("explain", f'{{"words": "{ESCAPED}"}}')]}, "tool_calls")),
        streams([*(delta({"content": letter}) for letter in " ".join(hidden)), delta({}, "stop")]),
    ]
    with FaultServer(*steps) as server:
        options = ("--llm-url", server.url, "--llm-model", "m", "--session", str(path), "--format", output_format)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"plan it\nand now?\n")))
        assert run(["chat", *options]) == 0
    with sqlite3.connect(path) as session:
        stored = [data for (data,) in session.execute("SELECT data FROM events")]
        stored += [zlib.decompress(data).decode() for (data,) in session.execute("SELECT data FROM documents")]
    assert len(stored) > 5
    assert not any(map(holds_key, [*capsys.readouterr(), *stored]))


def test_no_evaluation_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    case = {"id": "one", "request": SMALL, "expected": "plan"}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    with FaultServer(PLACES["node"](ESCAPED), PLACES["rationale"](ESCAPED)) as server:
        options = ("--solver", "live", "--llm-url", server.url, "--llm-model", "m", "--journal", "run.journal")
        pages = ("--html", "page.html", "--junit", "junit.xml", "--record", "tape")
        run(["eval", "cases.jsonl", *options, "-o", "results.json", *pages, "--jobs", "1"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 6
    seen = [*capsys.readouterr(), *(path.read_text() for path in files)]
    assert not any(map(holds_key, seen))
