"""Unless asked for, prefill and decode are placed apart only for a gain that a benchmark could show."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardwright import plan, search
from shardwright.agent.planning.placement import filled, placed
from shardwright.agent.report.plan import render_plan
from shardwright.agent.results import PlanResult
from shardwright.agent.stated.request import intent_of
from shardwright.agent.stated.search_request import hardware_block, search_request
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.describe import SAY_APART
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import is_disaggregated
from shardwright.tools.search.candidate import Candidate
from shardwright.tools.search.strategy_rows import REPEAT_SHARE

# Here placing them apart is ahead by less than 1%.
NEAR: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "hardware": "1x3:l40s",
    "input_tokens": 1024,
    "output_tokens": 200,
    "concurrency": 48,
    "objective": "throughput",
}
# And by far more here.
FAR = NEAR | {"input_tokens": 4096, "concurrency": 16}

_TOGETHER = PhaseStrategy()
_APART = PhaseStrategy(replicas=1)


def candidate(*, is_apart: bool, tokens_per_s: float, **more: Any) -> Candidate:
    phase = _APART if is_apart else _TOGETHER
    figures: dict[str, Any] = {
        "strategy": Strategy(dp=1, prefill=phase, decode=phase, gpu_count=2),
        "feasible": True,
        "gpus": 2,
        "concurrency": 8,
        "ttft_ms": 100.0,
        "tpot_ms": 10.0,
        "end_to_end_ms": 1000.0,
        "output_tokens_per_s": tokens_per_s,
        "served_tokens_per_s": tokens_per_s,
    }
    return Candidate(**figures | more)


@pytest.mark.parametrize(
    ("together", "asked", "is_together"),
    [
        ({"tokens_per_s": 99.0}, None, True),
        ({"tokens_per_s": 100.0 / (1 + REPEAT_SHARE) + 0.01}, None, True),
        ({"tokens_per_s": 100.0 / (1 + REPEAT_SHARE) - 0.01}, None, False),
        # Equal speed is not enough if a limit is missed, a rule warns, a queue grows or it costs more.
        ({"tokens_per_s": 99.0, "feasible": False, "why_not": ("PE010: TTFT 2 ms exceeds 1 ms",)}, None, False),
        ({"tokens_per_s": 99.0, "warnings": ("TP007",)}, None, False),
        ({"tokens_per_s": 99.0, "lacks_reserve": True}, None, False),
        ({"tokens_per_s": 99.0, "gpus": 4}, None, False),
        # GPUs that are billed in any case cost nothing more.
        ({"tokens_per_s": 99.0, "gpus": 3, "billed_gpus": 2}, None, True),
        ({"tokens_per_s": 99.0, "billed_gpus": 8}, None, False),
        # The request asks for them apart.
        ({"tokens_per_s": 99.0}, True, False),
    ],
)
def test_replicas_for_both_are_taken_where_they_hold_as_much_and_are_as_good_to_measure(
    together: dict[str, Any], asked: bool | None, *, is_together: bool
) -> None:
    result = plan(**NEAR, disaggregated=asked)
    assert result.intent is not None and result.plan is not None
    architecture = read_architecture(result.intent.model.config, where="config")
    request = search_request(result.intent, architecture, result.plan.hardware)
    best, other = candidate(is_apart=True, tokens_per_s=100.0), candidate(is_apart=False, **together)
    chosen, assumption = placed(request, (best, other), best)
    assert chosen is (other if is_together else best)
    assert (assumption is None) == (asked is not None)
    assert assumption is None or assumption.value is not is_together


LEAVING = {"gpus": 22, "billed_gpus": 24}
FILLING = {"gpus": 24, "billed_gpus": 24}


@pytest.mark.parametrize(
    ("best", "other", "is_taken"),
    [
        (LEAVING, FILLING | {"tokens_per_s": 99.0}, True),
        (LEAVING, FILLING | {"tokens_per_s": 101.0}, True),
        (LEAVING, FILLING | {"tokens_per_s": 100.0 / (1 + REPEAT_SHARE) - 0.01}, False),
        (LEAVING, FILLING | {"feasible": False, "why_not": ("PE010: TTFT 2 ms exceeds 1 ms",)}, False),
        (LEAVING, FILLING | {"warnings": ("TP007",)}, False),
        (LEAVING, FILLING | {"lacks_reserve": True}, False),
        (LEAVING, FILLING | {"is_apart": True}, False),
        (LEAVING, {"gpus": 23, "billed_gpus": 24}, False),
        (LEAVING, {"gpus": 32, "billed_gpus": 32}, False),
        # Part of a single node can be rented, or used for something else.
        ({"gpus": 4, "billed_gpus": 8}, {"gpus": 8, "billed_gpus": 8}, False),
        (FILLING, FILLING | {"tokens_per_s": 99.0}, False),
    ],
)
def test_several_nodes_are_used_whole_where_that_holds_as_much_and_is_as_good_to_measure(
    best: dict[str, Any], other: dict[str, Any], *, is_taken: bool
) -> None:
    intent = intent_of("Llama-3.1-70B on 3 nodes of 8 H100, highest throughput")
    assert intent.hardware is not None
    architecture = read_architecture(intent.model.config, where="config")
    request = search_request(intent, architecture, hardware_block(intent.hardware, 3))
    usual: dict[str, Any] = {"is_apart": False, "tokens_per_s": 100.0}
    first, second = candidate(**usual | best), candidate(**usual | other)
    chosen, assumption = filled(request, (first, second), first)
    assert chosen is (second if is_taken else first)
    assert (assumption is not None) == is_taken
    if assumption is not None:
        assert (assumption.field, assumption.value) == ("gpus", 24) and "nodes are rented whole" in assumption.reason


def test_the_plan_uses_the_whole_of_the_nodes_that_are_billed_for_the_same_cost() -> None:
    load = "1k in, 200 out, 38 requests/s, lowest cost, no disaggregation"
    result = plan(f"Llama-3.2-1B on 3 nodes of 2 L4, {load}")
    assert result.plan is not None and result.estimate is not None and result.estimate.cost is not None
    ranked = search(f"Llama-3.2-1B on 3 nodes of 2 L4, {load}").best
    assert ranked is not None and ranked.gpus < (ranked.billed_gpus or 0), "the ranking takes the fewest"
    assert result.plan.strategy.gpu_count == ranked.billed_gpus
    assert result.report is not None and any(assumption.field == "gpus" for assumption in result.report.assumptions)


def is_apart(result: PlanResult) -> bool:
    assert result.plan is not None
    return is_disaggregated(result.plan.strategy)


def test_the_plan_is_the_simpler_one_and_the_first_lines_say_what_is_ahead_by_how_much() -> None:
    result, ranked = plan(**NEAR), search(**NEAR)
    best = ranked.best
    assert best is not None and is_disaggregated(best.strategy), "the ranking is by the figures"
    assert not is_apart(result) and result.valid
    head = render_plan(result, width=4000).split("\n\n")[0]
    assert re.search(r"1 prefill of one device \+ 1 decode of TP2 is \d\.\d% ahead by the figures", head)
    assert f"{SAY_APART}, for the other" in head
    assert result.report is not None
    assert "as good as the best for throughput" in result.report.explanation
    assert "no benchmark tells apart, but with servers of two kinds" in result.report.alternatives[0].reason


def test_what_a_report_says_to_say_brings_the_other_placement() -> None:
    assert is_apart(plan("disaggregated", **NEAR)) and is_apart(plan(**NEAR, disaggregated=True))
    assert is_apart(plan(**FAR))
    assert not is_apart(plan("no disaggregation", **FAR)) and not is_apart(plan(**FAR, disaggregated=False))


def test_the_plan_is_behind_the_best_by_no_more_than_repeats_differ() -> None:
    result, best = plan(**NEAR), search(**NEAR).best
    assert result.estimate is not None and best is not None
    rate = result.estimate.throughput.dp_scaled_tokens_per_s
    assert (best.output_tokens_per_s or 0.0) <= rate * (1 + REPEAT_SHARE)


@pytest.mark.parametrize(("nodes", "is_told"), [(17, True), (1, False)])
def test_on_more_gpus_than_are_searched_apart_the_report_says_so(nodes: int, is_told: bool) -> None:
    result = plan(**NEAR | {"hardware": f"{nodes}x8:h100-sxm"})
    assert result.report is not None
    reasons = [fact.reason for fact in result.report.assumptions if fact.field == "disaggregated"]
    assert any("searched apart only where asked" in reason for reason in reasons) == is_told
