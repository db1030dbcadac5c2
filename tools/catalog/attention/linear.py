"""Linear and recurrent layers: Gated DeltaNet, KDA, lightning attention, Mamba-2.

Such a layer keeps a constant state per sequence and caches nothing per token. State elements include the tail of the
short convolution. Query heads are its key heads, KV heads its value heads; tensor parallelism divides both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ..dtypes import WeightTensor, matrix, vector
from .spec import AttentionContext, AttentionSpec, SplitSize

# The engines that serve such models keep the state in fp32, whatever format the cache has.
_STATE_ELEMENT_BYTES = 4


class LinearAttention(AttentionSpec, frozen=True, kw_only=True):
    """A recurrence over a state of `key heads x key width x value width`."""

    kind = "linear"
    layer_types = dict.fromkeys(
        (
            "linear_attention", "linear", "lightning", "lightning_attention", "mamba", "mamba2", "recurrent", "kda",
            "gated_deltanet",
        ),
        "linear",
    )  # fmt: skip
    also_called = frozenset({"mamba", "mamba2", "recurrent", "lightning", "gated_deltanet"})
    is_recurrent = True

    @classmethod
    def read(cls, context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
        shape, tensors = _RECURRENCES[context.profile.traits.get("linear_kind", "gated_delta_net")](context)
        return cls(
            query_heads=shape.key_heads,
            kv_heads=shape.value_heads,
            qk_head_dim=shape.key_dim,
            v_head_dim=shape.value_dim,
            tensors=(context.norms, *tensors),
            cache_elements_per_token=0,
            cache_shards=1,
            state_elements=shape.value_heads * shape.key_dim * shape.value_dim + shape.conv_tail,
            state_shards=min(shape.key_heads, shape.value_heads),
        )

    def state_element_bytes(self, kv_element_bytes: float) -> float:
        return _STATE_ELEMENT_BYTES

    def split_sizes(self) -> tuple[SplitSize, ...]:
        return SplitSize("key heads", self.query_heads), SplitSize("value heads", self.kv_heads)

    @property
    def output_heads(self) -> int:
        return self.kv_heads


class _Recurrence(Struct, frozen=True):
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_tail: int = 0


_Read = tuple[_Recurrence, list[WeightTensor]]


def _gated_delta_net(context: AttentionContext) -> _Read:
    """Gated DeltaNet (Qwen3-Next): projections of q, k, v, z and of two gates, a short convolution on q, k, v."""
    fields, width = context.fields, context.hidden_size
    why = "a linear-attention layer has this many or this wide heads"
    key_heads, key_dim = fields.size("linear_num_key_heads", why), fields.size("linear_key_head_dim", why)
    value_heads, value_dim = fields.size("linear_num_value_heads", why), fields.size("linear_value_head_dim", why)
    kernel = fields.size("linear_conv_kernel_dim", "the short convolution has this width")
    if value_heads % key_heads:
        raise fields.refuse(f"{value_heads} linear value heads cannot share {key_heads} key heads evenly")
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    tensors = [
        matrix("in_proj_qkvz", width * (2 * keys + 2 * values)),
        matrix("in_proj_ba", width * 2 * value_heads),
        vector("conv1d", mixed * kernel, sharded=True),
        vector("decay", 2 * value_heads, sharded=True),
        vector("linear_norm", value_dim),
        matrix("out_proj", values * width),
    ]
    return _Recurrence(key_heads, value_heads, key_dim, value_dim, mixed * (kernel - 1)), tensors


def _kda(context: AttentionContext) -> _Read:
    """Kimi delta attention: as Gated DeltaNet with a decay per channel and equal heads throughout.

    Its two gates are full matrices (Ling 3) or go through the width of one head (Kimi Linear, arXiv 2510.26692).
    """
    fields, width = context.fields, context.hidden_size
    heads = fields.size("linear_num_heads", "a linear-attention layer has this many heads")
    dim = fields.size("linear_head_dim", "a linear-attention head has this width")
    kernel = fields.size("linear_conv_kernel_dim", "the short convolution has this width")
    inner = heads * dim
    is_low_rank = fields.flag("linear_low_rank_gates")
    gates = [
        part
        for name in ("forget_gate", "output_gate")
        for part in (
            [WeightTensor(f"{name}_a", width * dim, "replicated"), matrix(f"{name}_b", dim * inner)]
            if is_low_rank
            else [matrix(name, width * inner)]
        )
    ]
    tensors = [
        matrix("qkv_proj", width * 3 * inner),
        vector("conv1d", 3 * inner * kernel, sharded=True),
        *gates,
        matrix("beta_proj", width * heads),
        vector("decay", heads + inner, sharded=True),
        vector("linear_norm", dim),
        matrix("out_proj", inner * width),
    ]
    return _Recurrence(heads, heads, dim, dim, 3 * inner * (kernel - 1)), tensors


def _lightning(context: AttentionContext) -> _Read:
    """Lightning attention (MiniMax-01, arXiv 2501.08313): full heads, a state of d x d each, gated output."""
    width, heads = context.hidden_size, context.query_heads
    dim = context.head_dim
    inner = heads * dim
    tensors = [
        matrix("qkv_proj", width * 3 * inner),
        matrix("output_gate", width * inner),
        vector("linear_norm", inner, sharded=True),
        matrix("out_proj", inner * width),
    ]
    return _Recurrence(heads, heads, dim, dim), tensors


def _mamba2(context: AttentionContext) -> _Read:
    """Mamba-2 (arXiv 2405.21060): heads of `mamba_head_dim` with a state of `ssm_state_size`, B and C in groups."""
    fields, width = context.fields, context.hidden_size
    heads = fields.size("mamba_num_heads", "a Mamba layer has this many heads")
    dim = fields.size("mamba_head_dim", "a Mamba head has this width")
    groups = fields.size("n_groups", "a Mamba layer groups its B and C projections")
    state = fields.size("ssm_state_size", "a Mamba head keeps a state of this size per channel")
    kernel = fields.size("conv_kernel", "the short convolution has this width")
    inner = heads * dim
    mixed = inner + 2 * groups * state
    tensors = [
        matrix("in_proj", width * (inner + mixed + heads)),
        vector("conv1d", mixed * (kernel + 1), sharded=True),
        vector("decay", 3 * heads, sharded=True),
        vector("linear_norm", inner, sharded=True),
        matrix("out_proj", inner * width),
    ]
    return _Recurrence(groups, heads, state, dim, mixed * (kernel - 1)), tensors


_RECURRENCES: Mapping[str, Callable[[AttentionContext], _Read]] = {
    "gated_delta_net": _gated_delta_net,
    "kda": _kda,
    "lightning": _lightning,
    "mamba2": _mamba2,
}
