"""The best alternative is named with its figures: phases together or apart, or another card."""

from __future__ import annotations

import pytest

import shardwright
from shardwright.tools.plan.placement import is_disaggregated

SMALL = "Llama-3.2-1B, 512 in, 64 out"


@pytest.mark.parametrize(
    ("words", "lost_by"),
    [
        ("on 2 L4, 16 users, throughput", "output tokens/s against"),
        ("on 2 L4, 16 users, latency", "ms from end to end against"),
        ("on 4 L4, 32 users, throughput, TPOT below 11 ms", "exceeds 11 ms"),
    ],
)
def test_the_best_with_the_phases_placed_otherwise_is_told_with_what_decided(words: str, lost_by: str) -> None:
    result = shardwright.plan(f"{SMALL}, {words}")
    assert result.plan is not None and result.report is not None
    is_apart = is_disaggregated(result.plan.strategy)
    placed = "both phases on the same GPUs" if is_apart else "prefill and decode on GPUs of their own"
    _, phrase, figures = result.report.explanation.partition(f"With {placed} the best is ")
    assert phrase and "TTFT" in figures and "TPOT" in figures
    assert lost_by in figures


@pytest.mark.parametrize("words", ["on one L4, 4 users", "on 2 L4, 4 users, no disaggregation"])
def test_nothing_is_told_of_what_was_not_looked_at(words: str) -> None:
    report = shardwright.plan(f"{SMALL}, {words}").report
    assert report is not None and "the best is " not in report.explanation


def test_how_many_of_the_other_cards_would_cost_less_is_told() -> None:
    report = shardwright.plan(f"{SMALL}, 2 requests/s, cheapest, on L4 or H100").report
    assert report is not None
    hardware = next(assumption for assumption in report.assumptions if assumption.field == "hardware")
    assert hardware.value == "1x1:l4" and "not compared" not in hardware.reason
    other = shardwright.plan(f"{SMALL}, 200 requests/s, cheapest, on L4 or H100").report
    assert other is not None
    hardware = next(assumption for assumption in other.assumptions if assumption.field == "hardware")
    assert "would cost less than its" in hardware.reason
