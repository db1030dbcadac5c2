"""The situation of a request follows from its facts."""

from __future__ import annotations

import pytest

from shardwright.agent.loop.situation import situation_of
from shardwright.agent.stated.request import intent_of
from shardwright.knowledge.situation import CONDITIONS, Situation

from .situations import REQUESTS, situation

EXPECTED = {
    "dense": {"dense", "gqa", "single-node", "latency"},
    "moe": {"moe", "mla", "multi-node", "many-requests", "throughput", "limits", "low-precision"},
    "long-context": {"dense", "gqa", "long-context", "multi-node", "latency", "limits"},
    "64 GPUs": {"moe", "mla", "multi-node", "many-requests", "throughput", "limits", "low-precision"},
    "sliding window": {
        "moe", "gqa", "sliding-window", "long-context", "single-node", "many-requests", "cost", "low-precision"
    },
    "relaxed": {"moe", "mla", "multi-node", "many-requests", "throughput", "low-precision", "relaxations"},
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_the_conditions_of_a_request_are_its_facts(name: str) -> None:
    assert set(situation(name).holding()) == EXPECTED[name]


@pytest.mark.parametrize(
    ("request_text", "condition"),
    [
        ("Serve Llama-3.1-70B on 2 H100 in bf16, 8k in / 1k out", "tight-memory"),
        ("Serve Llama-3.1-70B, 2k in / 256 out", "tight-memory"),
        ("Serve Qwen3-Next-80B-A3B on 8 H100, 2k in / 256 out", "linear-attention"),
        ("Serve Llama-3.1-70B on 16 H100 with prefill and decode disaggregated, 2k in / 256 out", "disaggregated"),
        ("Serve Llama-3.1-8B on 1 H100, 2k in / 256 out, max throughput", "many-requests"),
    ],
)
def test_a_request_with_this_fact_is_in_this_situation(request_text: str, condition: str) -> None:
    assert condition in situation_of(intent_of(request_text)).holding()


def test_an_open_number_of_nodes_is_both_one_and_several() -> None:
    holding = situation_of(intent_of("Serve Llama-3.1-70B on H100s, 2k in / 256 out")).holding()
    assert {"single-node", "multi-node"} <= set(holding)


def test_a_model_is_dense_or_has_experts_and_nothing_holds_of_no_request() -> None:
    assert all(("dense" in situation(name).holding()) != ("moe" in situation(name).holding()) for name in REQUESTS)
    assert Situation().holding() == ()
    assert len(CONDITIONS) == 18
