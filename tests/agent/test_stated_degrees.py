"""Stated degrees are kept if the hardware is open, too, which then is what they need."""

from __future__ import annotations

import pytest

from shardwright import plan, search
from shardwright.agent.chat.turn_input import stated_strategy
from shardwright.agent.intent.complete import complete
from shardwright.agent.pipeline import plan_intent
from shardwright.agent.results import PlanResult
from shardwright.tools.language.request import read_request
from shardwright.tools.plan.describe import describe

LOAD = "512 in / 32 out, 8 concurrent"


def layout(result: PlanResult) -> str:
    assert result.plan is not None and result.valid
    return describe(result.plan.strategy)


@pytest.mark.parametrize(
    ("words", "kept", "gpus"),
    [
        ("Llama-3.2-1B on L4, TP2", "TP2", 2),
        ("Llama-3.2-1B on L4, PP2", "PP2", 2),
        # A stated number of replicas serves both phases, whatever would be better.
        ("Llama-3.2-1B on L4, DP2 of TP2", "DP2 of TP2", 4),
        ("Llama-3.2-1B on L4, 1 prefill of TP2 + 1 decode of TP1", "1 prefill of TP2 + 1 decode of one device", 3),
    ],
)
def test_open_hardware_is_what_the_stated_degrees_need(words: str, kept: str, gpus: int) -> None:
    result = plan(f"{words}, {LOAD}")
    assert layout(result).partition(" (layers")[0] == kept
    assert result.plan is not None and result.report is not None and result.report.stated is not None
    assert (result.plan.strategy.gpu_count, result.plan.hardware.nodes) == (gpus, 1)
    assert result.report.why_not_kept is None and result.report.stated.valid
    assert "The degrees asked for are kept; without them" in result.report.explanation
    # Stated degrees are a wish for this plan, and no constraint in its document.
    assert not result.plan.policy.constraints


@pytest.mark.thorough
def test_hardware_that_nobody_named_is_what_the_stated_degrees_need() -> None:
    assert layout(plan(f"Llama-3.2-1B, TP2, {LOAD}")) == "TP2"


@pytest.mark.thorough
def test_degrees_that_no_hardware_keeps_are_said_and_replaced() -> None:
    result = plan(f"Llama-3.2-1B on H100, TP5, {LOAD}")
    assert layout(result) == "one device"
    assert result.report is not None and result.report.why_not_kept is not None
    assert "The degrees asked for cannot be kept: " in result.report.explanation
    assert result.report.stated is not None and not result.report.stated.valid


def test_a_strategy_that_cannot_be_timed_is_judged_by_the_rules_all_the_same() -> None:
    result = plan(f"Llama-3.2-1B on L4, TP3, {LOAD}")
    assert result.valid and result.report is not None and result.report.stated is not None
    assert "TP005" in {finding.rule for finding in result.report.stated.findings}


ASKED = {
    "words": f"Llama-3.2-1B on 4 L4, {LOAD}, TPOT below 9 ms, DP4 of TP1",
    "brief": f"Llama-3.2-1B on 4 L4, {LOAD}, PP2 of TP2",
}


@pytest.mark.parametrize("form", ASKED)
def test_a_strategy_that_was_asked_about_is_the_first_runner_up_where_the_plan_has_another(form: str) -> None:
    result = plan(ASKED[form]) if form == "words" else plan(brief={"brief.md": ASKED[form]})
    assert result.report is not None and result.report.stated is not None
    first, *others = result.report.alternatives
    assert first.summary.partition(" (layers")[0] == result.report.stated.summary != layout(result)
    assert first.reason.startswith("asked about: ")
    assert first.tpot_ms and not any("asked about" in other.reason for other in others)


def test_a_strategy_that_is_the_plan_is_no_runner_up() -> None:
    result = plan(f"Llama-3.2-1B on 4 L4, {LOAD}, DP2 of TP2")
    assert result.report is not None and layout(result) == "DP2 of TP2"
    assert not any("asked about" in alternative.reason for alternative in result.report.alternatives)


def test_each_strategy_of_a_search_is_the_plan_where_it_is_asked_for() -> None:
    request = "Llama-3.2-1B on 2 L4, 512 in / 32 out, lowest latency"
    candidates = search(request).candidates
    assert any(candidate.strategy.prefill.replicas for candidate in candidates)
    for candidate in candidates:
        said = read_request(request).model_copy(update={"strategy": stated_strategy(candidate.strategy)})
        assert (
            layout(plan_intent(complete(said))).partition(" (layers")[0] == candidate.summary.partition(" (layers")[0]
        )
