"""A plan whose requests differ in length: what its run, memory and limits go by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.memory import device_memory, fits, max_concurrency
from shardwright.tools.performance.planned_run import lengths_of, planned_run
from shardwright.tools.performance.serving.load import OpenLoop
from shardwright.tools.performance.serving_estimate import serve
from shardwright.tools.plan.document import WorkloadBlock
from shardwright.tools.plan.quantiles import Joint
from shardwright.tools.search.replica_memory import ReplicaMemory

from .conftest import LayoutOf

TAIL = {"input": {"percentiles": [[50, 1000], [95, 8000]]}}


def loaded(layout: LoadedLayout, **fields: Any) -> LoadedLayout:
    workload = WorkloadBlock.model_validate({**layout.setting.workload.model_dump(exclude_none=True), **fields})
    return layout.with_setting(layout.setting.with_workload(workload))


def test_lengths_that_spread_have_longer_tails_at_the_same_mean(layout_of: LayoutOf) -> None:
    alike = layout_of("llama-3.1-8b", {"tp": 2}, input_tokens=2199, output_tokens=200, request_rate=4.0)
    unlike = loaded(alike, lengths=TAIL)
    means, tails = planned_run(alike).times, planned_run(unlike).times
    assert tails.ttft.p99 > 1.5 * means.ttft.p99
    assert tails.output_tokens_per_s == pytest.approx(means.output_tokens_per_s, rel=0.15)


def test_a_range_is_simulated_and_one_up_to_the_length_is_not(layout_of: LayoutOf) -> None:
    alike = layout_of("llama-3.1-8b", {"tp": 2}, input_tokens=2048, concurrency=8)
    assert planned_run(loaded(alike, input_tokens_range=(256, 2048))).times == planned_run(alike).times
    spread = loaded(alike, input_tokens_range=(256, 8192))
    assert lengths_of(spread).longest_input == 8192
    assert planned_run(spread).times.ttft.p99 > planned_run(alike).times.ttft.p99


def test_a_longest_request_that_is_rare_is_held_and_changes_no_figure(layout_of: LayoutOf) -> None:
    alike = layout_of("llama-3.1-8b", {"tp": 2}, input_tokens=1800, output_tokens=220, concurrency=40)
    rare = loaded(alike, lengths={"pairs": [[1800, 220]], "longest": [32_000, 220]})
    assert planned_run(rare).times == planned_run(alike).times
    assert rare.setting.longest_tokens("decode") == 32_220


def test_memory_counts_means_and_the_longest_must_fit_by_itself(layout_of: LayoutOf) -> None:
    # 100,000 tokens of cache are 13.1 GB on the one GPU.
    alike = layout_of("llama-3.1-8b", {"tp": 1}, input_tokens=1000, output_tokens=24, concurrency=16)
    stated = {"input": {"percentiles": [[0, 10], [50, 700], [90, 1900], [100, 8000]]}}
    unlike = loaded(alike, lengths=stated, input_tokens=922)
    alike_bytes, unlike_bytes = (device_memory(layout).per_device[0].kv_cache_bytes for layout in (alike, unlike))
    assert unlike_bytes == pytest.approx(alike_bytes * 946 / 1024, rel=0.01)
    rare = [[500, 24]] * 999 + [[101_500, 24]]
    long = loaded(alike, input_tokens=601, concurrency=2, lengths={"pairs": rare})
    assert device_memory(long).per_device[0].kv_cache_bytes == 101_524 * 131_072
    assert fits(long) and max_concurrency(long) > 400
    short = replace(long, setting=replace(long.setting, memory_utilization=0.3))
    assert not fits(short) and max_concurrency(short) == 0


@settings(max_examples=15, deadline=None)
@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    users=st.integers(1, 300),
    pairs=st.lists(st.tuples(st.integers(1, 60_000), st.integers(1, 4000)), min_size=1, max_size=6),
)
def test_the_columns_of_a_search_have_the_memory_of_the_plan(
    layout_of: LayoutOf, tp: int, users: int, pairs: list[tuple[int, int]]
) -> None:
    import numpy as np

    from shardwright.tools.performance.memory import shortfall_bytes, usable_bytes
    from shardwright.tools.search.pipelines import pipelines_of

    means = (max(1, round(mean)) for mean in Joint(tuple(pairs)).means)
    tokens, more = means
    plain = layout_of("qwen3-32b", {"tp": tp}, input_tokens=tokens, output_tokens=more, concurrency=users)
    layout = loaded(plain, lengths={"pairs": pairs})
    phases = layout.representatives[0].phases
    columns = ReplicaMemory(layout.setting, tuple(phases))
    pipelines = pipelines_of(((layout.setting.architecture.num_layers,),))
    fullest = columns.fullest_bytes(pipelines, np.zeros(1, dtype=np.int64), np.array([users]))
    assert fullest[0] == usable_bytes(layout) + shortfall_bytes(layout)


def test_a_tail_and_bursts_make_ttft_p99_longer_than_its_mean(layout_of: LayoutOf) -> None:
    layout = loaded(
        layout_of("llama-3.1-8b", {"tp": 1}, dp=8, input_tokens=2199, output_tokens=200, request_rate=40.0),
        lengths=TAIL,
    )
    times = serve(layout, OpenLoop(40.0, 10_000, burstiness=0.5), lengths_of(layout))
    assert times.ttft.p99 > times.ttft.mean


def test_users_who_think_are_fewer_at_once(layout_of: LayoutOf) -> None:
    alike = layout_of("llama-3.1-8b", {"tp": 2}, concurrency=200)
    thinking = loaded(alike, arrivals={"think_time_s": 20.0})
    busy, calm = planned_run(alike), planned_run(thinking)
    assert calm.times.running < 0.6 * busy.times.running
    assert calm.times.ttft.mean < busy.times.ttft.mean
    assert "200 users who think 20 s" in calm.load
    with pytest.raises(InputError, match="state the request_rate that they make"):
        planned_run(loaded(alike, concurrency=50_000, arrivals={"think_time_s": 20.0}))


def test_bursts_cost_what_the_mean_does_not_show(layout_of: LayoutOf) -> None:
    steady = layout_of("llama-3.1-8b", {"tp": 1}, input_tokens=4096, output_tokens=100, request_rate=3.0)
    bursty = loaded(steady, arrivals={"burstiness": 0.2})
    steady_run, bursty_run = planned_run(steady), planned_run(bursty)
    assert bursty_run.times.ttft.p99 > 1.5 * steady_run.times.ttft.p99
    assert bursty_run.load.endswith("of burstiness 0.2")
