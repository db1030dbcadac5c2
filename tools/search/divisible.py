"""What the degrees of a stage must divide: its devices, and the heads and widths of a model that are split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

from ..catalog.architecture import Architecture, AttentionSpec


@lru_cache(maxsize=1 << 15)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    lower = [value for value in range(1, isqrt(number) + 1) if number % value == 0]
    return (*lower, *(number // value for value in reversed(lower) if value * value != number))


def legal_attention_tp(spec: AttentionSpec, tp: int) -> bool:
    """Whether tensor parallelism of degree `tp` may split this attention (rule TP005)."""
    if spec.kind == "linear" and spec.linear_key_heads and spec.linear_value_heads:
        return spec.linear_key_heads % tp == 0 and spec.linear_value_heads % tp == 0
    if spec.query_heads % tp:
        return False
    return spec.kind == "mla" or spec.kv_heads % tp == 0 or tp % spec.kv_heads == 0


@dataclass(frozen=True, slots=True)
class Divisible:
    """What tensor parallelism must divide in one model, gathered once: attention kinds and FFN widths."""

    attention: tuple[AttentionSpec, ...]
    ffn_widths: tuple[int, ...]
    block: int

    def tp(self, tp: int) -> bool:
        """Whether `tp` may split every attention of the model."""
        return all(legal_attention_tp(spec, tp) for spec in self.attention)

    def tp_ffn(self, tp_ffn: int) -> bool:
        """Whether `tp_ffn` may split every dense FFN and shared expert.

        With a block-quantised FP8 checkpoint each slice stays a whole number of blocks, as the engines demand.
        """
        if not self.ffn_widths:
            return tp_ffn == 1
        return tp_ffn == 1 or all(
            width % tp_ffn == 0 and (width // tp_ffn) % self.block == 0 for width in self.ffn_widths
        )


def divisible(architecture: Architecture) -> Divisible:
    """What tensor parallelism must divide in `architecture`."""
    kinds = {id(layer): layer for layer in architecture.layers}.values()
    widths: set[int] = set()
    for layer in kinds:
        if layer.ffn is not None:
            widths.add(layer.ffn.width)
        if layer.moe is not None and layer.moe.shared is not None:
            widths.add(layer.moe.shared.width)
    attention = dict.fromkeys(layer.attention for layer in kinds if layer.attention is not None)
    return Divisible(tuple(attention), tuple(sorted(widths)), architecture.scale_block or 1)
