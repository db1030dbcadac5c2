"""Conversations as benchmarks draw them: the stated means, and many short answers, which follow long prompts."""

from __future__ import annotations

import statistics

import pytest

from shardwright.tools.fidelity.load import conversations


# The means that runs of `vllm bench serve` on ShareGPT print with tokenizers of GLM, Qwen3, DeepSeek and gpt-oss.
@pytest.mark.parametrize("means", [(214, 200), (217, 201), (219, 197), (215, 187), (233, 221), (20, 2000)])
def test_conversations_have_the_means_that_a_row_states(means: tuple[int, int]) -> None:
    assert conversations(*means).means == pytest.approx(means, rel=0.02)


def test_conversations_are_as_the_data_set_has_them() -> None:
    prompts, answers = zip(*conversations(219, 199).pairs, strict=True)
    # Of 8,000 requests that vLLM's benchmark would send: what `benchmarks/conversation_lengths.py` prints of them.
    assert 100 * sum(tokens <= 10 for tokens in answers) / len(answers) == pytest.approx(9.4, abs=0.5)
    assert 1e3 * statistics.fmean(1 / (tokens - 1) for tokens in answers) == pytest.approx(33.8, rel=0.03)
    assert statistics.correlation(prompts, answers) == pytest.approx(-0.28, abs=0.01)
    assert min(answers) >= 4 and max(prompts) <= 1024 and max(map(sum, conversations(219, 199).pairs)) <= 2048
