"""Prefill and decode apart: against the same replicas stepped one by one, and against what users must see."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.performance.serving.disaggregated import ApartRun, Disaggregated, simulate_disaggregated
from shardwright.tools.performance.serving.inputs import requests_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.prefix_cache import PrefixCache
from shardwright.tools.performance.serving.step_table import StepTable
from shardwright.tools.plan.prefixes import Routing, SharedPrefixes

from ...examples import examples
from .disaggregated_one_by_one import serve
from .engines import BUSY_HOST, ENGINE, ROOMY, WINDOWED, simulate
from .one_by_one import cost, decode_seconds

ARRIVALS = st.one_of(
    st.builds(ClosedLoop, users=st.integers(1, 12), requests=st.integers(1, 30)),
    st.builds(OpenLoop, rate_per_s=st.floats(0.1, 300.0), requests=st.integers(1, 30)),
    st.builds(Burst, requests=st.integers(1, 20)),
)
LENGTHS = st.builds(
    Lengths, input_tokens=st.integers(1, 120), output_tokens=st.integers(1, 40), spread=st.sampled_from([0.0, 0.2, 1.0])
)
PREFILL = st.builds(
    Policy,
    token_budget=st.sampled_from([7, 130, 500]),
    max_sequences=st.just(1),
    kv_tokens=st.just(1000),
    prefix_hit_rate=st.sampled_from([0.0, 0.4]),
    client_s=st.sampled_from([0.0, 0.003]),
    jitter_s=st.sampled_from([0.0, 0.02]),
)
DECODE = st.builds(
    Policy,
    token_budget=st.just(1000),
    max_sequences=st.integers(1, 8),
    kv_tokens=st.sampled_from([170, 400, 100_000]),
)
TABLES = st.sampled_from([ENGINE, WINDOWED, BUSY_HOST])
DEPLOYMENTS = st.builds(
    Disaggregated,
    prefill_table=TABLES,
    prefill_policy=PREFILL,
    decode_table=TABLES,
    decode_policy=DECODE,
    prefill_servers=st.integers(1, 3),
    decode_servers=st.integers(1, 3),
    transfer_s=st.sampled_from([0.0, 0.004]),
    transfer_s_per_token=st.sampled_from([0.0, 1e-5]),
)


def deployed(table: StepTable = ENGINE, **fields: Any) -> Disaggregated:
    return Disaggregated(table, ROOMY, table, ROOMY, **fields)


# Derandomised: where equal replicas finish equal requests at once, rounding alone says who is first; both are right.
@examples(200, derandomize=True)
@given(DEPLOYMENTS, ARRIVALS, LENGTHS)
def test_skipping_stretches_of_decode_equals_stepping_one_by_one(
    deployment: Disaggregated, arrivals: Arrivals, lengths: Lengths
) -> None:
    if deployment.decode_servers > 1:
        lengths = replace(lengths, spread=1.0)
    times = simulate_disaggregated(deployment, arrivals, lengths)
    load = requests_of(deployment.prefill_policy, arrivals, lengths)
    requests = serve(deployment, load)
    ttft = [request.first - request.arrived + deployment.prefill_policy.client_s for request in requests]
    assert times.ttft.mean == pytest.approx(sum(ttft) / len(ttft), rel=1e-9)
    assert times.makespan_s == pytest.approx(max(request.done for request in requests), rel=1e-9)
    assert times.end_to_end.mean == pytest.approx(
        sum(r.done - r.arrived + deployment.prefill_policy.client_s for r in requests) / len(requests), rel=1e-9
    )
    gaps = [(r.done - r.first) / (r.output - 1) for r in requests if r.output > 1]
    assert times.tpot.mean == pytest.approx(sum(gaps) / len(gaps) if gaps else 0.0, rel=1e-9, abs=1e-15)


def test_one_user_waits_for_prefill_and_transfer_and_then_for_decode_steps() -> None:
    times = simulate_disaggregated(
        deployed(transfer_s=0.01, transfer_s_per_token=1e-6), ClosedLoop(1, 5), Lengths(1000, 3)
    )
    assert times.ttft.p99 == pytest.approx(cost(ENGINE, [], [(0, 1000)], 1) + 0.011)
    decode = (decode_seconds(ENGINE, [1001]) + decode_seconds(ENGINE, [1002])) / 2
    assert times.tpot.mean == pytest.approx(decode)
    assert times.output_tokens_per_s * times.makespan_s == pytest.approx(15)


def test_decode_apart_is_not_held_up_by_prompts() -> None:
    load, lengths = ClosedLoop(32, 320), Lengths(4000, 200, 0.2)
    apart = simulate_disaggregated(deployed(), load, lengths)
    together = simulate(ENGINE, ROOMY, load, lengths)
    assert apart.tpot.mean < together.tpot.mean


@pytest.mark.parametrize("kind", ["prefill_servers", "decode_servers"])
def test_more_replicas_of_either_kind_never_cost_throughput(kind: str) -> None:
    rates = [
        simulate_disaggregated(deployed(**{kind: servers}), ClosedLoop(48, 480), Lengths(2000, 100, 0.2))
        for servers in (1, 2, 4)
    ]
    assert rates[0].output_tokens_per_s <= 1.001 * rates[1].output_tokens_per_s
    assert rates[1].output_tokens_per_s <= 1.001 * rates[2].output_tokens_per_s


def test_the_slower_kind_of_replica_sets_the_rate() -> None:
    lengths = Lengths(4000, 20)
    one_server = simulate_disaggregated(deployed(), ClosedLoop(64, 640), lengths)
    two_servers = simulate_disaggregated(deployed(prefill_servers=2), ClosedLoop(64, 640), lengths)
    assert one_server.prefill_share > 0.95
    assert two_servers.output_tokens_per_s == pytest.approx(2 * one_server.output_tokens_per_s, rel=0.05)


def test_a_full_decode_cache_makes_requests_wait_and_says_so_in_an_open_loop() -> None:
    deployment = deployed()
    small = replace(deployment, decode_policy=replace(ROOMY, kv_tokens=4 * 1200))
    times = simulate_disaggregated(small, OpenLoop(20.0, 400), Lengths(1000, 200))
    assert times.running <= 4.0
    assert times.saturated
    assert not simulate_disaggregated(deployment, OpenLoop(20.0, 400), Lengths(1000, 200)).saturated


def test_a_static_batch_is_refused() -> None:
    with pytest.raises(InputError, match="StaticBatch"):
        simulate_disaggregated(deployed(), StaticBatch(4), Lengths(100, 10))


@pytest.mark.parametrize("arrivals", [ClosedLoop(30, 120), OpenLoop(5.0, 150, 1, 30, 0.3), Burst(30)], ids=str)
def test_one_prefill_replica_that_finds_nothing_has_the_numbers_of_one_without_a_cache(arrivals: Arrivals) -> None:
    policy = replace(ROOMY, jitter_s=0.01, prefix_block_tokens=10**9)
    deployment = replace(deployed(decode_servers=2), prefill_policy=policy)
    lengths = Lengths(300, 200, 0.4)
    alone = simulate_disaggregated(deployment, arrivals, lengths)
    times = simulate_disaggregated(deployment, arrivals, replace(lengths, prefixes=SharedPrefixes(system_tokens=100)))
    assert times.prefix_hit_share == 0.0
    assert replace(times, prefix_hit_share=None, cache_filled_share=None) == alone


@examples(150)
@given(
    ARRIVALS,
    st.sampled_from([*get_args(Routing)]),
    st.sampled_from([{"system_tokens": 20}, {"turns": 3}, {"system_tokens": 9, "turns": 2}]),
    st.integers(1, 4),
    st.integers(1, 2),
    st.sampled_from([130, 400, 100_000]),
)
def test_every_prompt_is_found_or_computed_once_and_leaves_a_whole_cache(
    arrivals: Arrivals, routing: Routing, shared: dict[str, int], servers: int, passes: int, kv_tokens: int
) -> None:
    prefixes = SharedPrefixes(**shared, routing=routing)
    turns = prefixes.turn_lengths(60, 10)
    lengths = Lengths(60, 10, stated=turns, prefixes=prefixes)
    policy = replace(ROOMY, token_budget=100, kv_tokens=kv_tokens, prefix_block_tokens=4)
    deployment = replace(
        deployed(prefill_servers=servers, prefill_passes=passes, decode_servers=2), prefill_policy=policy
    )
    run = ApartRun(deployment, arrivals, lengths)
    run.serve()
    assert run.arrived == run.callers.count
    for arrived, first, done in zip(run.seen.arrived, run.seen.first, run.seen.done, strict=True):
        assert 0.0 <= arrived < first <= done
    inputs = run.requests.inputs
    for hit, prompt, before in zip(run.hits, inputs, run.callers.talks.leaves, strict=True):
        assert 0 <= hit < prompt and hit % 4 == 0 and before >= 0
    for target in run.targets:
        cache = target.cache
        assert isinstance(cache, PrefixCache)
        assert target.scheduler.present == target.scheduler.cached == 0 == len(target.scheduler.waiting)
        assert not cache.pins and set(cache.held) == set(cache.free)
        assert cache.free_blocks == sum(cache.held.values()) <= kv_tokens // 4
