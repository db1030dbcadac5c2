"""The highest rate within limits: it keeps them, a little more does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardwright.tools.performance.serving.load import Arrivals, Burst, Lengths, OpenLoop, ServingTimes
from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.rate import Limits, highest_rate
from shardwright.tools.performance.serving.simulate import simulate

from .engines import ENGINE, ROOMY

LENGTHS = Lengths(1000, 100, 0.2)


def serve(arrivals: Arrivals, policy: Policy = ROOMY) -> ServingTimes:
    return simulate(ENGINE, policy, arrivals, LENGTHS)


@pytest.mark.parametrize("limits", [Limits(tpot_s=0.02), Limits(ttft_s=0.15), Limits(0.3, 0.05, "p90", "p99")])
def test_the_rate_keeps_the_limits_and_a_little_more_breaks_them(limits: Limits) -> None:
    rate = highest_rate(serve, limits)
    assert limits.hold(serve(OpenLoop(rate, 400)))
    above = serve(OpenLoop(1.05 * rate, 400))
    assert above.saturated or not limits.hold(above)


def test_without_limits_the_rate_is_what_is_served_without_a_growing_queue() -> None:
    few_slots = replace(ROOMY, max_sequences=16)
    rate = highest_rate(lambda arrivals: serve(arrivals, few_slots), Limits())
    capacity = 400 / serve(Burst(400), few_slots).makespan_s
    assert 0.7 * capacity < rate <= capacity


def test_limits_that_one_request_alone_breaks_leave_no_rate() -> None:
    assert highest_rate(serve, Limits(ttft_s=1e-3)) == 0.0


def test_looser_limits_never_lower_the_rate() -> None:
    rates = [highest_rate(serve, Limits(tpot_s=tpot)) for tpot in (0.012, 0.015, 0.02, 0.04)]
    assert rates == sorted(rates)
