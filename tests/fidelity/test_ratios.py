"""The error of a ratio of two layouts: what both share cancels, and only layouts of one question are compared."""

from __future__ import annotations

import pytest

from shardwright.tools.fidelity.conformal import ratio_misses
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
    assert [one.log_ratio for one in ratio_misses(pair)] == pytest.approx([0.0, 0.0])


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
