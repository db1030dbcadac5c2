"""Ranges that hold 90% of measurements: what makes one, what widens it, and that a pair never judges itself."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from shardwright.benchmarks.fits.coverage import coverage
from shardwright.tools.calibration.error_ranges import Cell, range_of, shipped_ranges
from shardwright.tools.fidelity.conformal import (
    FEWEST_PAIRS,
    FEWEST_ROWS,
    Miss,
    cell_of,
    miss_of,
    ranges_of,
)
from shardwright.tools.fidelity.situation import Situation, situation_of

from .rows import row_of

FINE = Cell("tpot", "loaded", "dense", "vllm", "v1")


def misses(pairs: int, rows: int, seed: int = 1, cell: Cell = FINE) -> list[Miss]:
    """Errors of drawn pairs, each with a bias of its own."""
    rng = random.Random(seed)
    drawn: list[Miss] = []
    for pair in range(pairs):
        pair_bias = rng.gauss(0.1, 0.2)
        drawn += [Miss(cell, f"{cell.engine}-{pair}", rng.gauss(pair_bias, 0.1)) for _ in range(rows)]
    return drawn


def log_ends(errors: Sequence[Miss], cell: Cell = FINE) -> tuple[float, float]:
    interval = range_of(cell, ranges_of(errors))
    assert interval is not None
    return math.log(interval.low), math.log(interval.high)


def test_about_nine_in_ten_rows_of_pairs_that_were_never_seen_lie_inside() -> None:
    inside: list[bool] = []
    for seed in range(40):
        low, high = log_ends(misses(24, 6, seed))
        inside += [low <= miss.log_ratio <= high for miss in misses(20, 3, seed + 1000)]
    assert 0.87 <= sum(inside) / len(inside) <= 0.97
    (judged,) = coverage(misses(40, 10))
    assert 87 <= judged.inside_pct <= 95 and judged.rangeless == 0


def test_a_pair_counts_the_same_however_many_rows_it_has() -> None:
    few = misses(30, 5)
    many = few + [miss for miss in few if miss.pair == "vllm-7"] * 100
    assert log_ends(many) == log_ends(few)


def test_fewer_pairs_are_a_wider_range() -> None:
    # The same errors, once of many pairs and once of few.
    errors = [math.log(2) * (place / 199 - 0.5) for place in range(200)]
    wide, narrow = (
        log_ends([Miss(FINE, str(place % pairs), error) for place, error in enumerate(errors)])
        for pairs in (FEWEST_PAIRS, 100)
    )
    assert wide[0] < narrow[0] and wide[1] > narrow[1]


@pytest.mark.parametrize(("pairs", "rows"), [(1, 500), (FEWEST_PAIRS - 1, 50), (FEWEST_PAIRS, 1)])
def test_too_few_pairs_or_rows_make_no_range(pairs: int, rows: int) -> None:
    assert pairs * rows < FEWEST_ROWS or pairs < FEWEST_PAIRS
    assert ranges_of(misses(pairs, rows)) == ()


def test_a_cell_with_too_few_pairs_has_the_range_of_the_one_that_holds_it() -> None:
    other = Cell("tpot", "loaded", "dense", "sglang", "any")
    ranges = ranges_of(misses(20, 5) + misses(3, 50, cell=other))
    exact, fallen = range_of(FINE, ranges), range_of(other, ranges)
    assert exact is not None and exact.cell == FINE
    assert fallen is not None and fallen.cell == Cell("tpot", "loaded", "dense") and fallen.pairs == 23
    assert range_of(Cell("tpot", "low", "dense"), ranges) is None


def test_no_pair_is_judged_by_a_range_that_it_was_part_of() -> None:
    alike = [Miss(FINE, str(pair), 0.01 * row) for pair in range(FEWEST_PAIRS) for row in range(5)]
    stranger = [Miss(FINE, "stranger", 3.0) for _ in range(5)]
    (judged,) = coverage(alike + stranger)
    assert judged.inside_by_pair_pct == pytest.approx(100 * FEWEST_PAIRS / (FEWEST_PAIRS + 1))


def test_a_figure_without_a_prediction_is_outside_of_every_range() -> None:
    situation = situation_of(row_of())
    assert isinstance(situation, Situation)
    failed = miss_of(situation, 7.5, None)
    low, high = log_ends(misses(30, 5))
    assert not low <= failed.log_ratio <= high


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({}, Cell("tpot", "low", "dense", "vllm", "v1")),
        ({"concurrency_or_batch": "9"}, Cell("tpot", "loaded", "dense", "vllm", "v1")),
        ({"metric": "ttft_ms", "concurrency_or_batch": "qps=1"}, Cell("ttft", "loaded", "dense", "vllm", "v1")),
        ({"metric": "output_tok_s_total", "framework": "SGLang"}, Cell("throughput", "low", "dense", "sglang", "any")),
        ({"metric": "e2e_latency_ms", "model": "mistralai/Mixtral-8x7B-v0.1", "gpus": "2", "tp": "2"},
         Cell("end_to_end", "low", "moe", "vllm", "v1")),
    ],
)  # fmt: skip
def test_a_row_belongs_to_the_cell_of_its_metric_load_model_and_engine(changes: dict[str, str], cell: Cell) -> None:
    situation = situation_of(row_of(**changes))
    assert isinstance(situation, Situation), situation
    assert cell_of(situation) == cell


def test_what_ships_has_enough_behind_every_range_and_a_range_for_every_metric() -> None:
    for interval in shipped_ranges().ranges:
        assert interval.low < 1.0 < interval.high
        assert interval.pairs >= FEWEST_PAIRS and interval.rows >= FEWEST_ROWS
    for metric in ("ttft", "tpot", "end_to_end", "throughput"):
        assert range_of(Cell(metric, "loaded", "moe", "some engine"), shipped_ranges().ranges) is not None
