"""Configs that list their layers one by one: pruned models (block_configs), and Kimi Linear's two lists."""

from typing import Any

import pytest

from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError

PRUNED: dict[str, Any] = {
    "model_type": "nemotron-nas", "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 4,
    "num_key_value_heads": None, "intermediate_size": None, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
WHOLE = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}}
NO_ATTENTION = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 0.5}}
NO_FFN = {"attention": {"n_heads_in_group": 16}, "ffn": {"ffn_mult": None, "no_op": True}}
FOUR = [WHOLE, WHOLE, NO_ATTENTION, NO_FFN]
KIMI = find_model("Kimi-Linear-48B-A3B-Instruct").config


def pruned(blocks: list[Any]) -> Architecture:
    return read_architecture({**PRUNED, "block_configs": blocks})


def test_each_layer_has_the_heads_and_the_width_of_its_own_block() -> None:
    layers = pruned(FOUR).layers
    assert [layer.attention and layer.attention.kv_heads for layer in layers] == [8, 8, None, 4]
    # int(2/3 x 0.5 x 8192) = 2730, up to a multiple of 256.
    assert [layer.ffn and layer.ffn.width for layer in layers] == [28672, 28672, 2816, None]
    assert layers[0] is layers[1]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("attention", "attention and ffn"),
        ({"attention": {"no_op": True}}, "attention and ffn"),
        ({**NO_ATTENTION, "ffn": {"no_op": True}}, "layer 3 of block_configs has neither"),
        ({**WHOLE, "attention": {"replace_with_linear": True}}, "replace_with_linear"),
        ({**WHOLE, "attention": {"n_heads_in_group": 7}}, "groups of 7"),
        ({**WHOLE, "attention": {}}, "n_heads_in_group"),
        ({**WHOLE, "ffn": {"ffn_mult": "5"}}, "ffn_mult"),
        ({**WHOLE, "ffn": {"ffn_mult": -1}}, "ffn_mult"),
        ({**WHOLE, "ffn": {"ffn_mult": float("inf")}}, "ffn_mult"),
    ],
)
def test_a_broken_block_is_refused_by_what_is_wrong(block: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        pruned([WHOLE, WHOLE, WHOLE, block])


def test_blocks_for_another_number_of_layers_are_refused() -> None:
    with pytest.raises(InputError, match="lists 3 layers"):
        pruned(FOUR[:3])


def test_kimi_linears_lists_count_layers_from_one() -> None:
    kinds = [layer.attention.kind for layer in read_architecture(KIMI).layers if layer.attention is not None]
    assert [index for index, kind in enumerate(kinds, 1) if kind == "mla"] == [4, 8, 12, 16, 20, 24, 27]
    assert set(kinds) == {"linear", "mla"}


@pytest.mark.parametrize(
    "lists",
    [
        {"kda_layers": 5},
        {"kda_layers": [1, 2, 3]},
        {"kda_layers": [*KIMI["linear_attn_config"]["kda_layers"][1:], 27]},
        {"full_attn_layers": ["4", None]},
    ],
)
def test_lists_that_do_not_name_each_layer_once_are_refused(lists: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"kda_layers and full_attn_layers|num_hidden_layers"):
        read_architecture({**KIMI, "linear_attn_config": {**KIMI["linear_attn_config"], **lists}})
