"""Strategies that a request compares are each judged as stated, and the report says which leads."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
from shardwright.agent.chat.chat import Chat
from shardwright.agent.report.plan import render_plan
from shardwright.agent.results import ComparedStrategies, PlanResult

LOAD = "512 in, 64 out, 8 users"


def compared_in(request: str, **said: Any) -> tuple[PlanResult, ComparedStrategies]:
    result = shardwright.plan(request, **said)
    assert result.report is not None and result.report.compared is not None
    return result, result.report.compared


def test_each_strategy_has_its_own_figures_and_the_faster_one_is_named() -> None:
    result, compared = compared_in(f"Llama-3.1-8B on 2 H100, {LOAD}, latency. TP2 or two replicas?")
    first, second = compared.strategies
    assert (first.summary, second.summary) == ("TP2", "DP2 of one device")
    assert first.tpot_ms is not None and second.tpot_ms is not None and first.tpot_ms < second.tpot_ms
    assert compared.verdict is not None and "TP2 is ahead of DP2 of one device" in compared.verdict
    report = render_plan(result, width=120)
    assert "What you compare" in report and not result.report.not_acted_on  # type: ignore[union-attr]


def test_the_figures_are_those_that_planning_for_the_strategy_alone_shows() -> None:
    _, compared = compared_in(f"Llama-3.1-8B on 2 H100, {LOAD}. TP2 or PP2?")
    for strategy, words in zip(compared.strategies, ("TP2", "PP2"), strict=True):
        alone = shardwright.plan(f"Llama-3.1-8B on 2 H100, {LOAD}. {words}")
        assert alone.estimate is not None
        assert strategy.tpot_ms == pytest.approx(alone.estimate.latency.tpot_ms)
        assert strategy.ttft_ms == pytest.approx(alone.estimate.latency.ttft_ms)


@pytest.mark.parametrize(
    ("choice", "rule", "reason"),
    [
        ("TP2 or TP3", "TP005", "does not divide"),
        ("TP2 or DP4 of TP2", "GP004", "needs 8 GPUs, of which there are 4"),
    ],
)
def test_what_the_rules_refuse_is_said_with_the_rule_in_place_of_figures(choice: str, rule: str, reason: str) -> None:
    _, compared = compared_in(f"Llama-3.1-8B on 4 H100, {LOAD}. {choice}?")
    refused = compared.strategies[1]
    assert refused.rule == rule and reason in refused.reason
    assert refused.tpot_ms is None and compared.strategies[0].tpot_ms is not None
    assert compared.verdict is None


def test_what_does_not_fit_says_by_how_much() -> None:
    _, compared = compared_in(f"Llama-3.1-70B on 4 H100, {LOAD}. TP4 or four copies?")
    assert compared.strategies[1].reason.startswith("ME001: its fullest GPU needs")


def test_attention_dp_that_nobody_allowed_has_figures_and_says_what_it_takes() -> None:
    request = f"Qwen3-30B-A3B on 4 H100, {LOAD}. TP4 or DP4+EP4?"
    _, compared = compared_in(request, engine="vllm")
    groups = compared.strategies[1]
    assert "attention-DP4" in groups.summary and groups.tpot_ms is not None
    assert groups.needs == ("attention_dp",) and "needs --relax attention_dp" in groups.reason
    _, allowed = compared_in(request, engine="vllm", relaxations=("attention_dp",))
    assert allowed.strategies[1].needs == ()
    assert allowed.strategies[1].tpot_ms == pytest.approx(groups.tpot_ms)


def test_what_is_one_layout_is_shown_once_and_how_open_experts_are_taken_is_said() -> None:
    _, compared = compared_in(f"Qwen3-30B-A3B on 2 H100, {LOAD}. TP2, TP2 with EP, or TP2 without EP?", engine="vllm")
    as_one, other = compared.strategies
    assert {as_one.summary, other.summary} == {"EP2 × TP2", "TP2 × expert-TP2"}
    assert "2 of those named are this one" in as_one.reason and "of those named" not in other.reason
    assert compared.experts is not None and f"not said of what is taken as {as_one.summary}:" in compared.experts
    _, two = compared_in(f"Qwen3-30B-A3B on 2 H100, {LOAD}. TP2 with or without EP?", engine="vllm")
    assert two.experts is None and len(two.strategies) == 2


def test_attention_dp_of_one_alternative_has_figures_and_no_alternative_binds_the_plan() -> None:
    result, compared = compared_in(
        f"Qwen3-30B-A3B on 4 H100, {LOAD}: TP4 without EP, or EP4 with attention DP?", engine="vllm"
    )
    whole, groups = compared.strategies
    assert (whole.summary, groups.summary) == ("TP4 × expert-TP4", "EP4 × attention-DP4")
    assert whole.tpot_ms is not None and groups.tpot_ms is not None and groups.needs == ("attention_dp",)
    assert result.intent is not None and not result.intent.constraints


def test_strategies_beside_kinds_of_hardware_are_told_to_be_judged_on_that_of_the_plan() -> None:
    result, compared = compared_in(f"Llama-3.1-8B: TP1 or TP2 on 1x H100 or 2x L4? {LOAD}")
    assert result.plan is not None and result.plan.hardware.accelerator == "h100-sxm"
    assert compared.hardware is not None and "judged on 1x1:h100-sxm" in compared.hardware
    assert "--hardware-b" in compared.hardware
    assert [strategy.reason for strategy in compared.strategies][1] == "GP004: needs 2 GPUs, of which there are 1"


def test_more_than_can_be_looked_at_are_counted() -> None:
    many = ", ".join(f"TP{tp} x PP{pp}" for tp, pp in ((1, 8), (2, 4), (4, 2), (8, 1), (1, 4), (2, 2), (4, 1)))
    _, compared = compared_in(f"Llama-3.1-8B on 8 H100, {LOAD}. Compare {many}")
    assert len(compared.strategies) == 6 and compared.left_out == 1


def test_a_chat_is_asked_which_is_better_and_answers_with_both() -> None:
    with Chat() as chat:
        chat.say(f"Llama-3.1-8B on 2 H100, {LOAD}")
        answer = chat.say("which is better, TP2 or PP2?")
        assert "What you compare" in answer.text and "TP2 is ahead of PP2" in answer.text
        decided = chat.say("use TP2")
        assert "What you compare" not in decided.text
