"""The structure of a model some of whose sizes are unknown has its layers, operators, heads and experts."""

from typing import Any

import pytest

from shardwright.tools.catalog.architecture import LayerSpec
from shardwright.tools.catalog.config import SIZES, read_architecture, read_structure
from shardwright.tools.catalog.entry import ModelEntry
from shardwright.tools.catalog.models import all_models
from shardwright.tools.errors import InputError

ENTRIES = all_models()


def _parts(layer: LayerSpec) -> tuple[Any, ...]:
    attention, moe = layer.attention, layer.moe
    heads = None if attention is None else (attention.kind, attention.query_heads, attention.kv_heads)
    return heads, layer.ffn is None, None if moe is None else (moe.experts, moe.shared is None)


def _is_unreadable(config: dict[str, Any]) -> bool:
    try:
        read_architecture(config)
    except InputError:
        return True
    return False


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_a_structure_is_that_of_the_model_or_none(entry: ModelEntry) -> None:
    actual = [_parts(layer) for layer in entry.architecture().layers]
    for field in entry.config:
        config = {**entry.config, field: "unknown"}
        if not _is_unreadable(config):
            continue
        structure = read_structure(config)
        assert (structure is not None) >= (field in SIZES), field
        assert structure is None or [_parts(layer) for layer in structure.layers] == actual, field
