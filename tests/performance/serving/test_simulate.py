"""The simulator against the same engine stepped one by one, against closed forms, and against laws of queues."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.performance.serving.core import run
from shardwright.tools.performance.serving.draws import request_lengths
from shardwright.tools.performance.serving.inputs import run_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.policy import Mode, Policy
from shardwright.tools.performance.serving.records import Seen
from shardwright.tools.performance.serving.step_table import StepTable

from ...examples import examples
from .engines import BUSY_HOST, ENGINE, MEETING, MEETING_BUSY_HOST, ROOMY, WINDOWED, simulate
from .one_by_one import OneByOne, cost, decode_seconds

MODES: tuple[Mode, ...] = ("mixed", "prefill_first", "whole")
ARRIVALS = st.one_of(
    st.builds(ClosedLoop, users=st.integers(1, 12), requests=st.integers(1, 30)),
    st.builds(OpenLoop, rate_per_s=st.floats(0.1, 200.0), requests=st.integers(1, 30)),
    st.builds(Burst, requests=st.integers(1, 20)),
)
LENGTHS = st.builds(
    Lengths, input_tokens=st.integers(1, 120), output_tokens=st.integers(1, 40), spread=st.sampled_from([0.0, 0.2, 1.0])
)
POLICIES = st.builds(
    Policy,
    token_budget=st.sampled_from([5, 64, 200, 1000]),
    max_sequences=st.integers(1, 16),
    kv_tokens=st.sampled_from([170, 400, 100_000]),
    mode=st.sampled_from(MODES),
    reserve=st.sampled_from(["prompt", "full"]),
    prefix_hit_rate=st.sampled_from([0.0, 0.0, 0.4, 1.0]),
    client_s=st.sampled_from([0.0, 0.003]),
    jitter_s=st.sampled_from([0.0, 0.02]),
    groups=st.sampled_from([1, 1, 2, 3]),
    group_wait_steps=st.sampled_from([0, 0, 1, 4, 30]),
)


@examples(200)
@given(st.sampled_from([ENGINE, WINDOWED, MEETING, BUSY_HOST, MEETING_BUSY_HOST]), POLICIES, ARRIVALS, LENGTHS)
def test_skipping_stretches_of_decode_equals_stepping_one_by_one(
    table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths
) -> None:
    if policy.mode == "whole":
        policy = replace(policy, token_budget=max(policy.token_budget, lengths.input_tokens))
    rules, load = run_of(policy, arrivals, lengths)
    seen = Seen(*([-1.0] * len(load.inputs) for _ in Seen._fields))
    totals = run(table, rules, load, seen)
    slow = OneByOne(table, policy, load)
    requests = slow.serve()
    assert totals.preemptions == slow.preemptions
    assert totals.end_s == pytest.approx(slow.now, rel=1e-9)
    assert seen.arrived == pytest.approx([request.arrived for request in requests], rel=1e-9)
    assert seen.first == pytest.approx([request.first for request in requests], rel=1e-9)
    assert seen.done == pytest.approx([request.done for request in requests], rel=1e-9)


def test_the_stepped_runs_above_do_put_requests_back() -> None:
    policy = replace(ROOMY, kv_tokens=400)
    lengths = Lengths(100, 100)
    times = simulate(ENGINE, policy, ClosedLoop(4, 12), lengths)
    slow = OneByOne(ENGINE, policy, run_of(policy, ClosedLoop(4, 12), lengths)[1])
    slow.serve()
    assert times.preemptions == slow.preemptions > 0


@pytest.mark.parametrize("mode", MODES)
def test_one_user_waits_for_one_prefill_and_then_for_decode_steps(mode: Mode) -> None:
    times = simulate(ENGINE, replace(ROOMY, mode=mode), ClosedLoop(1, 3), Lengths(1000, 3))
    assert times.ttft.mean == times.ttft.p99 == pytest.approx(cost(ENGINE, [], [(0, 1000)], 1))
    assert times.tpot.mean == pytest.approx((decode_seconds(ENGINE, [1001]) + decode_seconds(ENGINE, [1002])) / 2)
    assert times.running < 1.0


def test_a_prompt_longer_than_the_budget_takes_a_step_for_each_chunk() -> None:
    times = simulate(ENGINE, replace(ROOMY, token_budget=400), ClosedLoop(1, 1), Lengths(1000, 1))
    chunks = cost(ENGINE, [], [(0, 400)], 0) + cost(ENGINE, [], [(400, 400)], 0) + cost(ENGINE, [], [(800, 200)], 1)
    assert times.ttft.mean == pytest.approx(chunks)


@pytest.mark.parametrize("table", [ENGINE, WINDOWED], ids=["full", "windowed"])
def test_a_static_batch_is_prefill_of_all_then_decode_of_all(table: StepTable) -> None:
    times = simulate(table, replace(ROOMY, token_budget=64), StaticBatch(4), Lengths(32, 30))
    prefill = 2 * cost(table, [], [(0, 32)] * 2, 2)
    decode = sum(decode_seconds(table, [size] * 4) for size in range(33, 62))
    assert times.ttft.mean == times.ttft.p50 == pytest.approx(prefill)
    assert times.tpot.mean == pytest.approx(decode / 29)
    assert times.end_to_end.p99 == times.makespan_s == pytest.approx(prefill + decode)
    assert times.output_tokens_per_s == pytest.approx(4 * 30 / times.makespan_s)


@pytest.mark.parametrize("mode", MODES)
def test_a_burst_that_fits_is_decoded_together_to_its_end(mode: Mode) -> None:
    times = simulate(ENGINE, replace(ROOMY, mode=mode), Burst(8), Lengths(1000, 50))
    decode = sum(decode_seconds(ENGINE, [size] * 8) for size in range(1001, 1050))
    assert times.makespan_s == pytest.approx(cost(ENGINE, [], [(0, 1000)] * 8, 8) + decode)
    assert times.end_to_end.p50 == times.end_to_end.p99


@pytest.mark.parametrize("mode", MODES)
def test_a_prompt_of_one_group_holds_up_the_decode_of_all(mode: Mode) -> None:
    # The second request comes while the first decodes, in a group of its own: their steps are one another's.
    policy = replace(ROOMY, mode=mode, groups=2)
    rules, load = run_of(policy, Burst(2), Lengths(4000, 50))
    chunk, step = cost(MEETING, [], [(0, 4000)], 1) + 4e-6 * 4001, decode_seconds(MEETING, [4001]) + 4e-3
    late = load._replace(arrivals=[0.0, chunk + 0.5 * step])
    seen = Seen.blank(2)
    run(MEETING, rules, late, seen)
    assert seen.first[0] == pytest.approx(cost(MEETING, [], [(0, 4000)], 1) + 0.016, rel=1e-2)
    assert seen.done[0] - seen.first[0] > 0.9 * chunk + decode_seconds(MEETING, [4001]) * 49
    assert seen.first[1] - late.arrivals[1] < chunk + step


def test_prompts_that_are_held_back_for_one_another_disturb_decode_less_often() -> None:
    load, lengths = ClosedLoop(32, 640), Lengths(2000, 200, 0.2)
    plain = simulate(MEETING, replace(ROOMY, groups=8), load, lengths)
    delayed = simulate(MEETING, replace(ROOMY, groups=8, group_wait_steps=30), load, lengths)
    assert delayed.ttft.mean > plain.ttft.mean
    assert delayed.prefill_share < plain.prefill_share
    assert delayed.tpot.mean < plain.tpot.mean


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reserve", ["prompt", "full"])
@pytest.mark.parametrize(("groups", "wait"), [(1, 0), (4, 0), (4, 20)])
def test_littles_law_holds_of_requests_in_the_system(mode: Mode, reserve: str, groups: int, wait: int) -> None:
    policy = replace(ROOMY, mode=mode, reserve=reserve, kv_tokens=25_000 // groups, client_s=0.01, jitter_s=0.0)
    policy = replace(policy, groups=groups, group_wait_steps=wait)
    users, requests = 40, 2000
    times = simulate(ENGINE, policy, ClosedLoop(users, requests), Lengths(800, 100, 0.2))
    rate = requests / times.makespan_s
    # But for the end of the run, when nobody comes any more, all users are in it all the time.
    assert rate * times.end_to_end.mean == pytest.approx(users, rel=0.03)


@pytest.mark.parametrize("mode", MODES)
def test_decoding_requests_are_those_between_first_and_last_token(mode: Mode) -> None:
    times = simulate(ENGINE, replace(ROOMY, mode=mode), ClosedLoop(16, 160), Lengths(800, 100))
    decoding_s = 160 * times.tpot.mean * 99
    assert times.running * times.makespan_s == pytest.approx(decoding_s)


def test_every_output_token_is_counted_once() -> None:
    lengths = Lengths(300, 200, 0.5)
    times = simulate(ENGINE, replace(ROOMY, kv_tokens=2000), ClosedLoop(10, 77), lengths)
    assert times.output_tokens_per_s * times.makespan_s == pytest.approx(sum(request_lengths(lengths, 77)[1]))


@pytest.mark.parametrize("mode", MODES)
def test_more_users_never_lower_the_throughput_where_nothing_is_short(mode: Mode) -> None:
    rates = [
        simulate(ENGINE, replace(ROOMY, mode=mode), ClosedLoop(users, 10 * users), Lengths(512, 128, 0.2))
        for users in (1, 2, 4, 8, 16, 32, 64, 128)
    ]
    for fewer, more in pairwise(rates):
        assert more.output_tokens_per_s >= fewer.output_tokens_per_s


@pytest.mark.thorough
def test_one_prompt_at_a_time_queues_as_m_d_1() -> None:
    policy = replace(ROOMY, mode="whole", token_budget=1000)
    service = cost(ENGINE, [], [(0, 1000)], 1)
    for load in (0.2, 0.5):
        times = simulate(ENGINE, policy, OpenLoop(load / service, 30_000), Lengths(1000, 1))
        waited = times.ttft.mean - service
        # Pollaczek-Khinchine for a constant service time.
        assert waited == pytest.approx(load * service / (2 * (1 - load)), rel=0.05)
        assert times.prefill_share == pytest.approx(load, rel=0.02)
        assert not times.saturated


@examples(100)
@given(POLICIES, ARRIVALS, LENGTHS)
def test_percentiles_are_in_order_and_runs_repeat(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> None:
    policy = replace(policy, token_budget=max(policy.token_budget, lengths.input_tokens))
    times = simulate(ENGINE, policy, arrivals, lengths)
    for statistics in (times.ttft, times.tpot, times.end_to_end):
        assert 0.0 <= statistics.p50 <= statistics.p90 <= statistics.p99
        assert statistics.mean <= statistics.p99 or statistics.p99 == pytest.approx(statistics.mean, rel=0.5)
    assert 0.0 <= times.prefill_share <= 1.0
    requests = len(run_of(policy, arrivals, lengths)[1].inputs)
    assert times.running <= min(policy.groups * policy.max_sequences, requests)
    assert simulate(ENGINE, policy, arrivals, lengths) == times


def test_the_cache_limits_how_many_run_and_the_rest_wait() -> None:
    small = replace(ROOMY, reserve="full", kv_tokens=10 * 1100)
    short = simulate(ENGINE, small, ClosedLoop(64, 640), Lengths(1000, 100))
    roomy = simulate(ENGINE, replace(small, kv_tokens=10**7), ClosedLoop(64, 640), Lengths(1000, 100))
    assert 8.0 < short.running <= 10.0 < roomy.running
    assert short.ttft.mean > 2 * roomy.ttft.mean


def test_slots_limit_how_many_run() -> None:
    times = simulate(ENGINE, replace(ROOMY, max_sequences=6), ClosedLoop(24, 240), Lengths(100, 300))
    assert 5.5 < times.running <= 6.0


def test_reserving_the_output_puts_nobody_back() -> None:
    lengths, load = Lengths(100, 400), ClosedLoop(32, 320)
    eager = simulate(ENGINE, replace(ROOMY, kv_tokens=6000), load, lengths)
    safe = simulate(ENGINE, replace(ROOMY, kv_tokens=6000, reserve="full"), load, lengths)
    assert eager.preemptions > 0
    assert safe.preemptions == 0
    assert eager.running > safe.running


def test_prompts_first_give_a_sooner_first_token_and_slower_later_ones() -> None:
    lengths, load = Lengths(6000, 200, 0.2), ClosedLoop(32, 320)
    mixed = simulate(ENGINE, replace(ROOMY, token_budget=2048), load, lengths)
    first = simulate(ENGINE, replace(ROOMY, token_budget=2048, mode="prefill_first"), load, lengths)
    assert first.ttft.mean < mixed.ttft.mean
    assert first.tpot.p99 > mixed.tpot.p99


def test_a_cached_prefix_is_attended_to_but_not_computed() -> None:
    times = simulate(ENGINE, replace(ROOMY, prefix_hit_rate=0.5), ClosedLoop(1, 1), Lengths(1000, 1))
    assert times.ttft.mean == pytest.approx(cost(ENGINE, [], [(500, 500)], 1))
    whole = simulate(ENGINE, replace(ROOMY, prefix_hit_rate=1.0), ClosedLoop(1, 1), Lengths(1000, 1))
    assert whole.ttft.mean == pytest.approx(cost(ENGINE, [], [(999, 1)], 1))


def test_the_client_adds_to_the_first_token_alone() -> None:
    load, lengths = ClosedLoop(1, 5), Lengths(1000, 50)
    plain = simulate(ENGINE, ROOMY, load, lengths)
    client = simulate(ENGINE, replace(ROOMY, client_s=0.01, client_s_per_token=1e-6), load, lengths)
    assert client.ttft.mean == pytest.approx(plain.ttft.mean + 0.011)
    assert client.end_to_end.mean == pytest.approx(plain.end_to_end.mean + 0.011)
    assert client.tpot.mean == pytest.approx(plain.tpot.mean)


def test_jitter_spreads_a_wave_of_equal_requests() -> None:
    load, lengths = ClosedLoop(16, 480), Lengths(2000, 100)
    wave = simulate(ENGINE, ROOMY, load, lengths)
    spread = simulate(ENGINE, replace(ROOMY, jitter_s=1.0), load, lengths)
    assert spread.ttft.p50 < wave.ttft.p50


def test_the_warm_up_of_an_open_loop_counts_for_no_latency() -> None:
    load, lengths = OpenLoop(2.0, 400), Lengths(1000, 400, 0.2)
    everything = simulate(ENGINE, ROOMY, load, lengths)
    steady = simulate(ENGINE, ROOMY, replace(load, warmup=100), lengths)
    assert steady.tpot.mean > everything.tpot.mean
    assert steady.output_tokens_per_s == everything.output_tokens_per_s


def test_overload_of_an_open_loop_is_said() -> None:
    lengths = Lengths(1000, 100, 0.2)
    capacity = 400 / simulate(ENGINE, ROOMY, Burst(400), lengths).makespan_s
    policy = replace(ROOMY, max_sequences=64)
    assert simulate(ENGINE, policy, OpenLoop(2.0 * capacity, 800), lengths).saturated
    assert not simulate(ENGINE, policy, OpenLoop(0.5 * capacity, 800), lengths).saturated
    assert not simulate(ENGINE, policy, ClosedLoop(64, 640), lengths).saturated


def test_more_of_a_windowed_context_costs_no_more_than_the_window() -> None:
    outside = replace(WINDOWED, decode_per_token_s=[0.0] * 6)
    long, longer = (simulate(outside, ROOMY, ClosedLoop(1, 1), Lengths(tokens, 20)) for tokens in (100, 1000))
    assert longer.tpot.mean == pytest.approx(long.tpot.mean)
