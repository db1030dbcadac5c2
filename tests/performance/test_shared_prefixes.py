"""A plan whose prompts share beginnings: the hit rate that its run computes, what it changes, and its report."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError, MissingFieldError
from shardwright.tools.performance.capacity import host_memory
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.memory import max_concurrency, where_shared_once
from shardwright.tools.performance.planned_run import lengths_of, planned_run
from shardwright.tools.plan.document import ServingBlock, WorkloadBlock

from .conftest import LayoutOf

CHATS = {"system_tokens": 1600, "turns": 5}
THINK = {"think_time_s": 10.0}


def loaded(layout: LoadedLayout, **fields: Any) -> LoadedLayout:
    workload = WorkloadBlock.model_validate({**layout.setting.workload.model_dump(exclude_none=True), **fields})
    return layout.with_setting(layout.setting.with_workload(workload))


def plain(layout_of: LayoutOf, **fields: Any) -> LoadedLayout:
    return layout_of("llama-3.1-8b", {"tp": 1}, dp=4, input_tokens=4000, output_tokens=300, **fields)


def hit_share(layout: LoadedLayout) -> float:
    share = planned_run(layout).times.prefix_hit_share
    assert share is not None
    return share


def test_a_system_prompt_that_all_share_is_computed_once_and_speeds_up_as_a_given_rate_does(
    layout_of: LayoutOf,
) -> None:
    cold = plain(layout_of, concurrency=64)
    shared, fixed = loaded(cold, prefixes={"system_tokens": 1600}), loaded(cold, prefix_cache_hit_rate=0.4)
    assert hit_share(shared) == pytest.approx(0.4, abs=0.01)
    times, fixed_times = planned_run(shared).times, planned_run(fixed).times
    assert times.output_tokens_per_s == pytest.approx(fixed_times.output_tokens_per_s, rel=0.03)
    assert times.ttft.mean < 0.9 * planned_run(cold).times.ttft.mean
    assert planned_run(cold).times.prefix_hit_share is None


def test_conversations_find_what_their_route_leads_them_to(layout_of: LayoutOf) -> None:
    chats = loaded(plain(layout_of, request_rate=12.0), prefixes=CHATS, arrivals=THINK)
    shares = {
        routing: hit_share(loaded(chats, prefixes={**CHATS, "routing": routing}))
        for routing in ("round_robin", "least_loaded", "prefix_aware", "sticky")
    }
    assert hit_share(chats) == shares["least_loaded"]
    assert shares["round_robin"] < 0.75 < 0.8 < shares["sticky"]
    assert shares["prefix_aware"] > 0.8
    assert planned_run(chats).load == "open loop, 12 requests/s, 10 s between turns"


def test_an_estimate_says_what_was_found_and_by_what(layout_of: LayoutOf) -> None:
    chats = loaded(plain(layout_of, concurrency=40), prefixes=CHATS)
    estimate = estimate_layout(chats)
    cache = estimate.load.prefix_cache
    assert cache is not None and 0.5 < cache.hit_share < 0.86 and 0.0 < cache.filled_share <= 1.0
    assert cache.source == (
        "simulated: blocks of 16 tokens of vLLM, the longest unused give way first; requests dealt least loaded, as a "
        "balancer by requests in flight does; none is stated"
    )
    # Whole conversations: 1,500 requests would be 38 for each user; 35 of them are seven conversations.
    assert estimate.load.requests == 40 * 5 * 7
    assert estimate.benchmark is None
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
    shared, fixed = loaded(cold, prefixes={"system_tokens": 1600}), loaded(cold, prefix_cache_hit_rate=0.4)
    assert hit_share(shared) == pytest.approx(0.4, abs=0.01)
    assert planned_run(shared).times.ttft.mean == pytest.approx(planned_run(fixed).times.ttft.mean, rel=0.05)
    sticky = loaded(cold, prefixes={**CHATS, "routing": "sticky"})
    # Prompts of 2,200 to 5,800 tokens: each finds the one before it in whole blocks, the first the system prompt.
    prompts = (2200, 3100, 4000, 4900, 5800)
    shared_tokens = 1600 + sum(tokens // 16 * 16 for tokens in prompts[:-1])
    assert hit_share(sticky) == pytest.approx(shared_tokens / sum(prompts), rel=0.01)
    estimate = estimate_layout(sticky)
    assert estimate.load.prefix_cache is not None
    assert estimate.load.prefix_cache.source.endswith("; requests dealt sticky, as stated")
    assert any("prefix caches are those of the prefill replicas" in note for note in estimate.notes)


def test_more_users_than_are_simulated_wait_in_line_and_who_thinks_is_refused(layout_of: LayoutOf) -> None:
    many = loaded(plain(layout_of, concurrency=6000), prefixes=CHATS, arrivals=THINK)
    with pytest.raises(InputError, match="6,000 users who think are more than are simulated on 4 replicas"):
        planned_run(many)


OFFLOAD = {"bytes_per_gpu": 100_000_000_000}


def offloading(layout: LoadedLayout, **offload: Any) -> LoadedLayout:
    stated = layout.setting.serving
    serving = ServingBlock.model_validate({**stated.model_dump(exclude_none=True), "kv_offload": offload})
    return layout.with_setting(layout.setting.with_workload(layout.setting.workload, serving))


def long_chats(layout_of: LayoutOf, **fields: Any) -> LoadedLayout:
    return loaded(
        plain(layout_of, request_rate=8.0, **fields),
        prefixes={"turns": 5, "routing": "sticky"},
        arrivals={"think_time_s": 300.0},
    )


def test_memory_of_the_host_holds_as_many_tokens_as_its_bytes_and_brings_them_back_at_its_link(
    layout_of: LayoutOf,
) -> None:
    # 32 layers of 8 KV heads of 128, K and V, two bytes each: 131,072 bytes a token, half of them on each GPU of two.
    whole = offloading(long_chats(layout_of), **OFFLOAD)
    half = offloading(
        loaded(
            layout_of("llama-3.1-8b", {"tp": 2, "tp_ffn": 2}, dp=2, concurrency=4), prefixes={"system_tokens": 1600}
        ),
        **OFFLOAD,
    )
    slower = offloading(long_chats(layout_of), **OFFLOAD, host_bw_gb_s=16.0)
    for layout, token_bytes, bytes_per_s in ((whole, 131_072, 64e9), (half, 65_536, 64e9), (slower, 131_072, 16e9)):
        memory = host_memory(layout, "decode")
        assert memory is not None and not memory.takes_evicted
        assert memory.tokens == 100_000_000_000 // token_bytes
        assert memory.s_per_token == pytest.approx(token_bytes / bytes_per_s)


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_an_estimate_says_what_memory_of_the_host_is_worth(engine: str, layout_of: LayoutOf) -> None:
    cold = long_chats(layout_of, serving={"engine": engine})
    offloaded, without = estimate_layout(offloading(cold, **OFFLOAD)), estimate_layout(cold)
    cache, alone = offloaded.load.prefix_cache, without.load.prefix_cache
    assert cache is not None and cache.host_memory is not None and alone is not None and alone.host_memory is None
    host = cache.host_memory
    assert (host.bytes_per_gpu, host.gb_s) == (100_000_000_000, 64.0)
    assert (host.hit_share_without, host.ttft_ms_without) == (alone.hit_share, without.latency.ttft_ms)
    assert 0.1 < host.hit_share < cache.hit_share and cache.hit_share > alone.hit_share + 0.1
    assert offloaded.latency.ttft_ms < 0.97 * without.latency.ttft_ms
    gets = "gets what the GPU lets go of" if engine == "trtllm" else "gets a copy of what is computed"
    assert any(gets in note for note in offloaded.notes)


@pytest.mark.thorough
def test_where_phases_are_apart_the_pass_of_a_prompt_waits_for_its_blocks(layout_of: LayoutOf) -> None:
    cold = loaded(
        apart(layout_of, request_rate=3.0), prefixes={"turns": 5, "routing": "sticky"}, arrivals={"think_time_s": 600.0}
    )
    fast, slow = (planned_run(offloading(cold, **OFFLOAD, host_bw_gb_s=gb_s)).times for gb_s in (64.0, 2.0))
    assert fast.host_hit_share > 0.05 and hit_share(cold) < (fast.prefix_hit_share or 0.0)
    assert fast.ttft.mean < planned_run(cold).times.ttft.mean
    assert fast.ttft.mean < slow.ttft.mean


def test_a_host_link_that_nobody_knows_is_named_and_one_that_is_said_counts(layout_of: LayoutOf) -> None:
    card = find_accelerator("h100-sxm").model_copy(update={"host_pcie_gb_s_unidirectional": None})
    unknown = long_chats(layout_of, accelerator=card)
    assert planned_run(unknown).times.host_hit_share == 0.0
    with pytest.raises(MissingFieldError, match=r"kv_offload\.host_bw_gb_s.*say it"):
        planned_run(offloading(unknown, **OFFLOAD))
    assert planned_run(offloading(unknown, **OFFLOAD, host_bw_gb_s=50.0)).times.host_hit_share > 0.1


@pytest.mark.thorough
def test_memory_of_the_host_that_changes_nothing_is_said_not_to_be_acted_on(layout_of: LayoutOf) -> None:
    alike = plain(layout_of, concurrency=16)
    fixed, nim = loaded(alike, prefix_cache_hit_rate=0.4), long_chats(layout_of, serving={"engine": "nim"})
    for layout, reason in (
        (alike, "what prompts share"),
        (fixed, "what prompts share"),
        (nim, "how NIM is told of it"),
    ):
        with_it = offloading(layout, **OFFLOAD)
        assert planned_run(with_it).times == planned_run(layout).times
        assert any(note.startswith("not acted on") and reason in note for note in estimate_layout(with_it).notes)


@pytest.mark.parametrize(
    ("part", "gb_s"),
    [("h100-sxm", 64.0), ("a100-80gb-sxm", 32.0), ("gh200", 450.0), ("gb200", 225.0), ("tpu-v5e", None)],
)
def test_the_host_is_reached_over_the_link_that_the_catalogue_has(part: str, gb_s: float | None) -> None:
    assert find_accelerator(part).host_gb_s == gb_s


def test_a_refusal_for_memory_says_how_many_fit_where_what_is_shared_is_held_once(layout_of: LayoutOf) -> None:
    replicas, shared, unshared = 4, 3600, 400 + 300
    crowded = loaded(plain(layout_of, concurrency=2000), prefixes={"system_tokens": shared})
    per_replica = max_concurrency(crowded) // replicas
    remark = where_shared_once(crowded)
    assert remark is not None and f"the {shared:,} tokens that prompts share held once" in remark
    reported = int(remark.split(", ")[-1].split()[0].replace(",", ""))
    # Room for `per_replica` whole requests and no more, filled with unshared tokens beside one shared beginning.
    fewest, most = ((whole * (shared + unshared) - shared) // unshared for whole in (per_replica, per_replica + 1))
    assert replicas * (fewest - 1) <= reported <= replicas * (most + 1)


@pytest.mark.parametrize(
    "fields", [{}, {"prefixes": CHATS, "arrivals": THINK}, {"prefix_cache_hit_rate": 0.4}], ids=str
)
def test_nothing_is_said_to_be_held_once_where_no_such_beginning_is_stated(
    fields: dict[str, Any], layout_of: LayoutOf
) -> None:
    assert where_shared_once(loaded(plain(layout_of, concurrency=2000), **fields)) is None
