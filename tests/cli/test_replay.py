"""`replay`: a recorded run is repeated and reported as text or JSON; other files are refused in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.cli.app import run
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.scripted import ScriptedModel, says

DEMO = Path(__file__).parents[2] / "docs" / "demos" / "dense-careless.json"


def changed(folder: Path, **fields: object) -> Path:
    """The demonstration with some of its fields replaced."""
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(DEMO.read_text(encoding="utf-8")), **fields}), encoding="utf-8")
    return path


def test_a_run_that_is_the_same_is_told_turn_by_turn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(DEMO)]) == 0
    text = capsys.readouterr().out
    assert "The same as recorded" in text
    assert "TP005" in text and "accepted" in text and "TP8 on 8 GPUs" in text


def test_a_run_that_is_another_today_is_exit_1_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = json.loads(DEMO.read_text(encoding="utf-8"))
    result = {**recorded["result"], "plan_hash": "0" * 64}
    assert run(["replay", str(changed(tmp_path, result=result))]) == 1
    text = capsys.readouterr().out
    assert "NOT the same as recorded" in text and "the plan that is returned is another" in text


def test_where_the_time_was_over_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = json.loads(DEMO.read_text(encoding="utf-8"))["steps"]
    stopped = {"kind": "stopped", "data": {"requests": 99, "calls": None}}
    assert run(["replay", str(changed(tmp_path, steps=[*steps, stopped]))]) == 0
    assert "the time was over" in " ".join(capsys.readouterr().out.split())


def test_the_turns_of_the_course_are_those_that_were_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    split = {"tp": 2}
    proposal = says(json.dumps({"strategy": {"dp": 1, "prefill": split, "decode": split}}))
    model = ScriptedModel([says("no reading"), EndpointError("not_supported", "400: no tools", 1), proposal])
    Agent(model, options=AgentOptions(knowledge_tokens=0, transcript=path)).run(
        "Llama-3.1-8B on 2 H100, 2k in / 256 out"
    )
    assert run(["replay", str(path)]) == 0
    text = capsys.readouterr().out
    course = text.partition("Course")[2].partition("Language model")[0]
    assert re.findall(r"^ +([0-9–]) {2}", course, re.MULTILINE) == ["1", "–", "2"]
    assert "reads the request" in course and "2 turns" in text


def test_json_is_the_replay_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(DEMO), "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["same"], payload["differences"]) == (True, [])
    assert payload["recorded"] == payload["replayed"]
    assert payload["result"]["valid"] is True


def test_what_is_no_transcript_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (changed(tmp_path, version="9"), changed(tmp_path, steps="none"), tmp_path / "nowhere.json"):
        assert run(["replay", str(path)]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.count("\n") == 1 and "Traceback" not in output.err


def test_a_recorded_answer_that_is_none_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = json.loads(DEMO.read_text(encoding="utf-8"))["steps"]
    broken = [{**step, "data": {"finish": 7}} if step["kind"] == "reply" else step for step in steps]
    assert run(["replay", str(changed(tmp_path, steps=broken))]) == 2
    assert "the recorded answer to request 1" in capsys.readouterr().err
