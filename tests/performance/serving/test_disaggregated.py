"""Prefill and decode apart: against the same replicas stepped one by one, and what users of them must see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.errors import InputError
from shardwright.tools.performance.serving.disaggregated import Disaggregated, simulate_disaggregated
from shardwright.tools.performance.serving.inputs import requests_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.step_table import StepTable

from ...examples import examples
from .disaggregated_one_by_one import serve
from .engines import ENGINE, ROOMY, WINDOWED, simulate
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
    response_interval_steps=st.sampled_from([1, 1, 5]),
)
TABLES = st.sampled_from([ENGINE, WINDOWED])
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
    assert apart.inter_token_p99_s < together.inter_token_p99_s / 2


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
    one = simulate_disaggregated(deployed(), ClosedLoop(64, 640), lengths)
    two = simulate_disaggregated(deployed(prefill_servers=2), ClosedLoop(64, 640), lengths)
    assert one.prefill_share > 0.95
    assert two.output_tokens_per_s == pytest.approx(2 * one.output_tokens_per_s, rel=0.05)


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


@pytest.mark.parametrize(("field", "value"), [("prefill_servers", 0), ("decode_servers", 10**6), ("transfer_s", -1.0)])
def test_a_figure_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(InputError, match=field):
        deployed(**{field: value})


def test_a_request_that_no_decode_cache_holds_is_refused() -> None:
    small = replace(deployed(), decode_policy=replace(ROOMY, kv_tokens=1000))
    with pytest.raises(InputError, match="kv_tokens 1000 is less than a request of 1100"):
        simulate_disaggregated(small, Burst(2), Lengths(1000, 100))
