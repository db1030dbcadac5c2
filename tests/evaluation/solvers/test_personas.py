"""Personas answer the same each time, differ by epoch, and are as good as the feedback allows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.agent.evaluation.solver import HELD, UNHURRIED, Solver
from shardwright.agent.evaluation.solvers import obedient, opener
from shardwright.agent.evaluation.solvers.careless import Careless, Stubborn
from shardwright.agent.evaluation.solvers.feedback import last_feedback
from shardwright.agent.evaluation.solvers.student import DEGREES, Student
from shardwright.agent.loop.planner import ModelPlanner
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import Message, ModelRequest, ToolSpec

from ...agent.loop.questions import question
from ...examples import examples
from .worlds import posed, scored

MOE_16 = "Serve DeepSeek-V3 on 16 H200, 4k in / 1k out, 64 concurrent requests, best throughput"
DENSE_8 = "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency"
PERSONAS = (Careless(), Stubborn(), Student())
SUBMIT = ToolSpec(name="submit_dag", description="", parameters={})
OPENING = (Message(role="system", content="plan"), Message(role="user", content="a request"))


def proposals(solver: Solver, feedback: list[str], epoch: int = 1) -> list[str]:
    """The proposals of a persona: one at first, and one after each text of feedback."""
    client = solver.client(posed(), epoch)
    assert client is not None
    messages, proposed = list(OPENING), list[str]()
    for text in [*feedback, ""]:
        reply = client.complete(ModelRequest(messages=tuple(messages), tools=(SUBMIT,)), Deadline.after(60))
        proposed.append(reply.tool_calls[0].arguments)
        messages += [Message(role="assistant", content=""), Message(role="tool", content=text)]
    return proposed


def degrees(proposal: str) -> dict[str, int]:
    """The degrees of a student's proposal."""
    strategy = json.loads(proposal)["strategy"]
    return {"dp": strategy["dp"], **strategy["prefill"]}


def told_of(**fields: object) -> str:
    """A tool's rejection, as JSON."""
    return json.dumps({"accepted": False, **fields})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("solver", PERSONAS, ids=lambda persona: persona.name)
def test_a_persona_is_the_same_each_time_down_to_the_tokens(solver: Solver) -> None:
    assert scored(solver) == scored(solver)


@pytest.mark.parametrize("solver", PERSONAS, ids=lambda persona: persona.name)
def test_a_persona_is_not_the_same_in_each_epoch(solver: Solver) -> None:
    assert len({tuple(proposals(solver, [], epoch)) for epoch in range(1, 9)}) > 1


@pytest.mark.parametrize("epoch", range(1, 4))
def test_the_careless_one_slips_and_then_reads_what_it_is_told(epoch: int) -> None:
    result = scored(Careless(), epoch=epoch)
    assert result.passed("rules", "at_once") is False
    assert result.status in ("accepted", "accepted_after_repair")
    assert result.passed("rules") is True


def test_the_careless_one_takes_the_repair_that_it_is_offered() -> None:
    assert json.loads(proposals(Careless(), [told_of(rules=["TP005"], repaired_as="d7")])[1]) == {"handle": "d7"}


def test_the_stubborn_one_says_the_same_whatever_it_is_told() -> None:
    assert len(set(proposals(Stubborn(), [told_of(rules=["TP005"]), told_of(repaired_as="d2"), "x"]))) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("request_text", [MOE_16, DENSE_8])
@pytest.mark.parametrize("slip", obedient.SLIPS)
def test_whoever_does_what_the_feedback_says_has_a_plan_in_one_further_turn(slip: str, request_text: str) -> None:
    posed = question(request_text)
    planner = ModelPlanner(obedient.speaker_of(posed, slip), HELD)
    finished = planner.run_question(posed, request_text)
    assert finished.ending.status in ("accepted", "accepted_after_repair")
    assert finished.ending.spent.turns <= 2
    result = finished.result
    assert result.plan is not None and result.estimate is not None
    assert not posed.against(result.plan, result.estimate).is_behind


