"""The file of a transcript: nothing but a file is replaced, and a file that fails late costs no plan."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.transcript import read_transcript
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.agent.model.scripted import ScriptedModel, Step, calls
from shardwright.agent.report.plan import render_plan
from shardwright.agent.results import PlanResult
from shardwright.tools.errors import InputError

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"
PROPOSAL = calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}))


def run(transcript: Path, step: Step = PROPOSAL) -> PlanResult:
    options = AgentOptions(reader="rules", knowledge_tokens=0, transcript=transcript)
    return Agent(ScriptedModel([step]), options=options).run(REQUEST)


def test_a_link_is_written_through_and_a_pipe_stays_one(tmp_path: Path) -> None:
    link, target, pipe = tmp_path / "link.json", tmp_path / "run.json", tmp_path / "pipe"
    link.symlink_to(target)
    os.mkfifo(pipe)
    run(link)
    assert link.is_symlink()
    assert read_transcript(target).result is not None
    result = run(pipe)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert result.report is not None
    assert result.report.model_use is not None
    assert "nobody reads this pipe" in (result.report.model_use.transcript_failure or "")


def test_a_file_that_cannot_be_written_at_first_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    def never(_: ModelRequest) -> Reply:
        raise AssertionError("the model was asked")

    with pytest.raises(InputError, match="does not exist"):
        run(tmp_path / "missing" / "run.json", never)


def test_a_file_that_fails_later_is_said_beside_the_plan(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def removing(_: ModelRequest) -> Reply:
        shutil.rmtree(folder)
        return PROPOSAL

    result = run(folder / "run.json", removing)
    assert result.valid
    assert result.report is not None
    assert result.report.model_use is not None
    assert result.report.model_use.status == "accepted"
    assert "does not exist" in (result.report.model_use.transcript_failure or "")
    assert "The transcript is not whole" in render_plan(result, width=100)


@pytest.mark.parametrize(("field", "value"), [("inter_node_bw_gb_s", 2**31), ("gpus_per_node", 0), ("nodes", -1)])
def test_hardware_that_no_plan_may_state_is_refused_in_a_transcript_too(tmp_path: Path, field: str, value: int) -> None:
    run(path := tmp_path / "run.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    record["setup"]["intent"]["hardware"][field] = value
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(InputError, match=field):
        read_transcript(path)
