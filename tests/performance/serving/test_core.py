"""The parts of the core: closed forms against plain sums, and the same run compiled."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.fidelity.compiled import compiled_run, in_arrays
from shardwright.tools.performance.serving.core import run
from shardwright.tools.performance.serving.costs import position, rate_at, time_at, window_pairs
from shardwright.tools.performance.serving.inputs import run_of
from shardwright.tools.performance.serving.load import Arrivals, ClosedLoop, Lengths, OpenLoop
from shardwright.tools.performance.serving.pace import steps_to_reach
from shardwright.tools.performance.serving.records import Seen
from shardwright.tools.plan.quantiles import Joint

from .engines import MEETING, ROOMY

# Mostly short requests, some very long.
UNLIKE = Lengths(210, 150, stated=Joint(((20, 300), (100, 40), (90, 200), (630, 60))))


@given(st.floats(0.0, 1e3), st.floats(1e-6, 1.0), st.floats(0.0, 1.0))
def test_steps_to_reach_are_the_fewest_that_last_so_long(duration: float, first: float, share: float) -> None:
    growth = first * share
    steps = steps_to_reach(duration, first, growth)
    assert steps * (first + 0.5 * growth * (steps - 1)) >= duration
    assert steps == 1 or (steps - 1) * (first + 0.5 * growth * (steps - 2)) < duration


@given(st.floats(0.0, 1e300), st.floats(1e-12, 1e6), st.floats(0.0, 1.0))
def test_steps_to_reach_end_however_far_it_is(duration: float, first: float, share: float) -> None:
    assert steps_to_reach(duration, first, first * share) >= 1


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 60))
def test_window_pairs_count_what_each_token_sees(prefix: int, tokens: int, window: int) -> None:
    assert window_pairs(prefix, tokens, window) == sum(min(prefix + j, window) for j in range(1, tokens + 1))


@pytest.mark.parametrize(
    ("x", "time", "rate"),
    [(0.5, 10.0, 10.0), (1.0, 10.0, 10.0), (2.0, 15.0, 15.0), (3.0, 20.0, 20.0), (6.0, 32.0, 32.0), (9.0, 44.0, 36.0)],
)
def test_columns_are_straight_between_points_and_beyond_the_end(x: float, time: float, rate: float) -> None:
    grid, column = [1.0, 3.0, 5.0, 7.0], [10.0, 20.0, 28.0, 36.0]
    assert time_at(column, position(grid, x)) == pytest.approx(time)
    assert rate_at(column, position(grid, x)) == pytest.approx(rate)


COMPILED = list(
    product(
        ("mixed", "prefill_first", "whole"),
        (ClosedLoop(30, 200), ClosedLoop(60, 200, think_s=2.0), OpenLoop(5.0, 200), OpenLoop(5.0, 200, burstiness=0.3)),
        (Lengths(300, 200, 0.4), UNLIKE),
        ((1, 0, 1), (3, 0, 1), (3, 10, 1), (1, 0, 4), (2, 0, 2)),
    )
)


# Without numba there is no second core to compare.
@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "arrivals", "lengths", "shape"), COMPILED if find_spec("numba") else [])
def test_compiled_by_numba_the_core_gives_the_same_numbers(
    mode: Any, arrivals: Arrivals, lengths: Lengths, shape: tuple[int, int, int]
) -> None:
    groups, wait, batches = shape
    policy = replace(ROOMY, mode=mode, kv_tokens=2500, jitter_s=0.01)
    policy = replace(policy, groups=groups, group_wait_steps=wait, batches=batches, kv_tokens=2500 // groups)
    parts = MEETING, *run_of(policy, arrivals, lengths)
    plain, fast = Seen.blank(200), in_arrays(Seen.blank(200))
    expected = run(*parts, plain)
    compiled: Any = compiled_run()
    totals = compiled(*map(in_arrays, parts), fast)
    assert totals.preemptions == expected.preemptions > 0
    assert totals.end_s == expected.end_s
    assert [list(times) for times in fast] == [list(times) for times in plain]
