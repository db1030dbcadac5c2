"""The error of a ratio of two layouts: what both share cancels, and only layouts of one question are compared."""

from __future__ import annotations

import math

import pytest

from shardwright.tools.fidelity.conformal import hardware_misses, ratio_misses
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.fidelity.table import MeasuredRow

from .rows import row_of


def measured(value: float, predicted: float, **changes: str) -> tuple[MeasuredRow, Situation, float]:
    row = row_of(value=str(value), **changes)
    situation = situation_of(row)
    assert isinstance(situation, Situation)
    return row, situation, predicted


def test_what_two_layouts_are_wrong_by_together_is_no_error_of_their_ratio() -> None:
    pair = [measured(8.0, 4.0), measured(5.0, 2.5, tp="2", gpus="2")]
    assert [miss.log_ratio for miss in ratio_misses(pair)] == pytest.approx([0.0, 0.0])


def test_a_pair_counts_both_ways_round() -> None:
    first, second = ratio_misses([measured(8.0, 8.0), measured(5.0, 4.0, tp="2", gpus="2")])
    assert first.log_ratio == pytest.approx(-second.log_ratio) and first.log_ratio != 0.0


@pytest.mark.parametrize(
    "other", [{"isl": "2048"}, {"concurrency_or_batch": "8"}, {"statistic": "p99"}, {"framework_version": "0.10.0"}]
)
def test_rows_of_two_questions_are_no_pair(other: dict[str, str]) -> None:
    assert not list(ratio_misses([measured(8.0, 8.0), measured(5.0, 4.0, tp="2", gpus="2", **other)]))


def test_two_rows_of_one_layout_are_no_pair() -> None:
    assert not list(ratio_misses([measured(8.0, 8.0), measured(5.0, 4.0)]))


ELSEWHERE = {"gpu": "H200-SXM-141GB"}


def test_what_two_kinds_of_hardware_are_wrong_by_together_is_no_error_of_their_ratio_whatever_the_layout() -> None:
    for layout in ({}, {"tp": "2", "gpus": "2"}):
        first, second = hardware_misses([measured(8.0, 4.0), measured(6.0, 2.0, **ELSEWHERE, **layout)])
        assert first.log_ratio == pytest.approx(-second.log_ratio) == pytest.approx(math.log(2 / 3))
        assert first.pair == second.pair, "a model on two kinds is one pair, whichever of them is the upper one"


@pytest.mark.parametrize(
    "other",
    [
        {}, {**ELSEWHERE, "isl": "2048"}, {**ELSEWHERE, "statistic": "p99"}, {**ELSEWHERE, "weights_dtype": "fp8"},
        {**ELSEWHERE, "framework_version": "0.10.0"},
    ],
)  # fmt: skip
def test_rows_that_differ_in_more_than_hardware_and_layout_are_no_pair_of_it(other: dict[str, str]) -> None:
    assert not list(hardware_misses([measured(8.0, 8.0), measured(5.0, 4.0, tp="2", gpus="2", **other)]))
