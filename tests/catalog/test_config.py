"""Reading configs: Hugging Face spellings, documented defaults, refusals that name the field."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.config_fields import profile_of
from shardwright.tools.catalog.models import all_models, find_model
from shardwright.tools.errors import InputError, MissingFieldError, UnknownNameError

from ..examples import examples

CASES = Path(__file__).parent.parent / "cases"
FRAMEWORK = json.loads((CASES / "hf_configs.json").read_text(encoding="utf-8"))["configs"]
CHECKPOINTS = json.loads((CASES / "hf_checkpoints.json").read_text(encoding="utf-8"))["checkpoints"]


def llama(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "intermediate_size": 128,
        "vocab_size": 100,
        **changes,
    }
    return {key: value for key, value in config.items() if value != "absent"}


@pytest.mark.parametrize("case", FRAMEWORK, ids=[case["model_type"] for case in FRAMEWORK])
def test_parameters_equal_those_of_the_frameworks_module_tree(case: dict[str, Any]) -> None:
    counted = case["parameters"]
    assert read_architecture(case["config"]).total_params in (counted, counted + case["correction_biases"])


@pytest.mark.parametrize("case", CHECKPOINTS, ids=[case["same_as"] for case in CHECKPOINTS])
def test_a_checkpoints_own_spelling_gives_the_catalogues_architecture(case: dict[str, Any]) -> None:
    read, known = read_architecture(case["config"]), find_model(case["same_as"]).architecture()
    for part in (
        "layers",
        "embedding_tensors",
        "lm_head_tensors",
        "final_norm_tensors",
        "native_dtypes",
        "scale_block",
    ):
        assert getattr(read, part) == getattr(known, part), part
    assert read.max_position_embeddings == known.max_position_embeddings


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_needed_dimension_that_is_absent_is_named(field: str) -> None:
    with pytest.raises(MissingFieldError, match=field) as caught:
        read_architecture(llama(**{field: "absent"}))
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["num_experts", "moe_intermediate_size"])
def test_a_moe_model_without_its_expert_dimensions_is_refused(field: str) -> None:
    config = {key: value for key, value in find_model("Qwen3-30B-A3B").config.items() if key != field}
    with pytest.raises(MissingFieldError, match=field):
        read_architecture(config)


def test_absent_optional_fields_take_the_documented_default_and_are_listed() -> None:
    architecture = read_architecture(llama())
    attention = architecture.layers[0].attention
    assert attention is not None
    assert (attention.kv_heads, attention.qk_head_dim) == (8, 8)
    assert (architecture.tied_embeddings, architecture.max_position_embeddings) == (False, 2048)
    listed = " ".join(architecture.assumptions)
    for field in ("num_key_value_heads", "head_dim", "tie_word_embeddings", "max_position_embeddings", "torch_dtype"):
        assert field in listed


def test_a_default_of_another_model_type_is_its_own() -> None:
    config = llama(model_type="mixtral", num_local_experts=4, num_attention_heads=16)
    attention = read_architecture(config).layers[0].attention
    assert attention is not None and attention.kv_heads == 8


def test_null_means_none_and_not_the_default() -> None:
    lite = dict(find_model("DeepSeek-V2-Lite").config)
    attention = read_architecture(lite).layers[0].attention
    assert lite["q_lora_rank"] is None and attention is not None
    assert attention.latent is not None and attention.latent.query_rank is None


def test_an_unknown_model_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        read_architecture(llama(model_type="lama"))
    assert "llama" in caught.value.nearest


@pytest.mark.parametrize("name", ["jamba", "bamba", "mamba", "bert"])
def test_a_model_type_that_is_like_none_is_not_guessed(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        read_architecture(llama(model_type=name))
    assert caught.value.nearest == ()


def test_dimensions_without_a_model_type_are_a_plain_decoder() -> None:
    architecture = read_architecture(llama(model_type="absent", num_key_value_heads=2))
    assert architecture.layers == read_architecture(llama(num_key_value_heads=2)).layers
    assert any("model_type" in note for note in architecture.assumptions)


def test_dimensions_without_a_model_type_may_be_a_mixture_of_experts() -> None:
    config = llama(
        model_type="absent", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1,
        first_k_dense_replace=1,
    )  # fmt: skip
    first, second = read_architecture(config).layers
    assert first.ffn is not None and second.moe is not None
    assert (second.moe.experts, second.moe.top_k, second.moe.width) == (8, 2, 32)
    assert second.moe.shared is not None and second.moe.shared.width == 32


def test_sliding_and_full_layers_may_have_different_heads() -> None:
    layers = find_model("gemma-4-31B-it").architecture().layers
    sliding, full = layers[0].attention, layers[5].attention
    assert sliding is not None and full is not None
    assert (sliding.kind, sliding.kv_heads, sliding.qk_head_dim) == ("sliding", 16, 256)
    assert (full.kind, full.kv_heads, full.qk_head_dim) == ("full", 4, 512)


def test_a_layer_with_one_operator_has_only_that() -> None:
    layers = find_model("Nemotron-3-Nano").architecture().layers
    assert [bool(layer.attention) + bool(layer.ffn) + bool(layer.moe) for layer in layers] == [1] * 52
    mamba = layers[0].attention
    assert mamba is not None and mamba.kind == "linear" and mamba.cache_elements_per_token == 0
    assert mamba.state_elements > 0


def test_a_type_with_experts_needs_their_number_only_where_a_layer_has_them() -> None:
    config = dict(find_model("Nemotron-H-8B").config)
    del config["num_experts"]
    assert read_architecture(config).layers == find_model("Nemotron-H-8B").architecture().layers
    with pytest.raises(MissingFieldError, match="num_experts"):
        read_architecture({**config, "hybrid_override_pattern": f"E{config['hybrid_override_pattern'][1:]}"})


def test_layers_that_reuse_a_selection_have_no_indexer_and_cache_no_index_keys() -> None:
    specs = [layer.attention for layer in find_model("GLM-5.2").architecture().layers]
    with_indexer = [spec for spec in specs if spec is not None and spec.index_heads is not None]
    assert len(with_indexer) == 21
    assert {spec.cache_elements_per_token for spec in specs if spec is not None} == {576, 576 + 128}


def _kinds(architecture: Architecture) -> str:
    return "".join(layer.attention.kind[0] if layer.attention else "-" for layer in architecture.layers)


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16}, "sf"),
        ({"layer_types_run_length": [["full_attention", 1], ["sliding_attention", 1]], "sliding_window": 16}, "fs"),
        ({"layer_types_pattern": ["full_attention"], "layer_types_pattern_repeats": 2}, "ff"),
        ({"sliding_window": 16}, "ss"),
        ({"sliding_window": None}, "ff"),
        ({"num_hidden_layers": 4, "sliding_window_pattern": 2, "sliding_window": 16}, "sfsf"),
        ({"model_type": "qwen2", "sliding_window": 16, "num_key_value_heads": 8}, "ff"),
        (
            {
                "model_type": "qwen2", "sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1,
                "num_key_value_heads": 8,
            },
            "fs",
        ),
        ({"model_type": "gemma2", "sliding_window": 16, "num_key_value_heads": 8}, "sf"),
    ],
)  # fmt: skip
def test_each_way_of_saying_which_layers_slide_is_read(changes: dict[str, Any], kinds: str) -> None:
    assert _kinds(read_architecture(llama(**changes))) == kinds


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": 10**12}, "hidden_size"),
        ({"num_hidden_layers": 10_001}, "num_hidden_layers"),
        ({"num_hidden_layers": 3, "layer_types": ["full_attention"]}, "num_hidden_layers"),
        ({"num_hidden_layers": 0, "layer_types": ["full_attention"]}, "num_hidden_layers"),
        ({"num_hidden_layers": [1], "layer_types": ["full_attention"]}, "num_hidden_layers"),
        ({"layer_types": ["full_attention", "magic"]}, "magic"),
        ({"num_key_value_heads": 3}, "3 key-value heads"),
        ({"num_key_value_heads": 0}, "num_key_value_heads"),
        ({"num_key_value_heads": False}, "num_key_value_heads"),
        ({"num_key_value_heads": [4]}, "num_key_value_heads"),
        ({"num_hidden_layers": [2, 2]}, "num_hidden_layers"),
        ({"hidden_size": [64]}, "hidden_size"),
        ({"tie_word_embeddings": [0, 0, 0]}, "tie_word_embeddings"),
        ({"num_attention_heads": 7}, "head_dim"),
        ({"num_experts": 4, "num_local_experts": 8}, "num_experts"),
        ({"num_experts": 100_001}, "num_experts"),
        ({"num_experts": 4, "num_experts_per_tok": 8, "moe_intermediate_size": 8}, "num_experts_per_tok"),
        ({"torch_dtype": "float3"}, "torch_dtype"),
        ({"quantization_config": {"quant_method": "magic"}}, "magic"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window"),
        ({"text_config": 3}, "text_config"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"max_position_embeddings": 0}, "max_position_embeddings"),
        (
            {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "moe_layer_freq": "x"},
            "moe_layer_freq",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        read_architecture(llama(**changes), where="model.config")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("model.config: ")


KEYS = sorted({key for entry in all_models() for key in entry.config} | {"text_config", "moe_layers", "layer_types"})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(KEYS)
VALUES = st.recursive(SCALARS, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=9), part))


@given(st.sampled_from(all_models()), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), st.booleans())
@examples(150)
def test_any_object_is_an_architecture_or_an_input_error(entry: Any, changes: dict[str, Any], bare: bool) -> None:
    config = changes if bare else {**entry.config, **changes}
    try:
        architecture = read_architecture(config)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert architecture.total_params > 0
        assert 1 <= architecture.num_layers <= 10_000


@pytest.mark.parametrize("key", ["num_key_value_head", "num_key_values_heads", "num_keyvalue_heads"])
def test_a_misspelt_field_is_named_with_the_one_that_is_meant(key: str) -> None:
    config = {
        "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024,
        "vocab_size": 1000, key: 2,
    }  # fmt: skip
    with pytest.raises(InputError, match=f"unknown field '{key}'; did you mean 'num_key_value_heads'"):
        read_architecture(config)
    assert read_architecture({**config, "num_key_value_heads": 2}).num_layers == 4


def test_a_type_that_is_the_same_as_another_may_state_what_differs() -> None:
    types = {
        "base": {"defaults": {"a": 1, "b": 2}, "traits": {"window": "all_layers"}},
        "own": {"same_as": "base", "defaults": {"b": 3}, "traits": {"attention": "compressed"}},
    }
    profile = profile_of("own", types)
    assert profile.defaults == {"a": 1, "b": 3}
    assert profile.traits == {"window": "all_layers", "attention": "compressed"}
