"""The number formats that a checkpoint is stored in, from a config: which tensors are quantised, and how.

Reads `torch_dtype`/`dtype`, `quantization_config`, `expert_dtype` and the catalogue's `native_weight_dtype`: what the
checkpoint itself states. Which tensors a quantisation leaves in 16 bits is decided in `precision.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from .architecture import WeightDTypes
from .config_fields import MAX_LAYERS, ConfigFields
from .dtypes import WIDE, DType

_DTYPE_NAMES: dict[str, DType] = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16",
    "float32": "fp32", "fp32": "fp32", "float": "fp32",
    "fp8": "fp8", "float8_e4m3fn": "fp8", "fp8_e4m3": "fp8", "e4m3": "fp8", "mxfp8": "mxfp8",
    "int8": "int8", "int4": "int4", "fp4": "fp4", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "e2m1": "fp4",
}  # fmt: skip
_LAYER = re.compile(r"layers\.(\d{1,6})\b")
# The matrices of attention; most quantisations leave its norms and scales alone anyway.
_ATTENTION = re.compile(r"self_attn(?!.*(?:norm|scale|rotary|indexer|bias))")
_SCHEMES: dict[str, DType] = {"int4": "int4", "int8": "int8", "float8": "fp8", "float4": "nvfp4"}
_GROUPED_METHODS = ("awq", "gptq", "auto-round", "autoround", "gptq_marlin", "awq_marlin")


class NativeFormats(Struct, frozen=True):
    """The checkpoint's formats by tensor class, the name of its precision, and its scale block."""

    dtypes: WeightDTypes
    precision: DType
    scale_block: int | None


class _Quantised(Struct, frozen=True):
    """What a quantisation changes: the format of matmul weights and of experts; `None`: stays in 16 bits.

    `keeps_attention`: attention's matrices stay as they are.
    """

    linear: DType | None = None
    expert: DType | None = None
    keeps_attention: bool = False


def native_formats(fields: ConfigFields, *, is_moe: bool) -> NativeFormats:
    """The formats of the checkpoint; bf16 where it says nothing (noted)."""
    words = fields.text("native_weight_dtype")
    base = _base(fields, words)
    quantised = _from_words(fields, words) or _from_config(fields) or _Quantised()
    expert_text = fields.text("expert_dtype")
    expert = _named(fields, "expert_dtype", expert_text) if expert_text is not None else quantised.expert
    linear = quantised.linear or base
    attention = base if quantised.keeps_attention else linear
    dtypes = WeightDTypes(attention, linear, expert or base, vocabulary=base, router=base, norm=base)
    return NativeFormats(dtypes, dtypes.expert if is_moe else linear, _block(fields))


def _named(fields: ConfigFields, field: str, text: str) -> DType:
    dtype = _DTYPE_NAMES.get(text.lower().removeprefix("torch."))
    if dtype is None:
        raise fields.refuse(f"field {field!r} is {text[:40]!r}, which is no known number format")
    return dtype


def _base(fields: ConfigFields, words: str | None) -> DType:
    """The 16-bit (or 32-bit) format that unquantised tensors have."""
    stated = fields.stated("torch_dtype")
    if isinstance(stated, str):
        dtype = _named(fields, "torch_dtype", stated)
        return dtype if dtype in WIDE else "bf16"
    if words is not None:
        first = words.lower().split()[0].strip(",()") if words.split() else ""
        return _DTYPE_NAMES[first] if first in ("fp16", "fp32") else "bf16"
    fields.assume("torch_dtype = bfloat16: not stated")
    return "bf16"


def _from_words(fields: ConfigFields, words: str | None) -> _Quantised | None:
    """The catalogue's phrase, as in "fp4 experts, fp8 block 128x128 elsewhere" or "mxfp4 (experts), bf16 elsewhere"."""
    if words is None:
        return None
    parts = [part.strip() for part in words.lower()[:200].split(",")]
    first = parts[0].split()[0] if parts[0].split() else ""
    name = first.split("_")[0].split("/")[0]
    head = _DTYPE_NAMES.get(name)
    if head is None:
        raise fields.refuse(f"field 'native_weight_dtype' is {words[:40]!r}, which names no known number format")
    if head in WIDE or "variants" in words:
        return _Quantised()
    if "experts" in parts[0]:
        elsewhere = _DTYPE_NAMES.get(parts[1].split()[0]) if len(parts) > 1 and parts[1] else None
        return _Quantised(linear=None if elsewhere in WIDE else elsewhere, expert=head)
    return _Quantised(head, head)


