"""Naming an engine brings what it does by itself, and says so."""

from __future__ import annotations

import pytest

from shardwright.agent.pipeline import intent_of


@pytest.mark.parametrize("engine", ["vLLM", "SGLang", "TensorRT-LLM"])
@pytest.mark.parametrize(
    ("model", "brought"),
    [("Llama-3.1-70B", ("vocab_parallel",)), ("DeepSeek-V3", ("tp_in_expert", "vocab_parallel"))],
)
def test_a_named_engine_brings_the_relaxations_that_stand_for_it(
    engine: str, model: str, brought: tuple[str, ...]
) -> None:
    plain = intent_of(f"{model} on 16 H200")
    assert plain.relaxations == ()
    named = intent_of(f"{model} on 16 H200 with {engine}")
    assert named.relaxations == brought
    assumed = {one.value: one.reason for one in named.assumptions if one.field == "relaxations"}
    assert set(assumed) == set(brought) and all("engine" in reason for reason in assumed.values())


def test_what_was_asked_for_is_not_assumed_as_well() -> None:
    intent = intent_of("Llama-3.1-70B on 8 H100 with vLLM, allow vocab parallel")
    assert intent.relaxations == ("vocab_parallel",)
    assert not [one for one in intent.assumptions if one.field == "relaxations"]
