"""Lengths and arrivals as data: their meaning, what is refused, and unchanged documents without them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shardwright.tools.plan.document import WorkloadBlock
from shardwright.tools.plan.lengths import LogNormal, RequestLengths
from shardwright.tools.plan.load import longest_stated, spread_of
from shardwright.tools.plan.quantiles import Independent, Quantiles, between, of_histogram, of_percentiles

REFUSED = json.loads((Path(__file__).parents[1] / "cases" / "lengths_refused.json").read_text(encoding="utf-8"))
TOKENS = st.integers(1, 100_000)


def drawn(side: Quantiles, count: int = 20_000) -> list[int]:
    return [side.at((place + 0.5) / count) for place in range(count)]


@given(st.lists(TOKENS, min_size=3, max_size=3).map(sorted))
def test_a_range_has_the_stated_length_as_its_mean(ends: list[int]) -> None:
    side = between(*ends)
    lengths = drawn(side, 4000)
    assert sum(lengths) / len(lengths) == pytest.approx(ends[1], abs=0.6 + (ends[2] - ends[0]) / 4000)
    assert side.mean == pytest.approx(ends[1])
    assert ends[0] <= lengths[0] and lengths[-1] <= ends[2]


@pytest.mark.parametrize(
    "points",
    [
        ((50.0, 1000.0), (95.0, 8000.0)),
        ((0.0, 16.0), (50.0, 700.0), (90.0, 2000.0), (99.0, 9000.0), (100.0, 32_000.0)),
        ((10.0, 100.0), (99.9, 100.0)),
    ],
)
def test_stated_percentiles_are_those_of_what_is_drawn(points: tuple[tuple[float, float], ...]) -> None:
    side = of_percentiles(points)
    for percent, tokens in points:
        assert side.at(percent / 100) == pytest.approx(tokens, rel=0.01)
    lengths = drawn(side)
    assert lengths == sorted(lengths)
    assert sum(lengths) / len(lengths) == pytest.approx(side.mean, rel=0.01)


@given(st.integers(10, 10_000), st.floats(0.0, 1.5))
def test_a_log_normal_fit_has_its_median_mean_and_percentiles(median: int, sigma: float) -> None:
    side = LogNormal.model_validate({"log_normal": {"median_tokens": median, "sigma": sigma}}).quantiles()
    assert side.at(0.5) == pytest.approx(median, abs=1)
    assert side.at(0.95) == pytest.approx(median * math.exp(1.6449 * sigma), rel=0.01, abs=1)
    # The last thousandth counts as long as the longest before it.
    assert side.mean == pytest.approx(median * math.exp(sigma**2 / 2), rel=0.06)


def test_a_histogram_is_even_within_its_bins() -> None:
    side = of_histogram([(100, 1), (200, 0), (300, 3)])
    assert side.at(0.2499999) == 100 and side.at(0.25) == 200
    assert side.at(0.625) == 250 and side.longest == 300
    assert side.mean == pytest.approx(0.25 * 50.5 + 0.75 * 250)


def test_requests_alike_have_no_spread_however_they_are_stated() -> None:
    for more in (
        {},
        {"input_tokens_range": (16, 512)},
        {"lengths": {"input": {"percentiles": [[0, 512], [100, 512]]}}},
    ):
        assert spread_of(WorkloadBlock.model_validate({"input_tokens": 512, "output_tokens": 9, **more})) is None


def test_what_was_written_before_is_written_as_before() -> None:
    workload = WorkloadBlock(input_tokens=512, output_tokens=9)
    assert json.loads(workload.model_dump_json()).keys() == {
        "input_tokens", "output_tokens", "concurrency", "ttft_statistic", "tpot_statistic", "objective"
    }  # fmt: skip


@pytest.mark.parametrize("stated", [{"end_to_end_ms_max": 9.0}, {"end_to_end_statistic": "p95"}], ids=str)
def test_what_is_stated_of_the_whole_answer_is_written_and_read_again(stated: dict[str, Any]) -> None:
    workload = WorkloadBlock.model_validate({"input_tokens": 512, "output_tokens": 9, **stated})
    written = json.loads(workload.model_dump_json())
    assert stated.items() <= written.items() and WorkloadBlock.model_validate(written) == workload


def test_the_longest_that_is_stated_is_not_the_longest_that_follows() -> None:
    stated = {"input": {"percentiles": [[50, 1000], [95, 8000]]}}
    workload = WorkloadBlock.model_validate({"input_tokens": 2200, "output_tokens": 100, "lengths": stated})
    assert longest_stated(workload) == (8000, 100)
    spread = spread_of(workload)
    assert isinstance(spread, Independent) and spread.longest_request > 40_000
    pairs = {"pairs": [[10, 900], [800, 20], [700, 200]]}
    joint = WorkloadBlock.model_validate({"input_tokens": 503, "output_tokens": 373, "lengths": pairs})
    assert longest_stated(joint) == (10, 900)


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_what_cannot_be_is_refused_with_its_reason(case: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        WorkloadBlock.model_validate({"input_tokens": 1000, "output_tokens": 200, **case["workload"]})
    assert case["says"] in str(refused.value)


@pytest.mark.parametrize(
    "lengths",
    [
        {"input": {"percentiles": [[50, 100], [95, 800]]}},
        {"input": {"histogram": [[1, 5], [2, 1], [900, 2]]}},
        {"input": {"log_normal": {"median_tokens": 300, "sigma": 0.5}}, "output": {"histogram": [[50, 1]]}},
        {"pairs": [[100, 10], [900, 50]]},
    ],
)
def test_twice_the_length_has_twice_the_mean(lengths: dict[str, Any]) -> None:
    once = RequestLengths.model_validate(lengths)
    twice = once.scaled("input", Fraction(2))
    before, after = once.spread(1, 7).means, twice.spread(1, 7).means
    assert after[0] == pytest.approx(2 * before[0], rel=0.01, abs=2)
    assert after[1] == before[1]
    assert RequestLengths.model_validate_json(twice.model_dump_json()) == twice
    assert once.scaled("output", Fraction(1, 2)).spread(1, 7).means[0] == before[0]
