"""An agent's run has one budget, desk and record over all modes, counts time from the call, and replays in full."""

from __future__ import annotations

import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits, Prices
from shardwright.agent.loop.clock import Stop
from shardwright.agent.loop.loop import Options
from shardwright.agent.loop.replay import replay
from shardwright.agent.loop.transcript import Step as RecordedStep
from shardwright.agent.loop.transcript import read_transcript
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.messages import ModelRequest, Reply, Usage
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.agent.results import ModelUse, PlanResult
from shardwright.agent.stated.request import intent_of
from shardwright.tools.calibration.custom import CustomCalibration
from shardwright.tools.calibration.profile_file import KernelEntry, ProfileFile
from shardwright.tools.errors import InputError

from ...examples import examples
from .questions import OPEN, SMALL
from .scripts import AMBIGUOUS, SCRIPTS, TOOLS, recorded

pytestmark = pytest.mark.thorough

RIGHT_IN_WORDS = says('{"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}')
SECRET = "sk-canary-1234567"


def refused() -> EndpointError:
    return EndpointError("not_supported", "400: tools are not supported", 1)


def run_with(steps: list[Step], path: Path | None = None, **options: Any) -> tuple[PlanResult, ModelUse, ScriptedModel]:
    """The result of an agent's run, its use of the model, and the model."""
    model = ScriptedModel(steps)
    result = Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0, transcript=path, **options)).run(
        SMALL
    )
    assert result.report is not None and result.report.model_use is not None
    return result, result.report.model_use, model


def test_what_was_spent_counts_in_the_next_mode() -> None:
    first = calls(("look_up", {"kind": "rule", "name": "ME001"})).model_copy(
        update={"usage": Usage(input_tokens=900, output_tokens=20_000)}
    )
    second = says("no").model_copy(update={"usage": Usage(input_tokens=60, output_tokens=5_000)})
    _, use, model = run_with([first, refused(), second, RIGHT_IN_WORDS], limits=Limits(tokens=25_000))
    assert (use.status, use.input_tokens, use.tool_calls, use.turns) == ("tokens_spent", 960, 1, 2)
    assert [bool(request.tools) for request in model.requests] == [True, True, False]


@pytest.mark.parametrize(
    ("limits", "status"), [({"tokens": 500}, "tokens_spent"), ({"usd": 1e-6}, "cost_spent")], ids=["tokens", "money"]
)
def test_a_request_that_would_pass_a_limit_is_not_sent(limits: dict[str, float], status: str) -> None:
    prices = Prices(usd_per_million_input=1, usd_per_million_output=2)
    result, use, model = run_with([RIGHT_IN_WORDS], limits=Limits.model_validate(limits), prices=prices)
    assert (use.status, use.turns, model.requests) == (status, 0, [])
    assert result.valid and "left no room for a request before it was asked" in (use.silence or "")


def test_an_answer_gets_the_room_that_is_left_and_the_server_s_count_goes_before_ours() -> None:
    first = says("no").model_copy(update={"usage": Usage(input_tokens=6_000, output_tokens=50)})
    _, use, model = run_with([first, RIGHT_IN_WORDS], mode="text", limits=Limits(tokens=9_000))
    assert (use.status, len(model.requests), use.input_tokens) == ("tokens_spent", 1, 6_000)
    assert model.requests[0].max_output_tokens == 4096
    _, _, model = run_with([first, RIGHT_IN_WORDS], mode="text", limits=Limits(tokens=14_000))
    assert len(model.requests) == 2 and model.requests[1].max_output_tokens < 14_000 - 2 * 6_000


def test_a_model_that_was_asked_and_had_no_time_to_answer_is_not_called_unasked() -> None:
    use = ModelUse(model="m", status="time_spent", plan_from="builtin", proposals=0, requests=1)
    assert "the time allowed was over before it answered" in (use.silence or "")
    unasked = use.model_copy(update={"requests": 0})
    assert "the time allowed was over before it was asked" in (unasked.silence or "")


def test_a_plan_that_stood_before_a_change_of_mode_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    _, use, _ = run_with([AMBIGUOUS, refused(), EndpointError("server_error", "503", 4)], path)
    assert (use.status, use.plan_from, use.proposals, use.requests) == ("endpoint_failed", "model_repaired", 1, 6)
    transcript = read_transcript(path)
    assert [step.kind for step in transcript.steps if step.kind in ("reply", "mode", "fault", "judgement")] == [
        "reply", "judgement", "fault", "mode", "fault",
    ]  # fmt: skip
    assert replay(transcript).differences == ()


