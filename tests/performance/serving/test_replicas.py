"""Equal replicas under one load: what each gets, and what their users see together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.performance.serving.load import Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.replicas import Share, shares_of, simulate_replicas

from .engines import ENGINE, ROOMY, simulate

LENGTHS = Lengths(500, 100, 0.2)


@given(st.integers(1, 300), st.integers(1, 50))
def test_every_user_is_dealt_to_one_replica(users: int, replicas: int) -> None:
    shares = shares_of(ClosedLoop(users, 10 * users), replicas)
    assert sum(share.arrivals.users * share.replicas for share in shares) == users
    assert sum(share.arrivals.requests * share.replicas for share in shares) == 10 * users
    assert sum(share.replicas for share in shares) == min(users, replicas)
    assert max(share.arrivals.users for share in shares) - min(share.arrivals.users for share in shares) <= 1


@given(st.integers(1, 300), st.integers(1, 50))
def test_every_request_of_a_burst_or_batch_is_dealt_to_one_replica(requests: int, replicas: int) -> None:
    assert sum(share.arrivals.requests * share.replicas for share in shares_of(Burst(requests), replicas)) == requests
    batches = shares_of(StaticBatch(requests), replicas)
    assert sum(share.arrivals.sequences * share.replicas for share in batches) == requests


def test_an_open_loop_is_dealt_in_turn() -> None:
    assert shares_of(OpenLoop(10.0, 1000), 4) == (Share(OpenLoop(2.5, 250, one_of=4), 4),)
    assert shares_of(OpenLoop(10.0, 3), 4) == (Share(OpenLoop(10.0 / 3, 1, one_of=3), 3),)


def test_replicas_that_divide_the_users_evenly_act_as_one_with_its_share() -> None:
    alone = simulate(ENGINE, ROOMY, ClosedLoop(8, 80), LENGTHS)
    four = simulate_replicas(ENGINE, ROOMY, ClosedLoop(32, 320), LENGTHS, 4)
    assert (four.ttft, four.tpot, four.end_to_end) == (alone.ttft, alone.tpot, alone.end_to_end)
    assert four.output_tokens_per_s == pytest.approx(4 * alone.output_tokens_per_s)
    assert four.running == pytest.approx(4 * alone.running)
    assert four.prefill_share == pytest.approx(alone.prefill_share)


def test_uneven_replicas_are_pooled_request_by_request() -> None:
    more = simulate(ENGINE, ROOMY, ClosedLoop(3, 30), LENGTHS)
    fewer = simulate(ENGINE, ROOMY, ClosedLoop(2, 20), LENGTHS)
    together = simulate_replicas(ENGINE, ROOMY, ClosedLoop(5, 50), LENGTHS, 2)
    assert together.end_to_end.mean == pytest.approx((30 * more.end_to_end.mean + 20 * fewer.end_to_end.mean) / 50)
    assert fewer.tpot.p50 <= together.tpot.p50 <= more.tpot.p50
    assert together.makespan_s == max(more.makespan_s, fewer.makespan_s)


def test_more_replicas_than_users_leave_the_rest_idle() -> None:
    alone = simulate(ENGINE, ROOMY, ClosedLoop(1, 10), LENGTHS)
    idle = simulate_replicas(ENGINE, ROOMY, ClosedLoop(2, 20), LENGTHS, 8)
    assert idle.end_to_end == alone.end_to_end
    assert idle.output_tokens_per_s == pytest.approx(2 * alone.output_tokens_per_s)


def test_requests_dealt_in_turn_wait_less_than_a_random_share() -> None:
    load = OpenLoop(8.0, 4000)
    dealt = simulate_replicas(ENGINE, ROOMY, load, Lengths(2000, 1), 2)
    random = simulate(ENGINE, ROOMY, OpenLoop(4.0, 2000), Lengths(2000, 1))
    assert dealt.ttft.mean < random.ttft.mean
