"""The better end of a range is no better than the datasheet's rates allow, worked out here by hand."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.tools.performance.estimate import estimate_layout

# Parameters without the embedding table, and those of the head, which a prompt needs for its last token alone.
PARAMETERS = {
    "Llama-3.1-8B": (8_030_261_248 - 128_256 * 4096, 128_256 * 4096),
    "Llama-3.1-70B": (70_553_706_496 - 128_256 * 8192, 128_256 * 8192),
}
CASES = [
    ("Llama-3.1-8B", 1, "h100-sxm"),
    ("Llama-3.1-8B", 2, "l40s"),
    ("Llama-3.1-70B", 8, "h100-sxm"),
    ("Llama-3.1-70B", 4, "a100-80gb-sxm"),
]
LOADS: list[dict[str, Any]] = [{"concurrency": 1}, {"concurrency": 64}, {"request_rate": 2.0}]
INPUT_TOKENS, OUTPUT_TOKENS = 2048, 256


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} on {case[1]} {case[2]}")
def test_no_range_ends_beyond_what_the_datasheet_allows(
    case: tuple[str, int, str], load: dict[str, Any], layout_of: Any
) -> None:
    model, gpus, accelerator = case
    layout = layout_of(
        model, {"tp": gpus, "tp_ffn": gpus}, accelerator=accelerator, input_tokens=INPUT_TOKENS,
        output_tokens=OUTPUT_TOKENS, **load,
    )  # fmt: skip
    facts, (read, head) = layout.setting.hardware, PARAMETERS[model]
    prompt_ms = 1e3 * 2 * INPUT_TOKENS * (read - head) / (gpus * facts.peak_flops("bf16"))
    step_ms = 1e3 * 2 * read / (gpus * facts.memory_bandwidth_bytes_s)
    estimate = estimate_layout(layout)
    ranges = estimate.ranges
    assert ranges.ttft_ms is not None and ranges.tpot_ms is not None and ranges.dp_scaled_tokens_per_s is not None
    assert ranges.ttft_ms[0] >= prompt_ms and ranges.tpot_ms[0] >= step_ms
    assert ranges.dp_scaled_tokens_per_s[1] <= 1e3 * OUTPUT_TOKENS / prompt_ms
    if "request_rate" in load:
        # A run of finitely many requests serves their tokens in a little less or more time.
        assert ranges.dp_scaled_tokens_per_s[1] <= 1.1 * OUTPUT_TOKENS * load["request_rate"]
    figures = estimate.latency.model_dump() | estimate.throughput.model_dump()
    for name, ends in ranges:
        assert ends is None or ends[0] <= figures[name] * (1 + 1e-9) <= ends[1] * (1 + 2e-9)


def test_a_time_that_is_no_shorter_at_datasheet_rates_has_a_range_below_it_all_the_same() -> None:
    """Faster servers are sent more at once by users who wait for answers: a queue may be longer, not what is sure."""
    estimate = plan(
        "Qwen3-32B on 4x H100 NVL, 1500/250, 40 users, FP4 weights, prefill and decode apart, vLLM"
    ).estimate
    assert estimate is not None and estimate.ranges.ttft_ms is not None
    assert estimate.ranges.ttft_ms[0] < 0.95 * estimate.latency.ttft_ms