@pytest.mark.parametrize("mode", ["auto", "tools", "schema", "text"])
def test_a_run_through_every_mode_replays_to_the_same_end(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    _, use, _ = run_with([refused(), refused(), RIGHT_IN_WORDS], path, mode=mode)
    assert use.status == ("accepted" if mode == "auto" else "endpoint_failed")
    outcome = replay(read_transcript(path))
    assert outcome.same and outcome.recorded == outcome.replayed


def test_no_model_is_asked_where_the_time_is_over_when_the_tools_have_planned(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    result, use, model = run_with([RIGHT_IN_WORDS], path, limits=Limits(seconds=1e-6))
    assert (use.status, use.plan_from, model.requests) == ("time_spent", "builtin", [])
    assert result.valid and result.plan is not None
    assert replay(read_transcript(path)).differences == ()


TWO_CALLS = calls(
    ("look_up", {"kind": "rule", "name": "ME001"}), ("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 2}}})
)


def test_a_replay_stops_inside_the_answer_where_the_clock_did() -> None:
    whole = recorded([TWO_CALLS], Options(tools=TOOLS.tools, fence=TOOLS.fence, stop=Stop(requests=1, calls=1)))
    assert whole.result is not None and whole.result.status == "time_spent"
    assert replay(whole).same
    without = tuple(step for step in whole.steps if step.kind != "stopped")
    assert (
        "status: recorded time_spent, now accepted" in replay(whole.model_copy(update={"steps": without})).differences
    )


def test_a_clock_that_runs_out_is_written_down_and_replayed() -> None:
    def late(request: ModelRequest) -> Reply:
        time.sleep(1.6)
        return TWO_CALLS

    whole = recorded([late], Options(limits=Limits(seconds=1.5), tools=TOOLS.tools, fence=TOOLS.fence))
    assert [step.data for step in whole.steps if step.kind == "stopped"] == [{"requests": 1, "calls": 0}]
    assert replay(whole).same


@examples(12)
@given(SCRIPTS, st.integers(0, 3), st.none() | st.integers(0, 3))
def test_wherever_the_clock_ran_out_the_replay_ends_there(steps: list[Step], requests: int, made: int | None) -> None:
    stop = Stop(requests=requests, calls=made)
    whole = recorded(steps, Options(tools=TOOLS.tools, fence=TOOLS.fence, stop=stop))
    outcome = replay(whole)
    assert outcome.differences == () and outcome.recorded == outcome.replayed


@pytest.mark.parametrize("kind", ["stopped", "mode"])
def test_a_step_that_cannot_be_read_is_refused_in_one_line(kind: str) -> None:
    whole = recorded([RIGHT_IN_WORDS])
    broken = RecordedStep(kind=kind, data={"requests": "many", "tools": 7})
    with pytest.raises(InputError, match=f"a recorded step `{kind}`: "):
        replay(whole.model_copy(update={"steps": (*whole.steps, broken)}))


class Redacting(ScriptedModel):
    """A model whose client knows a secret."""

    def redact(self, text: str) -> str:
        return text.replace(SECRET, "[redacted]")


def test_a_secret_in_the_request_reaches_no_model_and_the_run_replays(tmp_path: Path) -> None:
    path, model = tmp_path / "run.json", Redacting([RIGHT_IN_WORDS])
    words = f"{SMALL}, and it must use the key {SECRET} for everything"
    result = Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0, transcript=path)).run(words)
    assert SECRET not in path.read_text() + model.requests[0].model_dump_json() + result.model_dump_json()
    assert replay(read_transcript(path)).same


def calibration_of(share: float) -> CustomCalibration:
    """A calibration in which matmuls reach `share` of the device's peak."""
    entry = KernelEntry(
        kernel="gemm", variant="bf16", framework="torch", rows=40, source="own", licence="own", date=date(2026, 11, 21),
        constants={"compute_share": share, "memory_share": share},
    )  # fmt: skip
    return CustomCalibration(name="mine", kernels=(ProfileFile(accelerator="h100-sxm", entries=(entry,)),))


def test_a_calibration_of_ones_own_is_in_the_transcript_and_checked_in_a_replay(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    model = ScriptedModel(
        [
            calls(("submit_dag", {"only_try": True, "strategy": {"dp": 4, "prefill": {"tp": 1}}})),
            calls(("inspect_dag", {"what": "figures", "handle": "d1"})),
            calls(("submit_dag", {"handle": "d1"})),
        ]
    )
    agent = Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0, transcript=path))
    result = agent.run_intent(intent_of(OPEN, calibration=calibration_of(0.5)), OPEN)
    whole = read_transcript(path)
    outcome = replay(whole)
    assert outcome.same and outcome.result.estimate == result.estimate
    shipped = replay(whole.model_copy(update={"setup": whole.setup.model_copy(update={"calibration": None})}))
    assert "request 3 is not the one that was recorded" in shipped.differences
    beyond = whole.setup.model_copy(update={"calibration": calibration_of(-1.0)})
    with pytest.raises(InputError, match="the calibration of the recording"):
        replay(whole.model_copy(update={"setup": beyond}))