def _from_config(fields: ConfigFields) -> _Quantised | None:
    config = fields.mapping("quantization_config")
    if not config:
        return None
    method = str(config.get("quant_method", config.get("quant_algo", ""))).lower()[:60]
    if method in ("fp8", "fbgemm_fp8", "finegrained_fp8"):
        return _Quantised("fp8", "fp8", keeps_attention=_ignores_attention(fields, _ignored(config)))
    if method == "mxfp4":
        return _Quantised(None, "mxfp4")
    if method in _GROUPED_METHODS:
        return _by_bits(fields, config.get("bits", config.get("w_bit", 4)))
    if method == "bitsandbytes":
        return _by_bits(fields, 8 if config.get("load_in_8bit") else 4)
    if method in ("compressed-tensors", "compressed_tensors", "modelopt", "modelopt_fp4", "quark", "nvfp4"):
        return _grouped(fields, config, method)
    raise fields.refuse(f"quantization_config has the unknown quant_method {method!r}")


def _by_bits(fields: ConfigFields, bits: Any) -> _Quantised:
    if bits == 4:
        return _Quantised("int4", "int4")
    if bits == 8:
        return _Quantised("int8", "int8")
    raise fields.refuse("quantization_config has an unknown number of bits (4 or 8 can be read)")


def _grouped(fields: ConfigFields, config: Mapping[str, Any], method: str) -> _Quantised:
    """compressed-tensors and modelopt: one scheme for what their `ignore` list does not leave alone."""
    scheme = _scheme(fields, config, method)
    items = _ignored(config)
    ignored = " ".join(items)
    # Checkpoints that quantise the routed experts alone list attention and the shared experts as ignored.
    experts_only = "self_attn" in ignored and ("shared" in ignored or "mlp." in ignored)
    return _Quantised(None if experts_only else scheme, scheme, keeps_attention=_ignores_attention(fields, items))


def _ignored(config: Mapping[str, Any]) -> list[str]:
    """Modules that a quantisation leaves alone, by name or pattern."""
    return [item[:200] for item in _strings(config.get("ignore", config.get("modules_to_not_convert")))]


def _ignores_attention(fields: ConfigFields, ignored: list[str]) -> bool:
    """Whether the ignored modules are the attention of all layers: by a pattern, or layer by layer."""
    attention = [item for item in ignored if _ATTENTION.search(item)]
    named = [_LAYER.search(item) for item in attention]
    layers = fields.count("num_hidden_layers", MAX_LAYERS)
    return None in named or (layers is not None and len({match[1] for match in named if match}) >= layers > 0)


def _scheme(fields: ConfigFields, config: Mapping[str, Any], method: str) -> DType:
    words = " ".join(str(config.get(key, ""))[:60].lower() for key in ("format", "quant_algo", "fmt")) + " " + method
    if "nvfp4" in words:
        return "nvfp4"
    if "mxfp4" in words:
        return "mxfp4"
    if "float-quantized" in words or "fp8" in words:
        return "fp8"
    scheme = _group_weights(config)
    dtype = _SCHEMES.get(f"{scheme.get('type')!s:.9}{scheme.get('num_bits')!s:.9}")
    if dtype is not None:
        return dtype
    if "pack-quantized" in words:
        return "int4"
    if "int-quantized" in words:
        return "int8"
    raise fields.refuse(f"quantization_config ({method}) does not say its number format")


def _group_weights(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the first group of a compressed-tensors config states of weights; empty if nothing."""
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return {}
    group = next(iter(cast("Mapping[str, Any]", groups).values()))
    weights = cast("Mapping[str, Any]", group).get("weights") if isinstance(group, Mapping) else None
    return cast("Mapping[str, Any]", weights) if isinstance(weights, Mapping) else {}


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        return []
    return [item for item in cast("list[Any]", value)[:10_000] if isinstance(item, str)]


def _block(fields: ConfigFields) -> int | None:
    """How many weights in a row share a scale: the edge of an fp8 block, or an int4 group."""
    config = fields.mapping("quantization_config")
    size = config.get("weight_block_size")
    if isinstance(size, list | tuple) and size:
        return _edge(fields, "weight_block_size", cast("list[Any]", size)[-1])
    if config.get("quant_method") in _GROUPED_METHODS and config.get("group_size", -1) != -1:
        return _edge(fields, "group_size", config["group_size"])
    weights = _group_weights(config)
    if weights.get("strategy") == "block":
        structure = weights.get("block_structure")
        return _edge(fields, "block_structure", structure[-1] if isinstance(structure, list) and structure else None)
    if weights.get("type") == "int" and weights.get("group_size") not in (None, -1):
        return _edge(fields, "group_size", weights.get("group_size"))
    words = fields.text("native_weight_dtype") or ""
    return 128 if "block 128x128" in words else 32 if "int4 group 32" in words else None


def _edge(fields: ConfigFields, name: str, edge: Any) -> int:
    if isinstance(edge, int) and not isinstance(edge, bool) and 1 <= edge <= 65536:
        return edge
    raise fields.refuse(f"quantization_config.{name} must be whole numbers")
