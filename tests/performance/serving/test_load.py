"""Draws, defaults and statistics: the same on every machine, and true to their definition."""

from __future__ import annotations

import statistics as library
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from shardwright.tools.performance.serving.draws import (
    INPUT_STREAM,
    OUTPUT_STREAM,
    arrivals_at,
    drawn_lengths,
    uniforms,
)
from shardwright.tools.performance.serving.load import ClosedLoop, closed_loop
from shardwright.tools.performance.serving.summary import statistics_of

SAMPLES = st.lists(st.floats(0.0, 1e3), min_size=2, max_size=60)


def test_draws_are_the_same_on_every_machine() -> None:
    assert uniforms(INPUT_STREAM, 3) == (0.13436424411240122, 0.8474337369372327, 0.763774618976614)
    assert uniforms(INPUT_STREAM, 50)[:3] == uniforms(INPUT_STREAM, 3)
    assert uniforms(OUTPUT_STREAM, 3) != uniforms(INPUT_STREAM, 3)


@given(st.integers(1, 10_000), st.floats(0.0, 1.0))
def test_lengths_stay_within_their_spread(nominal: int, spread: float) -> None:
    lengths = drawn_lengths(nominal, spread, INPUT_STREAM, 200)
    assert max(1, (1.0 - spread) * nominal) <= min(lengths) + 1e-9
    assert max(lengths) <= nominal


def test_lengths_are_uniform_and_without_spread_all_alike() -> None:
    assert library.mean(drawn_lengths(1000, 0.2, INPUT_STREAM, 5000)) == pytest.approx(900, rel=0.005)
    assert set(drawn_lengths(1000, 0.0, INPUT_STREAM, 50)) == {1000}


@pytest.mark.parametrize("one_of", [1, 4, 500])
def test_arrivals_come_at_their_rate_and_more_evenly_where_dealt(one_of: int) -> None:
    times = arrivals_at(5.0, 4000, one_of)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert library.mean(gaps) == pytest.approx(0.2, rel=0.03)
    # An Erlang gap of k parts varies by 1 / sqrt(k).
    assert library.stdev(gaps) / 0.2 == pytest.approx(min(one_of, 64) ** -0.5, rel=0.06)


@pytest.mark.parametrize(("burstiness", "one_of"), [(0.25, 1), (0.7, 1), (1.5, 1), (4.0, 1), (0.25, 3), (0.25, 4)])
def test_gaps_of_bursts_vary_as_a_gamma_distribution(burstiness: float, one_of: int) -> None:
    times = arrivals_at(5.0, 20_000, one_of, burstiness)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert library.mean(gaps) == pytest.approx(0.2, rel=0.03)
    assert library.stdev(gaps) / 0.2 == pytest.approx((burstiness * one_of) ** -0.5, rel=0.04)


def test_random_arrivals_are_bursts_of_the_shape_one() -> None:
    assert arrivals_at(5.0, 300, 3) == arrivals_at(5.0, 300, 3, 1.0)
    # More gaps in a row than make a difference are not drawn.
    assert len(arrivals_at(5.0, 300, 500, 100.0)) == 300


@pytest.mark.parametrize(
    ("users", "replicas", "each"), [(1, 1, 10), (500, 1, 10), (800, 1, 6), (800, 2, 10), (1024, 1, 5), (4000, 1, 5)]
)
def test_a_closed_loop_has_ten_requests_a_user_until_that_is_too_slow(users: int, replicas: int, each: int) -> None:
    assert closed_loop(users, replicas) == ClosedLoop(users, each * users)


@given(SAMPLES)
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    cuts = library.quantiles(values, n=100, method="inclusive")
    figures = statistics_of([(values, 1)])
    assert (figures.p50, figures.p90, figures.p99) == pytest.approx((cuts[49], cuts[89], cuts[98]), rel=1e-9, abs=1e-9)
    assert figures.mean == pytest.approx(library.fmean(values))


@given(st.lists(st.tuples(SAMPLES, st.integers(1, 5)), min_size=2, max_size=5))
def test_samples_count_as_often_as_they_are_given_with(samples: list[tuple[list[float], int]]) -> None:
    repeated = [value for values, weight in samples for value in values * weight]
    weighted, expected = statistics_of(samples), statistics_of([(repeated, 1)])
    assert astuple(weighted) == pytest.approx(astuple(expected), rel=1e-9, abs=1e-9)


def test_nothing_and_one_value_have_statistics() -> None:
    assert statistics_of([([], 1)]).p99 == 0.0
    assert statistics_of([([3.0], 1)]).p99 == 3.0
