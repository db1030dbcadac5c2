"""Under load physics holds end to end: more users wait longer, better hardware and shorter prompts serve sooner.

Only sums are judged: where prompts are served faster, more requests decode at once, and each of their tokens takes
longer. Step times are read off tables between measured points, hence the slack.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, assume, given
from hypothesis import strategies as st

from shardwright.tools.performance.serving.load import ClosedLoop, Lengths, ServingTimes
from shardwright.tools.performance.serving_estimate import serve

from ..examples import examples
from .physics_space import Deployment, deployments, faster_part, has_nic

SLACK = 0.01
ROUNDS = 8
quick = examples(
    # Counterexamples are not shrunk: to simulate hundreds of smaller ones takes minutes.
    40, derandomize=True, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)  # fmt: skip


# No more at once than the smallest step has room for: with less, a scheduler cuts prompts differently.
loaded = deployments().map(lambda deployment: deployment.with_(concurrency=min(deployment.workload.concurrency, 200)))


def served(deployment: Deployment) -> ServingTimes:
    """Times of a closed loop in which every user sends `ROUNDS` requests."""
    load = deployment.workload
    arrivals = ClosedLoop(load.concurrency, ROUNDS * load.concurrency)
    return serve(deployment.layout(), arrivals, Lengths(load.input_tokens, load.output_tokens))


def never_sooner(first: ServingTimes, second: ServingTimes) -> bool:
    """Whether requests of `second` take no less time than those of `first`, from end to end."""
    return second.end_to_end.mean >= first.end_to_end.mean * (1 - SLACK)


@quick
@given(loaded, st.sampled_from([1, 2, 8, 50]))
def test_more_users_never_shorten_a_request(deployment: Deployment, more: int) -> None:
    crowded = deployment.with_(concurrency=deployment.workload.concurrency + more)
    assert never_sooner(served(deployment), served(crowded))


@quick
@given(loaded, st.sampled_from(["memory", "compute", "intra", "inter"]), st.sampled_from([1.2, 2.0, 8.0]))
def test_better_hardware_never_lengthens_a_request_nor_lowers_the_rate(
    deployment: Deployment, speed: str, factor: float
) -> None:
    slow = served(deployment)
    fast = served(deployment.with_(accelerator=faster_part(deployment.accelerator, speed, factor)))
    assert never_sooner(fast, slow)
    assert fast.output_tokens_per_s >= slow.output_tokens_per_s * (1 - SLACK)


@quick
@given(loaded, st.sampled_from([1, 100, 1000, 10_000]))
def test_longer_prompts_never_shorten_a_request(deployment: Deployment, more: int) -> None:
    workload, limit = deployment.workload, deployment.architecture.max_position_embeddings
    longer = min(workload.input_tokens + more, limit - workload.output_tokens)
    assume(longer > workload.input_tokens)
    assert never_sooner(served(deployment), served(deployment.with_(input_tokens=longer)))


@quick
@given(deployments(apart=False), st.sampled_from([2, 4]))
def test_replicas_serve_as_many_times_the_load_at_the_same_latency(deployment: Deployment, replicas: int) -> None:
    assume(has_nic(deployment.accelerator) and deployment.workload.concurrency % deployment.strategy.dp == 0)
    more = deployment.with_degrees({}, {}, dp=replicas * deployment.strategy.dp).with_(
        nodes=replicas * deployment.nodes, concurrency=replicas * deployment.workload.concurrency
    )
    single, many = served(deployment), served(more)
    assert abs(many.end_to_end.mean - single.end_to_end.mean) <= SLACK * single.end_to_end.mean
    assert abs(many.output_tokens_per_s - replicas * single.output_tokens_per_s) <= SLACK * many.output_tokens_per_s
