"""Replicas simulated together: the numbers of one alone, what their caches hit, and how requests are routed."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.performance.serving.core import run
from shardwright.tools.performance.serving.inputs import run_of
from shardwright.tools.performance.serving.load import (
    Arrivals,
    Burst,
    ClosedLoop,
    Lengths,
    OpenLoop,
    ServingTimes,
    StaticBatch,
)
from shardwright.tools.performance.serving.policy import HostMemory, Mode, Policy
from shardwright.tools.performance.serving.records import Requests, Seen
from shardwright.tools.performance.serving.replicas import simulate_replicas
from shardwright.tools.performance.serving.step_table import StepTable
from shardwright.tools.performance.serving.together import MOST_SCHEDULERS, TogetherRun
from shardwright.tools.plan.prefixes import Routing, SharedPrefixes
from shardwright.tools.plan.quantiles import Joint

from ...examples import examples
from .engines import ENGINE, MEETING, ROOMY, WINDOWED, simulate

MODES: tuple[Mode, ...] = ("mixed", "prefill_first", "whole")
SYSTEM = SharedPrefixes(system_tokens=1600)
CHATS = SharedPrefixes(system_tokens=1600, turns=5)
# Blocks larger than any cache: no whole block is ever cached.
OFF = 10**9


def sharing(prefixes: SharedPrefixes, input_tokens: int = 4000, output_tokens: int = 300) -> Lengths:
    turns = prefixes.turn_lengths(input_tokens, output_tokens)
    return Lengths(input_tokens, output_tokens, stated=turns, prefixes=prefixes)


def found_share(prefixes: SharedPrefixes, arrivals: Arrivals, replicas: int = 4, **policy: Any) -> float:
    times = simulate_replicas(ENGINE, replace(ROOMY, **policy), arrivals, sharing(prefixes), replicas)
    assert times.prefix_hit_share is not None
    return times.prefix_hit_share


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("reserve", ["prompt", "full"])
@pytest.mark.parametrize(
    "arrivals",
    [ClosedLoop(30, 120), ClosedLoop(60, 150, think_s=2.0), OpenLoop(5.0, 150, 1, 30, 0.3), Burst(30)],
    ids=["closed", "thinking", "bursty", "burst"],
)
def test_where_nothing_is_found_one_replica_has_the_numbers_of_one_by_itself(
    mode: Mode, batches: int, reserve: Any, arrivals: Arrivals
) -> None:
    policy = replace(ROOMY, mode=mode, batches=batches, reserve=reserve, kv_tokens=2500, jitter_s=0.01)
    policy = replace(policy, prefix_block_tokens=OFF)
    lengths = Lengths(300, 200, 0.4)
    alone = simulate(MEETING, policy, arrivals, lengths)
    together = simulate_replicas(MEETING, policy, arrivals, replace(lengths, prefixes=SYSTEM), 1)
    assert together.prefix_hit_share == 0.0
    assert replace(together, prefix_hit_share=None, cache_filled_share=None) == alone


@pytest.mark.parametrize("prefixes", [SYSTEM, CHATS], ids=["system prompt", "chats"])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_found_is_not_computed_and_the_rest_is(prefixes: SharedPrefixes, mode: Mode) -> None:
    # The run is replayed on one replica alone, with its hits and arrivals as input.
    policy = replace(ROOMY, mode=mode)
    ran = TogetherRun(ENGINE, policy, ClosedLoop(12, 60), sharing(prefixes), 1)
    ran.serve()
    inputs, outputs = ran.talks.inputs, ran.talks.outputs
    assert sum(ran.hits) > 0.3 * sum(inputs)
    replayed = Requests(inputs, outputs, ran.hits, [0.0] * len(inputs), list(ran.seen.arrived))
    seen = Seen.blank(len(inputs))
    rules, _ = run_of(policy, ClosedLoop(12, 60), Lengths(4000, 300))
    run(ENGINE, rules, replayed, seen)
    assert list(seen.first) == list(ran.seen.first)
    assert list(seen.done) == list(ran.seen.done)


def test_a_cache_without_an_end_finds_all_whole_blocks_that_came_before() -> None:
    # 1,600 tokens are 100 blocks of 16, of 4,000: all requests but the first of each replica find them.
    assert found_share(SYSTEM, ClosedLoop(8, 400), 1) == pytest.approx(0.4 * 399 / 400)
    assert found_share(SYSTEM, OpenLoop(2.0, 400), 4) == pytest.approx(0.4 * 396 / 400)
    # Each of five turns finds the prompt before it and its answer but for the last token, in whole blocks; the first
    # finds the system prompt.
    turns = sharing(CHATS).stated
    assert isinstance(turns, Joint)
    prompts = [tokens for tokens, _ in turns.pairs]
    assert prompts == [2200, 3100, 4000, 4900, 5800]
    hits = [1600, *((tokens + 299) // 16 * 16 for tokens in prompts[:-1])]
    expected = (80 * sum(hits) - 1600) / (80 * sum(prompts))
    assert found_share(CHATS, ClosedLoop(8, 400), 1) == pytest.approx(expected)
    sticky = CHATS.model_copy(update={"routing": "sticky"})
    assert found_share(sticky, ClosedLoop(8, 400, think_s=5.0)) == pytest.approx(expected, rel=0.005)
    assert found_share(CHATS, ClosedLoop(8, 400), 1) < CHATS.most_shared(turns.pairs, 4000)


def test_conversations_at_a_rate_are_in_all_their_turns_from_the_start() -> None:
    load = OpenLoop(8.0, 4000, warmup=800, think_s=20.0)
    sticky = CHATS.model_copy(update={"routing": "sticky"})
    ran = TogetherRun(ENGINE, ROOMY, load, sharing(sticky), 4)
    ran.serve()
    for part in (ran.talks.inputs[:1000], ran.talks.inputs[-1000:]):
        assert sum(part) / 1000 == pytest.approx(4000, rel=0.05)
    assert 4000 / ran.seen.arrived[-1] == pytest.approx(8.0, rel=0.05)
    # Turns of conversations that began before the run are not counted.
    assert not all(ran.talks.begun)
    assert ran.times().prefix_hit_share == pytest.approx(0.846, rel=0.01)


@pytest.mark.parametrize(("think_s", "least", "most"), [(5.0, 0.8, 0.9), (60.0, 0.5, 0.75), (600.0, 0.4, 0.5)])
def test_the_longer_users_think_the_less_a_small_cache_still_has(think_s: float, least: float, most: float) -> None:
    small, large = (
        found_share(CHATS, OpenLoop(2.0, 1500, warmup=300, think_s=think_s), 1, kv_tokens=tokens)
        for tokens in (200_000, 10_000_000)
    )
    assert large > 0.8
    # What is new of some 80 turns and answers, which come in 40 s, fills 200,000 tokens; the system prompt stays.
    assert least < small < most


def test_routes_find_as_much_as_they_look_for() -> None:
    shares = {
        routing: found_share(
            CHATS.model_copy(update={"routing": routing}), OpenLoop(8.0, 1500, warmup=300, think_s=5.0), 8
        )
        for routing in get_args(Routing)
    }
    # Round robin sends one of eight turns to the replica of the turn before; half a prompt is the system prompt alone.
    assert 0.4 < shares["round_robin"] < shares["least_loaded"] + 0.05 < shares["sticky"]
    assert shares["sticky"] == pytest.approx(shares["prefix_aware"], abs=0.01)
    assert shares["sticky"] == pytest.approx(0.845, abs=0.01)


def test_in_turn_all_get_as_many_and_where_one_has_too_many_the_longest_match_gives_way() -> None:
    aware, turn = (SYSTEM.model_copy(update={"routing": routing}) for routing in ("prefix_aware", "round_robin"))
    in_turn = TogetherRun(ENGINE, ROOMY, Burst(40), sharing(turn), 4)
    in_turn.serve()
    assert {server.replica.finished for server in in_turn.servers} == {10}
    # The first prompt makes its replica the only one with a match, which takes all until it has 64 more.
    few, many = (TogetherRun(ENGINE, ROOMY, OpenLoop(rate, 400), sharing(aware), 4) for rate in (0.5, 50.0))
    for run_ in (few, many):
        run_.serve()
    assert max(server.replica.finished for server in few.servers) == 400
    finished = sorted(server.replica.finished for server in many.servers)
    assert finished[0] > 60 and finished[-1] < 200


def test_replayed_requests_find_what_the_recorded_ones_shared() -> None:
    pairs = ((640, 20), (960, 20), (320, 10), (1000, 20))
    replay = SharedPrefixes(replay=((0, 0), (0, 640), (0, 320), (1, 500)))
    lengths = Lengths(730, 18, stated=Joint(pairs), prefixes=replay)
    ran = TogetherRun(ENGINE, ROOMY, ClosedLoop(1, 8), lengths, 1)
    ran.serve()
    # The third is all of the first's beginning, of which the last token's block is computed; 500 tokens are 31 blocks.
    # When the record ends it is repeated, and shares nothing with the first time.
    assert ran.hits == [0, 640, 304, 496] * 2
    assert list(zip(ran.talks.inputs, ran.talks.outputs, strict=True)) == [*pairs, *pairs]


def test_unlike_system_prompts_take_room_each_and_the_usual_ones_stay() -> None:
    def share_of(**more: Any) -> float:
        several = SharedPrefixes(system_tokens=1600, **more)
        return found_share(several, OpenLoop(1.0, 1000), 1, kv_tokens=40_000)

    assert share_of(system_prompts=1) > 0.39
    assert share_of(system_prompts=100) < 0.1
    assert share_of(system_prompts=100) < share_of(system_prompts=100, system_skew=1.0) < share_of(system_prompts=1)


LOADS = st.one_of(
    st.builds(
        ClosedLoop, users=st.integers(1, 12), requests=st.integers(1, 40), think_s=st.sampled_from([0.0, 0.01, 5.0])
    ),
    st.builds(
        OpenLoop,
        rate_per_s=st.floats(0.1, 200.0),
        requests=st.integers(1, 40),
        burstiness=st.sampled_from([0.05, 1.0]),
        think_s=st.sampled_from([0.0, 0.05, 5.0]),
    ),
    st.builds(Burst, requests=st.integers(1, 30)),
)
PREFIXES = st.builds(
    SharedPrefixes,
    system_tokens=st.integers(1, 150),
    system_prompts=st.sampled_from([None, 3]),
    turns=st.sampled_from([None, 2, 4]),
    routing=st.sampled_from(get_args(Routing)),
)
POLICIES = st.builds(
    Policy,
    token_budget=st.sampled_from([600, 1000]),
    max_sequences=st.integers(1, 12),
    kv_tokens=st.sampled_from([700, 900, 100_000]),
    mode=st.sampled_from(MODES),
    reserve=st.sampled_from(["prompt", "full"]),
    groups=st.sampled_from([1, 2]),
    batches=st.sampled_from([1, 1, 3]),
    group_wait_steps=st.sampled_from([0, 4]),
    prefix_block_tokens=st.sampled_from([1, 16, 50]),
    host_memory=st.sampled_from([None, *(HostMemory(600, 1e-5, evicted) for evicted in (False, True))]),
)


@examples(200)
@given(
    st.sampled_from([ENGINE, WINDOWED, MEETING]),
    POLICIES,
    LOADS,
    PREFIXES,
    st.integers(150, 250),
    st.integers(1, 50),
    st.integers(1, 3),
)
def test_requests_tokens_and_blocks_are_conserved(
    table: StepTable,
    policy: Policy,
    load: Arrivals,
    prefixes: SharedPrefixes,
    tokens: int,
    answer: int,
    replicas: int,
) -> None:
    lengths = replace(sharing(prefixes, tokens, answer), most_tokens=600)
    ran = TogetherRun(table, policy, load, lengths, replicas)
    ran.serve()
    count = len(ran.talks.inputs)
    # Every request is done, and each hit whole blocks of less than its prompt.
    assert ran.arrived == count == sum(server.replica.finished for server in ran.servers)
    for arrived, first, done in zip(ran.seen.arrived, ran.seen.first, ran.seen.done, strict=True):
        assert 0.0 <= arrived < first <= done
    for hit, loaded, prompt in zip(ran.hits, ran.from_host, ran.talks.inputs, strict=True):
        assert 0 <= loaded <= hit < prompt and hit % policy.prefix_block_tokens == 0
        assert policy.host_memory is not None or loaded == 0
    for server in ran.servers:
        for group in server.replica.groups:
            assert group.cached == group.running == group.present == 0 == len(group.loading) == len(group.ready_s)
            assert all(batch.running == batch.context == batch.windowed == 0 for batch in group.batches)
    for target in ran.targets:
        cache = target.cache
        assert not cache.pins and set(cache.held) == set(cache.free)
        assert 0 <= cache.free_blocks == sum(cache.held.values())
        assert cache.free_blocks * policy.prefix_block_tokens <= policy.kv_tokens
        if policy.host_memory is not None:
            host = cache.host
            assert 0 <= host.used == sum(end - start for start, end in host.spans.values()) <= host.room
            for node, (start, end) in host.spans.items():
                # Evicted blocks follow those that the GPU still holds; copies are of all blocks.
                assert start == (cache.held.get(node, 0) if policy.host_memory.takes_evicted else 0) < end


def test_a_run_is_the_same_each_time() -> None:
    def times() -> ServingTimes:
        aware = CHATS.model_copy(update={"routing": "prefix_aware"})
        return simulate_replicas(ENGINE, ROOMY, OpenLoop(8.0, 400, think_s=5.0), sharing(aware), 3)

    assert times() == times()


def test_of_more_schedulers_than_are_simulated_a_part_stands_for_all() -> None:
    few, many = (
        simulate_replicas(ENGINE, ROOMY, OpenLoop(0.5 * replicas, 20 * replicas), sharing(SYSTEM), replicas)
        for replicas in (MOST_SCHEDULERS, 4 * MOST_SCHEDULERS)
    )
    assert many.output_tokens_per_s == pytest.approx(4 * few.output_tokens_per_s)
    assert many.ttft == few.ttft and many.prefix_hit_share == few.prefix_hit_share


def test_what_shares_nothing_in_time_is_refused() -> None:
    with pytest.raises(InputError, match="not of a static batch"):
        simulate_replicas(ENGINE, ROOMY, StaticBatch(4), sharing(SYSTEM), 1)


@pytest.mark.thorough
def test_ten_thousand_chats_on_eight_replicas_find_most_of_their_prefixes() -> None:
    aware = CHATS.model_copy(update={"routing": "prefix_aware"})
    times = simulate_replicas(
        ENGINE, replace(ROOMY, kv_tokens=300_000), OpenLoop(40.0, 10_000, think_s=10.0), sharing(aware), 8
    )
    assert times.prefix_hit_share is not None and times.prefix_hit_share > 0.7


ONE_AT_A_TIME = SharedPrefixes(replay=((0, 0), (0, 0), (0, 640), (1, 640)))


@pytest.mark.parametrize("takes_evicted", [False, True])
def test_what_came_from_the_host_costs_the_link_in_place_of_arithmetic(takes_evicted: bool) -> None:
    # One user asks a, b, a, b; the cache has room for one of them, the host's memory for both.
    lengths = Lengths(640, 2, stated=Joint(((640, 2),) * 4), prefixes=ONE_AT_A_TIME)
    small = replace(ROOMY, kv_tokens=650)
    offloads = replace(small, host_memory=HostMemory(1300, 1e-5, takes_evicted))
    cold, warm = (TogetherRun(ENGINE, policy, ClosedLoop(1, 4), lengths, 1) for policy in (small, offloads))
    for ran in (cold, warm):
        ran.serve()
    # Of 640 tokens 39 whole blocks are found, 624 tokens: the last token is computed.
    assert (cold.hits, cold.from_host) == ([0, 0, 0, 0], [0, 0, 0, 0])
    assert (warm.hits, warm.from_host) == ([0, 0, 624, 624], [0, 0, 624, 624])
    # A pass of 640 tokens: 19.36 ms of matmuls (half-way between 256 and 1,024), 0.301 of the head, 2.005 on the host,
    # 0.1 + 640 x 641 / 2 pairs x 2e-8 ms of attention. Of 16: 8 ms, and 16 x 624 + 136 pairs; 624 x 0.01 ms before it.
    whole_ms = 19.36 + 0.301 + 2.005 + 0.1 + 205_120 * 2e-8
    rest_ms = 624 * 0.01 + 8.0 + 0.301 + 2.005 + 0.1 + 10_120 * 2e-8
    for ran, expected in ((cold, [whole_ms] * 4), (warm, [whole_ms, whole_ms, rest_ms, rest_ms])):
        ttft_ms = [1e3 * (first - come) for first, come in zip(ran.seen.first, ran.seen.arrived, strict=True)]
        assert ttft_ms == pytest.approx(expected)
    assert warm.times().host_hit_share == warm.times().prefix_hit_share == 2 * 624 / (4 * 640)


def test_others_go_on_while_blocks_come_and_one_comes_after_the_other() -> None:
    # Six prompts, then each again, of three users; the cache has room for three. The link takes 6.24 s for each.
    replay = SharedPrefixes(replay=(*(((0, 0),) * 6), *((place, 640) for place in range(6))))
    lengths = Lengths(640, 200, stated=Joint(((640, 200),) * 12), prefixes=replay)
    policy = replace(ROOMY, kv_tokens=2600, host_memory=HostMemory(100_000, 1e-2, takes_evicted=False))
    ran = TogetherRun(ENGINE, policy, ClosedLoop(3, 12), lengths, 1)
    ran.serve()
    assert ran.from_host == [0] * 6 + [624] * 6
    # Nobody who decodes waits for the link: no answer takes as long as the blocks of a prompt.
    assert max(done - first for first, done in zip(ran.seen.first, ran.seen.done, strict=True)) < 6.24
    # Those of three come one after the other.
    ttft_s = [first - come for first, come in zip(ran.seen.first, ran.seen.arrived, strict=True)]
    assert 2 * 6.24 < max(ttft_s[6:]) < 3 * 6.24 + 0.5 and min(ttft_s[6:]) > 6.24


def test_memory_of_the_host_without_an_end_finds_what_a_cache_without_an_end_does() -> None:
    load = OpenLoop(2.0, 1500, warmup=300, think_s=60.0)
    options = {"kv_tokens": 200_000, "host_memory": HostMemory(10**9, 1e-9, takes_evicted=True)}
    assert found_share(CHATS, load, 1, **options) == pytest.approx(found_share(CHATS, load, 1), abs=0.002)
    assert found_share(CHATS, load, 1, kv_tokens=200_000) < 0.75


@pytest.mark.parametrize("takes_evicted", [False, True])
def test_copies_take_the_room_of_what_the_gpu_has_too(takes_evicted: bool) -> None:
    load = OpenLoop(2.0, 1500, warmup=300, think_s=60.0)
    as_large = {"kv_tokens": 200_000, "host_memory": HostMemory(200_000, 1e-9, takes_evicted)}
    alone, double = (found_share(CHATS, load, 1, kv_tokens=tokens) for tokens in (200_000, 400_000))
    expected = double if takes_evicted else alone
    assert found_share(CHATS, load, 1, **as_large) == pytest.approx(expected, abs=0.05) and double > alone + 0.1
