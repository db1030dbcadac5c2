"""The figures that `plan` reports for a deployment in words are those that `fidelity` scores, to the last digit."""

from __future__ import annotations

from itertools import product

import pytest

import shardwright
from shardwright.tools.fidelity.predict import Predictor
from shardwright.tools.fidelity.situation import Figure, Refused, Situation, situation_of
from shardwright.tools.performance.serving_estimate import serve

from ..examples import draws_all
from .rows import row_of

MODELS = (("Llama-3.1-8B", "bf16"), ("Qwen3-8B", "bf16"), ("Mistral-7B-v0.1", "bf16"))
CARDS = ("H100", "A100", "H200")
WIDTHS = (1, 2, 4)
LOADS = ((1024, 128, 1), (1024, 256, 16), (2048, 128, 40), (512, 512, 100))
ENGINES = ("vLLM", "SGLang")
# The stride shares no factor with a number of choices, so each choice comes up. Every night all rows run.
ROWS = list(product(MODELS, CARDS, WIDTHS, LOADS, ENGINES))[:: 1 if draws_all() else 7]
METRICS: dict[str, Figure] = {"ttft_ms": "ttft_ms", "tpot_ms": "tpot_ms", "output_tok_s_total": "output_tok_s"}


def predicted(row: dict[str, str], metric: str) -> float:
    """The figure that `fidelity` predicts for a row."""
    situation = situation_of(row_of(**row, metric=metric))
    assert isinstance(situation, Situation), situation
    value = Predictor(serve)(situation)
    assert not isinstance(value, Refused), value
    return value


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(4))
def test_the_figures_of_a_plan_are_those_that_fidelity_scores(part: int) -> None:
    seen = 0
    for (model, weights), card, tp, (sent, received, users), engine in ROWS[part::4]:
        load = f"{sent} tokens in, {received} out, {users} concurrent"
        words = f"Serve {model} in {weights} on {tp} {card}, TP{tp}, {load}, {engine}"
        estimated = shardwright.plan(words).estimate
        assert estimated is not None, words
        row = {
            "model": model, "gpu": card, "tp": str(tp), "gpus": str(tp), "isl": str(sent), "osl": str(received),
            "concurrency_or_batch": str(users), "framework": engine, "framework_version": "", "published": "2026-11",
            "weights_dtype": weights, "kv_dtype": weights, "notes": "closed loop",
        }  # fmt: skip
        figures = estimated.latency.ttft_ms, estimated.latency.tpot_ms, estimated.throughput.dp_scaled_tokens_per_s
        assert figures == tuple(predicted(row, metric) for metric in METRICS), words
        seen += 1
    assert seen >= 7
