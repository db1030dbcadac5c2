"""Laws of queues for requests of unlike lengths: waiting times, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.performance.serving.core import serve
from shardwright.tools.performance.serving.disaggregated import Disaggregated, simulate_disaggregated
from shardwright.tools.performance.serving.inputs import run_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop
from shardwright.tools.performance.serving.policy import Mode, Policy
from shardwright.tools.performance.serving.records import Seen
from shardwright.tools.performance.serving.state import Replica
from shardwright.tools.performance.serving.step_table import StepTable
from shardwright.tools.plan.quantiles import Independent, Joint, Quantiles, between, fixed, of_histogram, of_percentiles

from .engines import ENGINE, MEETING, ROOMY, WINDOWED, simulate
from .one_by_one import cost

pytestmark = pytest.mark.thorough

# One prompt in a step, none cut, and its answer is one token: a server with one place.
ONE_PLACE = replace(ROOMY, mode="whole", max_sequences=1)
MOST = 100_000


def service_s(tokens: int) -> float:
    return cost(ENGINE, [], [(0, tokens)], 1)


def stated(spread: Independent | Joint) -> Lengths:
    means = spread.means
    return Lengths(max(1, round(means[0])), max(1, round(means[1])), stated=spread)


@pytest.mark.parametrize("load", [0.2, 0.4, 0.6])
def test_requests_alike_wait_as_m_d_1(load: float) -> None:
    service = service_s(1000)
    times = simulate(ENGINE, ONE_PLACE, OpenLoop(load / service, MOST), Lengths(1000, 1))
    assert times.ttft.mean - service == pytest.approx(load * service / (2 * (1 - load)), rel=0.02)


# Nearer to saturation, this many requests do not settle the mean to 2%.
@pytest.mark.parametrize("load", [0.2, 0.4])
@pytest.mark.parametrize(
    "prompts",
    [((400, 3), (4000, 1)), ((200, 1), (1000, 1), (1500, 1), (2500, 1)), ((256, 9), (6000, 1))],
    ids=["two", "four", "rarely long"],
)
def test_requests_of_many_lengths_wait_as_m_g_1(load: float, prompts: tuple[tuple[int, int], ...]) -> None:
    pairs = tuple((tokens, 1) for tokens, count in prompts for _ in range(count))
    lengths = stated(Joint(pairs))
    mean = sum(service_s(tokens) for tokens, _ in pairs) / len(pairs)
    arrivals = OpenLoop(load / mean, MOST)
    times = simulate(ENGINE, ONE_PLACE, arrivals, lengths)
    # Pollaczek-Khinchine, of the requests that were drawn: rare ones are not as often there as on average.
    _, drawn = run_of(ONE_PLACE, arrivals, lengths)
    services = {tokens: service_s(tokens) for tokens in set(drawn.inputs)}
    first = sum(services[tokens] for tokens in drawn.inputs) / MOST
    second = sum(services[tokens] ** 2 for tokens in drawn.inputs) / MOST
    rate = MOST / drawn.arrivals[-1]
    waited = times.ttft.mean - first
    assert waited == pytest.approx(rate * second / (2 * (1 - rate * first)), rel=0.02)
    assert times.ttft.p99 > 2 * times.ttft.p50


@pytest.mark.parametrize("users", [1, 5, 40])
def test_users_who_think_obey_the_response_time_law(users: int) -> None:
    think_s = 3.0
    times = simulate(ENGINE, ROOMY, ClosedLoop(users, max(4000, 200 * users), think_s), Lengths(500, 60))
    rate = times.output_tokens_per_s / 60
    # Users over the rate is the time of an answer and of the thought before it; the last ones leave the server early.
    assert users / rate == pytest.approx(times.end_to_end.mean + think_s, rel=0.05)


def test_bursts_wait_longer_and_even_arrivals_shorter_than_random_ones() -> None:
    service = service_s(1000)
    waits = [
        simulate(ENGINE, ONE_PLACE, OpenLoop(0.5 / service, 20_000, burstiness=shape), Lengths(1000, 1)).ttft.mean
        for shape in (0.2, 1.0, 5.0)
    ]
    assert waits[0] > 2 * waits[1] - service > waits[1] > waits[2] > service


def test_lengths_that_are_stated_alike_are_the_fixed_ones() -> None:
    load = OpenLoop(3.0, 300)
    plain = simulate(ENGINE, ROOMY, load, Lengths(700, 90))
    for spread in (Joint(((700, 90),)), Independent(fixed(700), fixed(90))):
        assert simulate(ENGINE, ROOMY, load, Lengths(700, 90, stated=spread)) == plain


SIDES: st.SearchStrategy[Quantiles] = st.one_of(
    st.integers(1, 90).map(fixed),
    st.lists(st.integers(1, 90), min_size=3, max_size=3).map(lambda ends: between(*sorted(ends))),
    st.lists(st.integers(1, 90), min_size=2, max_size=2).map(
        lambda ends: of_percentiles(((50.0, min(ends)), (95.0, max(ends))))
    ),
    st.dictionaries(st.integers(1, 90), st.integers(1, 9), min_size=1, max_size=5).map(
        lambda bins: of_histogram(sorted(bins.items()))
    ),
)
SPREADS = st.one_of(
    st.builds(Independent, SIDES, SIDES),
    st.lists(st.tuples(st.integers(1, 120), st.integers(1, 60)), min_size=1, max_size=8).map(
        lambda pairs: Joint(tuple(pairs))
    ),
)
ARRIVALS = st.one_of(
    st.builds(
        ClosedLoop, users=st.integers(1, 12), requests=st.integers(1, 40), think_s=st.sampled_from([0.0, 0.01, 5.0])
    ),
    st.builds(
        OpenLoop,
        rate_per_s=st.floats(0.1, 200.0),
        requests=st.integers(1, 40),
        one_of=st.sampled_from([1, 3]),
        burstiness=st.sampled_from([0.05, 0.5, 1.0, 7.5]),
    ),
    st.builds(Burst, requests=st.integers(1, 30)),
)
MODES: tuple[Mode, ...] = ("mixed", "prefill_first", "whole")
POLICIES = st.builds(
    Policy,
    token_budget=st.sampled_from([600, 1000, 4000]),
    max_sequences=st.integers(1, 12),
    kv_tokens=st.sampled_from([700, 900, 100_000]),
    mode=st.sampled_from(MODES),
    reserve=st.sampled_from(["prompt", "full"]),
    groups=st.sampled_from([1, 2]),
    batches=st.sampled_from([1, 1, 3]),
)


@settings(max_examples=200)
@given(st.sampled_from([ENGINE, WINDOWED, MEETING]), POLICIES, ARRIVALS, SPREADS)
def test_requests_tokens_and_cache_are_conserved(
    table: StepTable, policy: Policy, arrivals: Arrivals, spread: Independent | Joint
) -> None:
    lengths = replace(stated(spread), most_tokens=600)
    rules, requests = run_of(policy, arrivals, lengths)
    count = len(requests.inputs)
    seen = Seen.blank(count)
    replica = Replica(table, rules, requests, seen)
    serve(replica)
    # Every request that arrived is done, in the order of arrival, first token, last token.
    assert replica.finished == replica.arrived == count
    for arrived, first, done in zip(seen.arrived, seen.first, seen.done, strict=True):
        assert 0.0 <= arrived < first <= done <= replica.now + replica.left_s + 1e-9
    for group in replica.groups:
        assert group.cached == group.running == group.present == 0
        assert all(batch.running == batch.context == batch.windowed == 0 for batch in group.batches)
    assert max(requests.inputs) <= lengths.longest_input
    assert max(map(sum, zip(requests.inputs, requests.outputs, strict=True))) <= lengths.longest_request


@settings(max_examples=60)
@given(ARRIVALS, SPREADS, st.integers(1, 3), st.integers(1, 3))
def test_phases_apart_serve_every_token_once(
    arrivals: Arrivals, spread: Independent | Joint, prefills: int, decodes: int
) -> None:
    lengths = replace(stated(spread), most_tokens=600)
    whole = replace(ROOMY, mode="whole")
    deployed = Disaggregated(
        ENGINE, whole, ENGINE, replace(ROOMY, kv_tokens=700), prefills, decodes, transfer_s_per_token=1e-6
    )
    times = simulate_disaggregated(deployed, arrivals, lengths)
    _, requests = run_of(whole, arrivals, lengths)
    assert times.output_tokens_per_s * times.makespan_s == pytest.approx(sum(requests.outputs))
    assert 0.0 < times.ttft.p50 <= times.end_to_end.p99
