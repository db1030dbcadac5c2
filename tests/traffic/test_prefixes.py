"""Prefixes that prompts of a trace share: found from block hashes, replayed by a plan, reported in its description."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.pipeline import plan
from shardwright.benchmarks.traces import mooncake_lines
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.traffic.rows import Prefixes
from shardwright.tools.traffic.trace import trace_of_text

from ..examples import examples

pytestmark = pytest.mark.thorough

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm"}
BLOCK = 512


def mooncake(requests: Sequence[tuple[int, Sequence[int]]], answer: int = 40) -> str:
    lines = (
        {"timestamp": 1000 * at, "input_length": tokens, "output_length": answer, "hash_ids": list(blocks)}
        for at, (tokens, blocks) in enumerate(requests)
    )
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_each_request_is_replayed_with_the_one_that_it_shares_most_with() -> None:
    talk = [
        (1024, [1, 2]),  # 2 whole blocks of 512
        (1000, [1, 3]),  # begins as the first: 512
        (1500, [1, 2, 4]),  # goes on from the first: 1,024
        (700, [5, 6]),  # new
        (1020, [1, 2]),  # as the first and the third; the third asked last: all of its 1,020
        (400, [7]),  # new
    ]
    trace = trace_of_text(mooncake(talk))
    assert trace.pairs == tuple((tokens, 40) for tokens, _ in talk)
    assert trace.replay == ((0, 0), (0, 512), (0, 1024), (0, 0), (2, 1020), (0, 0))
    # Half of the 12 blocks had come before: 1, then 1 and 2, then both.
    assert trace.shared_share == 5 / 12


def text_of(number: int, other: Sequence[int], shared: int, fresh: int) -> list[int]:
    return [*other[:shared], *(1000 * (number + 1) + place for place in range(fresh))]


@examples(300)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 6), st.integers(0, 4)), min_size=2, max_size=12),
    st.data(),
)
def test_wherever_the_record_begins_no_earlier_request_of_it_shares_more(
    asked: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    texts: list[list[int]] = []
    prefixes = Prefixes()
    for number, (other, shared, fresh) in enumerate(asked):
        texts.append(text_of(number, texts[other % number] if number else [], shared, fresh + 1))
        prefixes.add(BLOCK * len(texts[-1]), texts[-1])
    first = data.draw(st.integers(0, len(texts) - 1))
    places = range(first, len(texts))
    prompts = [BLOCK * len(texts[place]) for place in places]

    def common(blocks: Sequence[int], others: Sequence[int]) -> int:
        return next(
            (at for at, (a, b) in enumerate(zip(blocks, others, strict=False)) if a != b), min(len(blocks), len(others))
        )

    most = [max((common(texts[at], texts[before]) for before in range(first, at)), default=0) for at in places]
    replay = prefixes.replay(places, prompts)
    assert (replay is None) == (not any(most))
    for place, (earlier, tokens) in enumerate(replay or ()):
        assert tokens == BLOCK * most[place]
        assert tokens == 0 or common(texts[first + place], texts[first + earlier]) * BLOCK == tokens


def test_the_sample_is_of_requests_in_a_row_and_of_the_busiest_stretch() -> None:
    trace = trace_of_text("\n".join(mooncake_lines()), 200, 3)
    whole = trace_of_text("\n".join(mooncake_lines()), 1000, 3)
    assert trace.replay is not None and len(trace.replay) == len(trace.pairs) == 200
    lengths = [(row["input_length"], row["output_length"]) for row in map(json.loads, mooncake_lines())]
    starts = [at for at in range(len(lengths)) if tuple(lengths[at : at + 200]) == trace.pairs]
    assert len(starts) == 1
    assert whole.prefixes is not None and whole.shared_share is not None
    assert whole.prefixes.most_shared(whole.pairs, 1) == pytest.approx(whole.shared_share, abs=0.05)


def test_a_plan_of_a_trace_has_the_hit_rate_of_its_prompts_and_one_that_is_stated_goes_before() -> None:
    trace = trace_of_text("\n".join(mooncake_lines(3000)), 500)
    planned = plan(**SMALL, trace=trace, request_rate=0.8).plan
    assert planned is not None and planned.workload.prefixes == trace.prefixes
    figures = estimate(planned, trace=trace)
    cache = figures.load.prefix_cache
    assert cache is not None and 0.1 < cache.hit_share < 0.6
    stated = plan(**SMALL, trace=trace, request_rate=0.8, prefix_cache_hit_rate=0.3).plan
    assert stated is not None and stated.workload.prefixes is None
    assert stated.workload.prefix_cache_hit_rate == 0.3
    assert estimate(stated, trace=trace).load.prefix_cache is None


def test_requests_beyond_the_model_are_left_out_with_what_they_shared() -> None:
    # The second is too long for the model; the third shares with it what it shares with the first.
    long = [(1024, [1, 2]), (150_000, [1, 2, *range(3, 294)]), (2048, [1, 2, 3, 300]), (600, [400, 401])]
    planned = plan(**SMALL, trace=trace_of_text(mooncake(long * 3))).plan
    assert planned is not None and planned.workload.prefixes is not None
    replay = planned.workload.prefixes.replay
    assert replay is not None and len(replay) == 9
    assert replay[:3] == ((0, 0), (0, 1024), (0, 0))


@pytest.mark.parametrize("blocks", [[[1], [1, 2, 3]], [[1, 2, 3], [1]]])
def test_blocks_that_do_not_agree_with_lengths_are_not_counted_on(blocks: list[list[int]]) -> None:
    # A block of 5,000 tokens or more in one request, of 50 at most in the other.
    lengths = (5000, 100) if len(blocks[0]) == 1 else (100, 5000)
    trace = trace_of_text(mooncake(list(zip(lengths, blocks, strict=True))))
    assert trace.replay is None and "not counted on" in trace.describe()
