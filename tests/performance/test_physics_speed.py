"""Time obeys physics for every deployment: better hardware, more work, more replicas, more stages.

Under load a faster part must not slow a bare pass, nor lower the rate by more than a schedule may lose by chance:
serving prompts sooner may put more of them into one step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.plan.performance import LatencyEstimate

from ..examples import examples
from .physics_space import Deployment, deployments, faster_part, has_nic
from .seen import Seen, seen

pytestmark = pytest.mark.thorough

ROUNDING = 1e-9
# Share by which a run may be longer by chance.
CHANCE = 0.1
quick = examples(
    40, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)  # fmt: skip
kinds_of_speed = st.sampled_from(["memory", "compute", "intra", "inter"])
factors = st.sampled_from([1.01, 1.2, 1.5, 2.0, 4.0, 8.0])
alone = deployments().map(lambda deployment: deployment.with_(concurrency=1))


def at_most(less: float, more: float) -> bool:
    """Whether `less` is no more than `more`, but for a rounding error."""
    return less <= more * (1 + ROUNDING)


def step_ms(latency: LatencyEstimate) -> float:
    """One decode step, without what other requests' prompts add to a token's time."""
    parts = latency.decode_step
    return parts.compute_ms + parts.memory_ms + parts.communication_ms + parts.bubble_ms


def same_times(first: LatencyEstimate, second: LatencyEstimate, left_out: Set[str] = frozenset()) -> bool:
    """Whether two estimates agree but for the rounding of sums."""
    dumps = (latency.model_dump(exclude=set(left_out)) for latency in (first, second))
    pairs = zip(*map(flat, dumps), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in pairs)


def flat(block: Mapping[str, Any]) -> Iterator[float]:
    """Every number of a block."""
    for value in block.values():
        if isinstance(value, Mapping):
            yield from flat(value)
        else:
            yield value


def times(deployment: Deployment) -> Seen:
    return seen(deployment.layout())


def longer_input(deployment: Deployment, more: int) -> Deployment:
    """The same with a prompt `more` tokens longer, as far as the model's positions allow."""
    limit = deployment.architecture.max_position_embeddings - deployment.workload.output_tokens
    tokens = min(deployment.workload.input_tokens + more, limit)
    assume(tokens > deployment.workload.input_tokens)
    return deployment.with_(input_tokens=tokens)


def with_faster_part(deployment: Deployment, speed: str, factor: float) -> Deployment:
    return deployment.with_(accelerator=faster_part(deployment.accelerator, speed, factor))


def assert_no_slower(slow: Deployment, fast: Deployment) -> None:
    before, after = (estimate_layout(deployment.layout(), ()) for deployment in (slow, fast))
    assert at_most(after.latency.prefill_ms, before.latency.prefill_ms)
    assert at_most(step_ms(after.latency), step_ms(before.latency))
    rates = (estimate.throughput.dp_scaled_tokens_per_s for estimate in (before, after))
    assert at_most(next(rates) * (1 - CHANCE), next(rates))


@quick
@given(alone, kinds_of_speed, factors)
def test_more_bandwidth_arithmetic_or_link_speed_never_slows_one_request(
    deployment: Deployment, speed: str, factor: float
) -> None:
    slow, fast = times(deployment), times(with_faster_part(deployment, speed, factor))
    assert at_most(fast.ttft_ms, slow.ttft_ms)
    assert at_most(fast.tpot_ms, slow.tpot_ms)
    assert at_most(fast.end_to_end_ms, slow.end_to_end_ms)


@quick
@given(deployments(), kinds_of_speed, factors)
def test_more_bandwidth_arithmetic_or_link_speed_never_slows_a_loaded_deployment(
    deployment: Deployment, speed: str, factor: float
) -> None:
    assert_no_slower(deployment, with_faster_part(deployment, speed, factor))


@quick
@given(alone, st.sampled_from([1, 7, 100, 1000, 10_000]))
def test_a_longer_prompt_never_has_a_lower_ttft_nor_a_faster_decode(deployment: Deployment, more: int) -> None:
    short, long = times(deployment), times(longer_input(deployment, more))
    # The time of a pair of tokens is a secant up to the prompt's length, and may fall slightly with it; one chunk more
    # fills a pipeline better.
    trace = 1e-4 if deployment.strategy.prefill.pp == 1 else 1e-2
    assert at_most(short.ttft_ms, long.ttft_ms * (1 + trace))
    assert at_most(short.tpot_ms, long.tpot_ms)


