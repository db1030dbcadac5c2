"""A plan whose prompts share beginnings: the hit rate that its run computes, what it changes, and what says so."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.errors import InputError
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.planned_run import lengths_of, planned_run
from shardwright.tools.plan.document import WorkloadBlock

from .conftest import LayoutOf

CHATS = {"system_tokens": 1600, "turns": 5}
THINK = {"think_time_s": 10.0}


def loaded(layout: LoadedLayout, **fields: Any) -> LoadedLayout:
    workload = WorkloadBlock.model_validate({**layout.setting.workload.model_dump(exclude_none=True), **fields})
    return layout.with_setting(layout.setting.with_workload(workload))


def plain(layout_of: LayoutOf, **fields: Any) -> LoadedLayout:
    return layout_of("llama-3.1-8b", {"tp": 1}, dp=4, input_tokens=4000, output_tokens=300, **fields)


def hit_share(layout: LoadedLayout) -> float:
    found = planned_run(layout).times.prefix_hit_share
    assert found is not None
    return found


def test_a_system_prompt_that_all_share_is_computed_once_and_speeds_up_as_a_given_rate_does(
    layout_of: LayoutOf,
) -> None:
    cold = plain(layout_of, concurrency=64)
    shared, given = loaded(cold, prefixes={"system_tokens": 1600}), loaded(cold, prefix_cache_hit_rate=0.4)
    assert hit_share(shared) == pytest.approx(0.4, abs=0.01)
    times, other = planned_run(shared).times, planned_run(given).times
    assert times.output_tokens_per_s == pytest.approx(other.output_tokens_per_s, rel=0.03)
    assert times.ttft.mean < 0.9 * planned_run(cold).times.ttft.mean
    assert planned_run(cold).times.prefix_hit_share is None


def test_conversations_find_what_their_route_leads_them_to(layout_of: LayoutOf) -> None:
    chats = loaded(plain(layout_of, request_rate=12.0), prefixes=CHATS, arrivals=THINK)
    found = {
        routing: hit_share(loaded(chats, prefixes={**CHATS, "routing": routing}))
        for routing in ("round_robin", "least_loaded", "prefix_aware", "sticky")
    }
    assert hit_share(chats) == found["least_loaded"]
    assert found["round_robin"] < 0.75 < 0.8 < found["sticky"]
    assert found["prefix_aware"] > 0.8
    assert planned_run(chats).load == "open loop, 12 requests/s, 10 s between turns"


def test_an_estimate_says_what_was_found_and_by_what(layout_of: LayoutOf) -> None:
    chats = loaded(plain(layout_of, concurrency=40), prefixes=CHATS)
    found = estimate_layout(chats)
    cache = found.load.prefix_cache
    assert cache is not None and 0.5 < cache.hit_share < 0.86 and 0.0 < cache.filled_share <= 1.0
    assert cache.source == (
        "simulated: blocks of 16 tokens of vLLM, the longest unused give way first; requests dealt least loaded, as a "
        "balancer by requests in flight does; none is stated"
    )
    # Whole conversations: of 38 requests a user, which make 1,500, the 35 of seven.
    assert found.load.requests == 40 * 5 * 7
    assert found.benchmark is None
    assert estimate_layout(plain(layout_of, concurrency=40)).load.prefix_cache is None


def test_the_longest_turn_must_fit_and_the_mean_is_the_stated_one(layout_of: LayoutOf) -> None:
    lengths = lengths_of(loaded(plain(layout_of, concurrency=8), prefixes=CHATS))
    assert (lengths.input_tokens, lengths.longest_input, lengths.longest_request) == (4000, 5800, 6100)


def apart(layout_of: LayoutOf, **fields: Any) -> LoadedLayout:
    side = {"tp": 1, "tp_ffn": 1, "replicas": 2}
    return layout_of("llama-3.1-8b", side, decode=side, dp=2, input_tokens=4000, output_tokens=300, **fields)


def test_where_phases_are_apart_prompts_find_what_prefill_computed_and_answers_are_computed_again(
    layout_of: LayoutOf,
) -> None:
    cold = apart(layout_of, request_rate=3.0)
    shared, given = loaded(cold, prefixes={"system_tokens": 1600}), loaded(cold, prefix_cache_hit_rate=0.4)
    assert hit_share(shared) == pytest.approx(0.4, abs=0.01)
    assert planned_run(shared).times.ttft.mean == pytest.approx(planned_run(given).times.ttft.mean, rel=0.05)
    sticky = loaded(cold, prefixes={**CHATS, "routing": "sticky"})
    # Prompts of 2,200 to 5,800 tokens: each finds the one before it in whole blocks, the first the system prompt.
    prompts = (2200, 3100, 4000, 4900, 5800)
    found = 1600 + sum(tokens // 16 * 16 for tokens in prompts[:-1])
    assert hit_share(sticky) == pytest.approx(found / sum(prompts), rel=0.01)
    estimate = estimate_layout(sticky)
    assert estimate.load.prefix_cache is not None
    assert estimate.load.prefix_cache.source.endswith("; requests dealt sticky, as stated")
    assert any("prefix caches are those of the prefill replicas" in note for note in estimate.notes)


def test_more_users_than_are_simulated_wait_in_line_and_who_thinks_is_refused(layout_of: LayoutOf) -> None:
    many = loaded(plain(layout_of, concurrency=6000), prefixes=CHATS, arrivals=THINK)
    with pytest.raises(InputError, match="6,000 users who think are more than are simulated on 4 replicas"):
        planned_run(many)
