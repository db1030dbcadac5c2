"""A tuned checkpoint takes its longest sequence from its own config, and all else from its entry."""

from __future__ import annotations

import pytest

from shardwright.agent.stated.request import intent_of
from shardwright.tools.catalog.entry import ModelEntry
from shardwright.tools.catalog.models import Variant, all_models, find_model
from shardwright.tools.language.errors import RequestError

TUNED = [(entry, variant) for entry in all_models() for variant in entry.variants]


@pytest.mark.parametrize(("entry", "variant"), TUNED, ids=[variant.name for _, variant in TUNED])
def test_its_name_brings_its_positions(entry: ModelEntry, variant: Variant) -> None:
    short = variant.name.rsplit("/", 1)[-1]
    for written in (variant.name, short, short.lower().replace("-", " ")):
        named = find_model(written)
        assert (named.name, named.base, named.source) == (variant.name, entry.name, variant.source)
        restored = {**named.config, "max_position_embeddings": entry.config["max_position_embeddings"]}
        assert restored == entry.config != named.config
        assert named.architecture().max_position_embeddings == variant.max_position_embeddings
    assert find_model(entry.name) == entry


@pytest.mark.parametrize("suffix", ["AWQ", "GPTQ-Int4", "FP8"])
def test_a_quantised_checkpoint_of_it_has_them_too(suffix: str) -> None:
    entry = find_model(f"Qwen2.5-72B-Instruct-{suffix}")
    assert (entry.name, entry.base) == (f"Qwen/Qwen2.5-72B-Instruct-{suffix}", "Qwen/Qwen2.5-72B")
    assert entry.architecture().max_position_embeddings == 32768


@pytest.mark.parametrize(
    ("written", "positions"),
    [
        ("Qwen2.5-72B", 131072),
        # Other checkpoints of the same shape, and tunings of which nothing else is known.
        ("Qwen2.5-14B-Instruct-1M", 131072),
        ("DeepSeek-R1-Distill-Qwen-32B", 131072),
        ("Llama-3.1-70B-Instruct", 131072),
    ],
)
def test_any_other_name_has_those_of_the_entry(written: str, positions: int) -> None:
    assert find_model(written).architecture().max_position_embeddings == positions


def test_a_request_that_only_the_base_can_hold_is_refused_by_the_name_that_was_written() -> None:
    load = "on 8 H100, 60000 tokens in, 500 out, 4 users"
    assert intent_of(f"Qwen2.5-72B {load}").model.name == "Qwen/Qwen2.5-72B"
    with pytest.raises(RequestError, match=r"32768 positions of Qwen/Qwen2.5-72B-Instruct .*--model FILE"):
        intent_of(f"Qwen2.5-72B-Instruct {load}")