@quick
@given(deployments(), st.sampled_from([1, 7, 100, 1000, 10_000]))
def test_more_context_never_shortens_a_step_of_a_batch(deployment: Deployment, more: int) -> None:
    short, long = (estimate_layout(case.layout(), ()).latency for case in (deployment, longer_input(deployment, more)))
    assert at_most(step_ms(short), step_ms(long))


@quick
@given(deployments(), st.sampled_from([1, 2, 5, 50, 500]))
def test_more_users_never_speed_up_a_single_one(deployment: Deployment, more: int) -> None:
    few = estimate_layout(deployment.layout(), ()).latency
    crowded = deployment.with_(concurrency=deployment.workload.concurrency + more)
    many = estimate_layout(crowded.layout(), ()).latency
    assert at_most(step_ms(few), step_ms(many))
    assert at_most(few.end_to_end_ms * (1 - CHANCE), many.end_to_end_ms)


@quick
@given(deployments(apart=False), st.sampled_from([2, 3, 4]))
def test_replicas_never_change_what_one_request_sees(deployment: Deployment, times_as_many: int) -> None:
    assume(has_nic(deployment.accelerator))
    load, dp = deployment.workload.concurrency, deployment.strategy.dp
    more = deployment.with_degrees({}, {}, dp=dp * times_as_many).with_(
        nodes=deployment.nodes * times_as_many, concurrency=load * times_as_many
    )
    single, many = (estimate_layout(case.layout(), ()) for case in (deployment, more))
    # If replicas have different numbers of users, percentiles fall between other requests.
    left_out = {"percentiles"} if load % dp else set[str]()
    assert same_times(many.latency, single.latency, left_out)
    assert many.throughput.single_request_tokens_per_s == single.throughput.single_request_tokens_per_s


@quick
@given(deployments(apart=False).map(lambda deployment: deployment.with_(concurrency=1)))
def test_decode_of_one_request_never_gains_from_stages(deployment: Deployment) -> None:
    stages = deployment.strategy.decode.pp
    assume(2 * stages <= deployment.architecture.num_layers)
    staged = deployment.with_degrees({"pp": 2 * stages}).with_(nodes=4 * deployment.nodes)
    assume(has_nic(deployment.accelerator) and staged.fits_on_nodes)
    flat_, in_stages = (estimate_layout(case.layout(), ()).latency for case in (deployment, staged))
    assert at_most(step_ms(flat_), step_ms(in_stages))


@quick
@given(deployments())
def test_the_parts_of_a_phase_and_its_path_add_up_and_one_device_talks_to_nobody(deployment: Deployment) -> None:
    layout = deployment.layout()
    estimate = estimate_layout(layout, ())
    latency = estimate.latency
    prefill, decode = latency.prefill, latency.decode_step
    parts_ms = prefill.compute_ms + prefill.memory_ms + prefill.communication_ms + prefill.bubble_ms
    assert abs(parts_ms - latency.prefill_ms) <= ROUNDING * parts_ms
    for phase, parts, path, whole_ms in (
        ("prefill", prefill, estimate.critical_path.prefill, latency.prefill_ms),
        ("decode", decode, estimate.critical_path.decode, step_ms(latency)),
    ):
        assert min(parts.compute_ms, parts.memory_ms, parts.communication_ms, parts.bubble_ms) >= 0.0
        assert abs(sum(step.ms for step in path) - whole_ms) <= ROUNDING * whole_ms
        assert (parts.communication_ms > 0.0) == (len(layout.phase(phase).devices) > 1)
        if len(layout.phase(phase).stages) == 1:
            assert parts.bubble_ms == 0.0


@quick
@given(deployments(overlap=True), kinds_of_speed, factors)
def test_more_bandwidth_arithmetic_or_link_speed_never_slows_overlapped_halves(
    deployment: Deployment, speed: str, factor: float
) -> None:
    assert_no_slower(deployment, with_faster_part(deployment, speed, factor))
