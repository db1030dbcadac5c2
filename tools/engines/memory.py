"""What an engine takes of a GPU, beside weights and KV cache, when it sizes its cache at start-up."""

from __future__ import annotations

import math
from dataclasses import dataclass

GIB = 2**30
# Batch sizes that vLLM captures: 1, 2, 4, every 8 up to 256, every 16 up to 512.
_EVERY_8_UP_TO, _CAPTURED_AT_MOST = 256, 512


@dataclass(frozen=True, slots=True)
class Batch:
    """The largest batch of an engine, which its start-up run measures: tokens of a pass, and sequences sampled."""

    tokens: int
    sequences: int


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What lies beside weights and KV cache within an engine's share of a GPU, and what the share is taken of.

    `logit_bytes`: what sampling holds at its peak per sequence and entry of the vocabulary. `alone_bytes`,
    `group_bytes`, `linked_bytes`: what libraries take outside the framework's allocator, on a GPU by itself, on one of
    a tensor group, and where links other than PCIe join that group. `graph_bytes`: of one layer in a CUDA graph.
    `counts_passes`: whether activations lie within the share. `of_free`: the share is of what all else leaves free.
    `takes_whole_prompts`: the largest batch has at least a prompt of full length. `mxfp4_tile`: multiples that MXFP4
    experts are padded to, of the hidden size and of their width on a rank.
    """

    batch: Batch
    alone_bytes: float
    group_bytes: float
    linked_bytes: float
    logit_bytes: float = 0.0
    graph_bytes: float = 0.0
    counts_passes: bool = True
    of_free: bool = False
    takes_whole_prompts: bool = False
    mxfp4_tile: tuple[int, int] = (1, 1)

    def library_bytes(self, ranks: int, *, linked: bool) -> float:
        """Bytes outside the framework's allocator on one of `ranks` GPUs of a tensor group."""
        if ranks <= 1:
            return self.alone_bytes
        return self.linked_bytes if linked else self.group_bytes

    def padded_share(self, hidden: int, width: float) -> float:
        """By what share MXFP4 experts of this hidden size and width on a rank grow."""
        tall, wide = (
            math.ceil(size / tile) * tile / size for size, tile in zip((hidden, width), self.mxfp4_tile, strict=True)
        )
        return tall * wide - 1.0

    def graphs(self, sequences: int) -> int:
        """CUDA graphs of a layer: one for each batch size that is captured, up to twice the sequences."""
        most = min(_CAPTURED_AT_MOST, 2 * sequences)
        return 3 + min(most, _EVERY_8_UP_TO) // 8 + max(0, most - _EVERY_8_UP_TO) // 16
