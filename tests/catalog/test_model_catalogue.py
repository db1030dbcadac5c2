"""Every catalogue entry has the parameters and the cache that were counted independently of this package."""

import pytest

from shardwright.tools.catalog.entry import ModelEntry
from shardwright.tools.catalog.models import all_models

ENTRIES = {entry.name: entry for entry in all_models()}


@pytest.fixture(params=sorted(ENTRIES))
def entry(request: pytest.FixtureRequest) -> ModelEntry:
    return ENTRIES[request.param]


@pytest.mark.one_in(1)
def test_total_parameters_equal_the_independent_count(entry: ModelEntry) -> None:
    assert entry.architecture().total_params == entry.total_params


def test_cached_elements_per_token_equal_the_independent_count(entry: ModelEntry) -> None:
    counted = entry.kv_cache
    assert counted is not None
    attention = [layer.attention for layer in entry.architecture().layers if layer.attention is not None]
    if "window_elements_per_sequence" in counted:
        # Compressed models: the uncompressed window of every layer is constant, and counted apart.
        windows = sum(spec.state_elements for spec in attention)
        windows += sum(spec.cache_elements_per_token * (spec.window_tokens or 0) for spec in attention)
        assert windows == counted["window_elements_per_sequence"]
        attention = [spec for spec in attention if spec.kind == "compressed"]
    cached = sum(spec.cache_elements_per_token for spec in attention)
    assert cached == counted["elements_per_token"] + counted.get("indexer_elements_per_token", 0)


def test_entry_names_its_source_and_its_confidence(entry: ModelEntry) -> None:
    assert entry.source and entry.confidence in ("high", "medium", "low")


def test_equal_layers_are_the_same_object(entry: ModelEntry) -> None:
    layers = entry.architecture().layers
    assert len({id(layer) for layer in layers}) == len(set(layers))


def test_every_tensor_has_elements_and_every_cache_a_cut(entry: ModelEntry) -> None:
    for layer in entry.architecture().layers:
        assert layer.attention or layer.ffn or layer.moe
        assert not (layer.ffn and layer.moe)
        if layer.attention is not None:
            assert all(tensor.elements >= 0 for tensor in layer.attention.tensors)
            assert layer.attention.cache_shards >= 1
            assert layer.attention.cache_elements_per_token > 0 or layer.attention.state_elements > 0
