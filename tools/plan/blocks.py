"""Folds the layers of a stage into LayerBlocks: runs of like layers, or of a repeated pattern of them.

The fewest nodes win, found exactly by dynamic programming over the stage's layers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache

from msgspec import Struct

from ..catalog.architecture import Architecture, LayerSpec

# No model in the field repeats a pattern longer than this; a longer one is written as several blocks.
_MAX_PERIOD = 16


class Block(Struct, frozen=True):
    """Layers `first` to `last` (inclusive); the children describe `period` of them."""

    first: int
    last: int
    period: int


def layer_signature(layer: LayerSpec) -> tuple[Hashable, ...]:
    """A key of what the nodes of a layer state: layers with the same signature may share a block."""
    return (
        None if layer.attention is None else layer.attention.kind,
        layer.ffn is not None,
        layer.moe is not None,
        layer.shared is not None,
        0 if layer.moe is None else layer.moe.experts,
    )


def _cost(signature: tuple[Hashable, ...]) -> int:
    """Rough node count of one layer: what folding saves."""
    return sum(1 for part in signature[:3] if part)


@lru_cache(maxsize=256)
def _fold(signatures: tuple[tuple[Hashable, ...], ...]) -> tuple[Block, ...]:
    count = len(signatures)
    costs = [_cost(signature) for signature in signatures]
    best: list[tuple[int, Block | None]] = [(0, None)] * (count + 1)
    for start in range(count - 1, -1, -1):
        choice: tuple[int, Block | None] = (1 << 60, None)
        for period in range(1, min(_MAX_PERIOD, count - start) + 1):
            body = 1 + sum(costs[start : start + period])
            if body > choice[0]:
                break  # a longer pattern costs no less
            end = start + period
            while True:
                cost = body + best[end][0]
                if cost < choice[0] or (cost == choice[0] and choice[1] is not None and period == choice[1].period):
                    choice = (cost, Block(start, end - 1, period))
                if end + period > count or signatures[end : end + period] != signatures[start : start + period]:
                    break
                end += period
        best[start] = choice
    blocks: list[Block] = []
    start = 0
    while start < count:
        block = best[start][1]
        assert block is not None
        blocks.append(block)
        start = block.last + 1
    return tuple(blocks)


def fold_sequence(keys: tuple[Hashable, ...]) -> tuple[Block, ...]:
    """The blocks of a sequence of keys, counted from 0, with equal keys as like layers."""
    return _fold(tuple((key,) for key in keys))


def fold_layers(architecture: Architecture, first: int, last: int) -> tuple[Block, ...]:
    """The blocks of layers `first` to `last` (inclusive) of the model, in order."""
    signatures: Sequence[tuple[Hashable, ...]] = [
        layer_signature(layer) for layer in architecture.layers[first : last + 1]
    ]
    return tuple(Block(first + block.first, first + block.last, block.period) for block in _fold(tuple(signatures)))
