"""Layers that a config lists one by one, each with its own KV heads and FFN width: models pruned by a search.

Llama-Nemotron Super (arXiv 2411.19146; `DeciLMForCausalLM`). A layer may lack its attention or its FFN; a layer
without both (Llama-Nemotron Ultra has 81) has no operator, so that no plan can place it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from .architecture import FFNSpec, LayerSpec
from .attention.kinds import read_attention
from .attention.spec import AttentionContext, AttentionSpec
from .config_ffn import FFNContext, dense_ffn
from .config_fields import ConfigFields, Profile

# An FFN is 2/3 x `ffn_mult` x hidden size wide, rounded up to a multiple of this.
_WIDTH_MULTIPLE = 256
_MOST_SHARE = 1000


def block_layers(fields: ConfigFields, profile: Profile, width: int) -> tuple[LayerSpec, ...]:
    """One `LayerSpec` per item of `block_configs`; equal layers are the same object.

    Raises InputError: an item is not of this form, replaces an operator by a linear one, or has none.
    """
    heads = fields.size("num_attention_heads", "tensor parallelism splits attention by heads")
    blocks = [_block(fields, item) for item in fields.items("block_configs") or []]
    count = fields.count("num_hidden_layers")
    if count is not None and count != len(blocks):
        raise fields.refuse(f"num_hidden_layers is {count} but block_configs lists {len(blocks)} layers")
    layers: dict[tuple[int | None, float | None], LayerSpec] = {}
    if (None, None) in blocks:
        raise fields.refuse(f"layer {blocks.index((None, None))} of block_configs has neither attention nor an FFN")
    for group, share in blocks:
        if (group, share) not in layers:
            layers[group, share] = LayerSpec(
                attention=None if group is None else _attention(fields, profile, width, heads, group),
                ffn=None if share is None else _ffn(fields, profile, width, share),
                moe=None,
            )
    return tuple(layers[block] for block in blocks)


def _block(fields: ConfigFields, item: Any) -> tuple[int | None, float | None]:
    """Query heads per KV head, and the FFN's width multiplier; `None` where the layer lacks that operator."""
    parts: Mapping[str, Any] = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}
    attention, ffn = parts.get("attention"), parts.get("ffn")
    if not isinstance(attention, Mapping) or not isinstance(ffn, Mapping):
        raise fields.refuse("field 'block_configs' must list objects with attention and ffn")
    where = f"{fields.where}, block_configs"
    mixer = ConfigFields(cast("Mapping[str, Any]", attention), {}, None, where)
    feed = ConfigFields(cast("Mapping[str, Any]", ffn), {}, None, where)
    if mixer.flag("replace_with_linear") or feed.flag("replace_with_linear"):
        raise fields.refuse("layers of block_configs with replace_with_linear cannot be read")
    group = None if mixer.flag("no_op") else mixer.size("n_heads_in_group", "so many query heads share a KV head")
    if feed.flag("no_op"):
        return group, None
    share: Any = feed.value("ffn_mult")
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= _MOST_SHARE:
        raise fields.refuse(f"field 'ffn_mult' must be a number above 0 and at most {_MOST_SHARE}")
    return group, float(share)


def _attention(fields: ConfigFields, profile: Profile, width: int, heads: int, group: int) -> AttentionSpec:
    if heads % group:
        raise fields.refuse(f"{heads} attention heads do not fall into groups of {group}")
    layer_fields = fields.with_values({"num_key_value_heads": heads // group})
    return read_attention(AttentionContext(layer_fields, profile, width, heads), "full", has_indexer=False)


def _ffn(fields: ConfigFields, profile: Profile, width: int, share: float) -> FFNSpec:
    inner = -(-int(2 * share * width / 3) // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
    return dense_ffn(FFNContext(fields.with_values({"intermediate_size": inner}), profile, width))
