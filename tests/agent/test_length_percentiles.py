"""In words, English or Chinese, each length goes with its percentile; other figures stay as they were."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.language.request import read_request

READ: list[tuple[str, dict[str, Any]]] = [
    ("prompts p50 1k, p95 8k, 200 out", {"input": [(50, 1024), (95, 8192)]}),
    ("median prompt 800 tokens, p99 6k", {"input": [(50, 800), (99, 6144)]}),
    ("提示词 p50 1k、p95 8k", {"input": [(50, 1024), (95, 8192)]}),
    (
        "输入中位数 800，p99 6000，输出 p50 100、p95 400",
        {"input": [(50, 800), (99, 6000)], "output": [(50, 100), (95, 400)]},
    ),
    (
        "input 1k p50 and 8k p95, output 100 median, 900 p99, TTFT p95 under 2 s",
        {"input": [(50, 1024), (95, 8192)], "output": [(50, 100), (99, 900)]},
    ),
    (
        "prompts p50 1k, p90 4k, p99 8k; answers p50 200 and p95 900; 30 requests per second",
        {"input": [(50, 1024), (90, 4096), (99, 8192)], "output": [(50, 200), (95, 900)]},
    ),
    (
        "prompt tokens p50=512 p99=4096, output tokens p50=64 p99=512",
        {"input": [(50, 512), (99, 4096)], "output": [(50, 64), (99, 512)]},
    ),
]


@pytest.mark.parametrize(("words", "lengths"), READ, ids=[words for words, _ in READ])
def test_each_figure_is_read_with_its_percentile(words: str, lengths: dict[str, Any]) -> None:
    said = read_request(f"Llama-3.1-8B on 4 H100, {words}")
    assert said.lengths is not None and said.unread == ()
    percentiles = {side: list(getattr(said.lengths, side).percentiles) for side in lengths}
    assert percentiles == lengths and said.lengths.pairs is None
    assert said.input_tokens is None and said.input_tokens_range is None
    assert any("percentiles of the input" in reading for reading in said.readings)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("prompts of 1k on average, up to 8k, 200 out", {"input_tokens": 1024, "input_tokens_range": (1024, 8192)}),
        ("outputs between 100 and 500 tokens, mean 200", {"output_tokens": 200, "output_tokens_range": (100, 500)}),
        ("1k in 200 out, TTFT p99 under 1 s", {"input_tokens": 1024, "ttft_statistic": "p99"}),
        ("prompts p50 8k, p95 1k", {"lengths": None}),
    ],
)
def test_what_are_no_percentiles_stays_what_it_is(words: str, fields: dict[str, Any]) -> None:
    said = read_request(f"Llama-3.1-8B on 4 H100, {words}")
    assert said.lengths is None and {name: getattr(said, name) for name in fields} == fields