def test_what_a_slip_is_told_is_mended_without_a_repair_too() -> None:
    posed = question(DENSE_8)
    planner = ModelPlanner(obedient.speaker_of(posed, "multiplies TP and EP"), replace(HELD, repairs=False))
    assert planner.run_question(posed, DENSE_8).ending.status == "accepted"


@pytest.mark.thorough
def test_who_looks_at_what_the_search_left_out_beats_the_reference_by_a_twentieth() -> None:
    text = "Serve Qwen3-32B on 136 H100, 8k in / 256 out, best throughput, TTFT under 1.5 s, TPOT under 15 ms"
    posed = question(text)
    finished = ModelPlanner(opener.speaker_of("throughput"), HELD).run_question(posed, text)
    assert (finished.ending.status, finished.ending.origin) == ("accepted", "model")
    result = finished.result
    assert result.plan is not None and result.estimate is not None and result.report is not None
    beside = posed.against(result.plan, result.estimate)
    assert beside.own.value >= 1.05 * beside.reference.value
    assert f"Against the built-in proposer's plan: {beside.words}" in result.report.explanation


def test_stubbornness_ends_a_run_without_progress() -> None:
    result = scored(Stubborn())
    assert (result.status, result.proposals) == ("no_progress", 3)


@pytest.mark.parametrize("epoch", range(1, 6))
def test_the_student_takes_over_what_a_patch_sets(epoch: int) -> None:
    patch = [{"rule": "TP005", "op": "replace", "path": "/strategy/prefill/tp", "value": 16}]
    first, second = map(degrees, proposals(Student(), [told_of(rules=["TP005"], patch=patch)], epoch))
    assert second == {**first, "tp": 16}


@pytest.mark.parametrize("epoch", range(1, 6))
def test_the_student_keeps_to_the_values_that_a_finding_calls_legal(epoch: int) -> None:
    finding = {"rule": "TP005", "value": {"tp": 3}, "expected": "a divisor of 32"}
    heard = [told_of(rules=["TP005"], findings=[finding])] * 4
    assert all(32 % degrees(proposal)["tp"] == 0 for proposal in proposals(Student(), heard, epoch)[1:])


@pytest.mark.parametrize("epoch", range(1, 6))
def test_the_student_keeps_within_the_hardware_once_it_was_told(epoch: int) -> None:
    heard = [told_of(message="GP004: the strategy needs 30 GPUs, the hardware has 2")] * 3
    drawn = [degrees(proposal) for proposal in proposals(Student(), heard, epoch)[1:]]
    assert all(split["dp"] * split["pp"] * max(split["tp"] * split["sp"], split["ep"]) <= 2 for split in drawn)


@pytest.mark.parametrize("epoch", range(1, 6))
def test_the_student_changes_the_degree_that_a_code_is_about_and_no_other(epoch: int) -> None:
    first, second = map(degrees, proposals(Student(), [told_of(rules=["PP003"])], epoch))
    assert first["pp"] != second["pp"]
    assert {**first, "pp": 0} == {**second, "pp": 0}


@examples(15)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.builds(
                lambda fields: told_of(**fields),
                st.dictionaries(
                    st.sampled_from(["rules", "findings", "patch", "repaired_as", "message", "accepted"]),
                    st.recursive(st.none() | st.integers() | st.text(max_size=8), st.lists, max_leaves=4),
                ),
            ),
        ),
        max_size=3,
    )
)
def test_no_feedback_breaks_a_persona(feedback: list[str]) -> None:
    for solver in PERSONAS:
        assert len(proposals(solver, feedback)) == len(feedback) + 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("solver", [Careless(), Student()], ids=lambda persona: persona.name)
@pytest.mark.parametrize("mode", ["text", "schema"])
def test_without_tools_a_persona_answers_in_text_and_reads_what_it_is_told(solver: Any, mode: str) -> None:
    result = scored(replace(solver, options=replace(UNHURRIED, mode=mode)))
    assert (result.status, result.spent.tool_calls) == ("accepted", 0)
    assert result.proposals == 2


def test_before_the_first_answer_nothing_was_told() -> None:
    assert last_feedback(ModelRequest(messages=OPENING)) is None


def test_a_student_draws_every_degree() -> None:
    assert set(degrees(proposals(Student(), [])[0])) == set(DEGREES)
