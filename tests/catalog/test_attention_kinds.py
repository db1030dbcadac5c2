"""Kinds of attention: each name leads to one kind, and the figures of every kind are consistent."""

import json
from collections import Counter
from pathlib import Path

import pytest

from shardwright.tools.catalog.attention.kinds import KINDS, kind_named
from shardwright.tools.catalog.attention.spec import AttentionSpec, causal_pairs
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.models import all_models

CONFIGS = json.loads((Path(__file__).parents[1] / "cases" / "hf_configs.json").read_text(encoding="utf-8"))["configs"]
ARCHITECTURES = {entry.name: entry.architecture() for entry in all_models()} | {
    case["config"]["model_type"]: read_architecture(case["config"]) for case in CONFIGS
}
SPECS = {
    (spec.kind, name): spec
    for name, architecture in ARCHITECTURES.items()
    for spec in (layer.attention for layer in architecture.layers)
    if spec is not None
}


def test_every_word_leads_to_one_kind() -> None:
    for words in ([w for kind in KINDS for w in kind.layer_types], [w for kind in KINDS for w in kind.also_called]):
        assert max(Counter(words).values()) == 1
    for kind in KINDS:
        assert all(kind_named(word) is kind for word in (kind.kind, *kind.also_called, f"{kind.kind} Attention"))
    assert kind_named("quadratic") is None


def test_every_kind_is_tried() -> None:
    assert {kind for kind, _ in SPECS} == {kind.kind for kind in KINDS}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("spec", SPECS.values(), ids=["-".join(key) for key in SPECS])
@pytest.mark.parametrize(("new", "context"), [(1, 0), (1, 100_000), (8192, 0), (700, 60_000)])
def test_no_token_attends_to_more_than_there_is(spec: AttentionSpec, new: int, context: int) -> None:
    attended = spec.attends(new, context)
    assert new <= attended.pairs <= causal_pairs(new, context) * (1 + (spec.state_elements > 0))
    assert attended.read_tokens <= context + new
    assert spec.cached_tokens(context + new) <= context + new


def test_heads_that_hold_copies_are_those_of_the_cache() -> None:
    for spec in SPECS.values():
        assert spec.query_heads in {size.size for size in spec.split_sizes()}, spec
        assert spec.copied_heads in (None, spec.cache_shards), spec
