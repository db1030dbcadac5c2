"""Energy is a range between idle and board power that follows what the GPUs are busy with; unknown power is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.agent.report.cost import energy_text
from shardwright.tools.performance.energy import COMPUTE, IDLE, energy_of
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.planned_run import planned_run
from shardwright.tools.plan.lengths import Arrivals
from shardwright.tools.plan.performance import EnergyEstimate, TimeParts

from .conftest import make

COMPUTING = TimeParts(compute_ms=9.0, memory_ms=0.5, communication_ms=0.5, bubble_ms=0.0)
READING = TimeParts(compute_ms=0.5, memory_ms=9.0, communication_ms=0.5, bubble_ms=0.0)


def energy(layout: Any, prefill: TimeParts = COMPUTING, decode: TimeParts = READING, **load: Any) -> EnergyEstimate:
    setting = layout.setting.with_workload(layout.setting.workload.model_copy(update=load))
    loaded = layout.with_setting(setting)
    estimate = energy_of(loaded, planned_run(loaded).times, prefill, decode)
    assert estimate is not None
    return estimate


ONE = make("Llama-3.1-8B", gpus_per_node=1, concurrency=4)
PART = st.floats(0.0, 10.0)


@given(st.builds(TimeParts, compute_ms=PART, memory_ms=PART, communication_ms=PART, bubble_ms=PART))
@settings(max_examples=50)
def test_a_gpu_draws_between_idle_and_board_power(parts: TimeParts) -> None:
    estimate = energy(ONE, parts, parts)
    low, high = estimate.watts
    board = estimate.board_watts_per_gpu
    assert IDLE[0] * board - 1e-6 <= low <= high <= COMPUTE[1] * board + 1e-6
    assert estimate.joules_per_output_token[1] == pytest.approx(3.6 * estimate.kwh_per_million_output_tokens[1])


def test_joules_are_watts_over_the_tokens_that_are_served() -> None:
    estimate = energy(ONE)
    layout = ONE.with_setting(ONE.setting.with_workload(ONE.setting.workload))
    per_second = planned_run(layout).times.output_tokens_per_s
    assert estimate.joules_per_output_token == pytest.approx(tuple(watts / per_second for watts in estimate.watts))
    assert estimate.idle_share_pct == 0.0


def test_what_binds_decides_how_much_of_board_power_is_drawn() -> None:
    reading, computing = energy(ONE), energy(ONE, COMPUTING, COMPUTING)
    assert all(less < more for less, more in zip(reading.watts, computing.watts, strict=True))


def test_a_server_that_waits_for_requests_draws_less_and_more_a_token() -> None:
    busy, seldom = energy(ONE, request_rate=8.0), energy(ONE, request_rate=0.05)
    assert seldom.idle_share_pct > 80.0 > busy.idle_share_pct
    assert seldom.watts[1] < busy.watts[1]
    assert seldom.joules_per_output_token[0] > busy.joules_per_output_token[0]
    thinking = energy(ONE, arrivals=Arrivals(think_time_s=60.0))
    assert 0.0 < thinking.idle_share_pct < 100.0 and thinking.watts[1] < energy(ONE).watts[1]


def test_gpus_of_phases_apart_are_counted_by_what_each_does(layout_of: Any) -> None:
    apart = layout_of("Llama-3.1-8B", {"replicas": 1}, decode={"replicas": 2}, gpus_per_node=3, concurrency=4)
    estimate = energy(apart)
    assert estimate.watts[1] <= 3 * estimate.board_watts_per_gpu
    # The one GPU of prefill waits for most of the time.
    assert 0.0 < estimate.idle_share_pct < 34.0


def test_unknown_board_power_is_said_and_never_assumed() -> None:
    part = ONE.setting.hardware.accelerator.model_copy(update={"tdp_w": None})
    unknown = ONE.with_setting(
        replace(ONE.setting, hardware=replace(ONE.setting.hardware, accelerator=part), caches={})
    )
    estimate = estimate_layout(unknown, ())
    assert estimate.energy is None
    assert "Energy is not known: board power of h100-sxm is not catalogued" in estimate.notes


def test_the_line_has_the_range_and_what_it_is_of() -> None:
    estimate = estimate_layout(ONE, ()).energy
    assert estimate is not None and estimate.source
    text = energy_text(estimate, 1)
    for words in ("J (", "kWh a million", "W on average, 1 board of 700 W", "0% of the time without a request"):
        assert words in text
