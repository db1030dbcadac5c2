"""Fields that single families write in their own way, as the plain fields that the reader knows: DBRX, Falcon,
Gemma 4, Kimi Linear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import replace

from ..errors import InputError
from .config_fields import MAX_LAYERS, Profile


def plain_fields(values: Mapping[str, Any], profile: Profile, where: str) -> tuple[Mapping[str, Any], Profile]:
    """The fields of a text decoder in the reader's spellings, and its profile.

    Raises InputError: a part that a family nests is not of its form; the message names `where` and the field.
    """
    values = _flatten(values)
    if profile.model_type == "falcon":
        values, profile = _falcon(values, profile)
    if isinstance(values.get("per_layer_config"), Mapping):
        values = _per_layer(values, where)
    if values.get("linear_attn_config") is not None:
        values = _kimi_linear(values, where)
    return values, profile


def _flatten(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Move the fields that DBRX nests to the top level."""
    fields = dict(values)
    for part in ("attn_config", "ffn_config"):
        nested: Any = fields.get(part)
        if isinstance(nested, Mapping):
            inner = cast("Mapping[str, Any]", nested)
            fields = {**{key: value for key, value in inner.items() if key != "hidden_size"}, **fields}
    return fields


def _falcon(values: Mapping[str, Any], profile: Profile) -> tuple[Mapping[str, Any], Profile]:
    """Falcon's switches as plain fields: its old architecture has one KV head and one norm for both operators."""
    fields = dict(values)
    stated_heads = fields.get("num_key_value_heads")
    is_new = fields.get("new_decoder_architecture", isinstance(stated_heads, int) and stated_heads > 1) is True
    if stated_heads is None:
        heads = fields.get("num_attention_heads", fields.get("n_head"))
        one_head = not is_new and fields.get("multi_query", True) is True
        fields["num_key_value_heads"] = 1 if one_head else fields.get("num_kv_heads") if is_new else heads
        fields.pop("num_kv_heads", None)
    norms = fields.get("num_ln_in_parallel_attn") or (2 if is_new else 1)
    if fields.get("parallel_attn", True) is not True:
        norms = 2
    return fields, replace(profile, traits={**profile.traits, "ffn_norms": 1 if norms == 2 else 0})


def _per_layer(values: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Gemma 4 as transformers 5 saves it: the full layers' own heads, written out once per layer, as global ones."""
    overrides = list(cast("Mapping[str, Any]", values["per_layer_config"]).values())
    first: Any = overrides[0] if overrides else {}
    known = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
    if (
        not isinstance(first, Mapping)
        or any(other != first for other in overrides)
        or not known.keys() >= set(cast("Mapping[str, Any]", first))
    ):
        raise InputError(f"{where}: field 'per_layer_config' may hold one head_dim and num_key_value_heads for all")
    overridden = dict(cast("Mapping[str, Any]", first))
    return {**values, **{known[key]: overridden[key] for key in overridden}}


def _kimi_linear(values: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Kimi Linear's recurrent layers, which it numbers from 1 and describes in a nested object."""
    part: Any = values["linear_attn_config"]
    inner: Mapping[str, Any] = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}
    lists: list[Any] = [inner.get(name) for name in ("kda_layers", "full_attn_layers")]
    if not all(isinstance(layers, list | tuple) and len(cast("list[Any]", layers)) <= MAX_LAYERS for layers in lists):
        raise InputError(f"{where}: field 'linear_attn_config' must list kda_layers and full_attn_layers")
    linear, full = (cast("list[Any]", layers) for layers in lists)
    count = len(linear) + len(full)
    if sorted(map(str, [*linear, *full])) != sorted(map(str, range(1, count + 1))):
        raise InputError(f"{where}: kda_layers and full_attn_layers must name each layer from 1 to {count} once")
    return {
        **values,
        "layer_types": ["full_attention" if layer in full else "linear_attention" for layer in range(1, count + 1)],
        "linear_num_heads": inner.get("num_heads"),
        "linear_head_dim": inner.get("head_dim"),
        "linear_conv_kernel_dim": inner.get("short_conv_kernel_size"),
        "linear_low_rank_gates": inner.get("use_full_rank_gate") is not True,
    }
