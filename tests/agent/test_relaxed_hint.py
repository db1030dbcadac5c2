"""A plan without a named engine reports what naming one would gain."""

from __future__ import annotations

import re

import pytest

from shardwright.agent.pipeline import plan

pytestmark = pytest.mark.thorough

FEWER = "Qwen3-235B-A22B on 8 H100, 2k in / 256 out, 32 concurrent"
DENSE = "Llama-3.1-70B on 8 H100, 2k in / 256 out, 4 concurrent"
MIXTRAL = "Mixtral-8x7B on 4 A100, 1k in / 128 out, 16 concurrent"
NODES = "Qwen3-235B-A22B on 4 nodes of 8 H100, 2k in / 256 out, 32 concurrent"


@pytest.mark.parametrize(
    ("request_text", "brings"),
    [
        (FEWER, "vocab_parallel and tp_in_expert"),
        (DENSE, "vocab_parallel"),
        (MIXTRAL, "tp_in_expert"),
        (NODES, "vocab"),
    ],
)
def test_what_is_told_is_what_naming_the_engine_gains(request_text: str, brings: str) -> None:
    unnamed, named = plan(request_text), plan(f"{request_text}, with vLLM")
    assert unnamed.plan is not None and named.plan is not None and unnamed.report is not None
    assert unnamed.estimate is not None and named.estimate is not None
    hint = unnamed.report.hint or ""
    match = re.search(
        r"with vLLM named \(--engine vllm\), which brings (.*?) by itself, .*? would be (\d+)% better", hint
    )
    assert match is not None and brings in match[1]
    gain = unnamed.estimate.latency.end_to_end_ms / named.estimate.latency.end_to_end_ms - 1
    assert gain == pytest.approx(int(match[2]) / 100, abs=0.02)
    assert "with vLLM named" in unnamed.report.explanation


@pytest.mark.parametrize("engine", ["with vLLM", "with SGLang", "on paper, with no engine"])
def test_a_named_engine_has_its_relaxations_and_needs_no_hint(engine: str) -> None:
    report = plan(f"{FEWER}, {engine}").report
    assert report is not None and "by itself" not in (report.hint or "")


def test_one_gpu_has_nothing_to_relax() -> None:
    report = plan("Qwen3-8B on 1 H100, 1k in / 128 out").report
    assert report is not None and report.hint is None


def test_fewer_gpus_by_attention_dp_are_said_where_their_number_was_left_open() -> None:
    words = "How many H100 do I need for DeepSeek-R1 at 6 requests/s, 4k in, 1k out, TTFT p99 under 3 s?"
    result = plan(words, time_limit_s=120.0)
    assert result.plan is not None and result.report is not None
    gpus = result.plan.strategy.gpu_count
    match = re.search(
        r"(?:^|\. )(\d+) GPUs would do with attention DP allowed \(--relax attention_dp\)", result.report.on_fewer or ""
    )
    assert match is not None and int(match[1]) < gpus
    with_it = plan(f"{words} Attention DP is allowed.", time_limit_s=120.0)
    assert with_it.plan is not None and with_it.plan.strategy.gpu_count == int(match[1])


MANY = "DeepSeek-V2-Lite on 4 nodes of 8 L4, 2k in, 256 out, 600 users, best throughput"


def test_what_attention_dp_would_gain_on_many_gpus_stands_in_the_first_lines() -> None:
    plain, relaxed = plan(MANY, time_limit_s=120.0), plan(f"{MANY}. Attention DP is allowed.", time_limit_s=120.0)
    assert plain.report is not None and plain.estimate is not None and relaxed.estimate is not None
    match = re.search(r"^Attention DP was not allowed: .* at least (\d+)% better", plain.report.with_engine or "")
    rates = [result.estimate.throughput.dp_scaled_tokens_per_s for result in (relaxed, plain) if result.estimate]
    assert match is not None and rates[0] / rates[1] - 1 >= int(match[1]) / 100 - 0.01


def test_attention_dp_that_was_not_looked_at_for_want_of_time_is_said_so() -> None:
    report = plan(MANY, time_limit_s=0.0).report
    assert report is not None and any("attention DP" in part for part in report.left_out)
