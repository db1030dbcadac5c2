"""Arithmetic of attention in tiles of query rows that walk the keys: spread over the chip, or bound by the longest.

A causal mask lets tiles differ in length; a multiprocessor works on one at a time, so that a short batch of long
prompts waits for its longest tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .elementary import Number, ceil, soft_max

TILE_ROWS = 128
_KEY_BLOCK = 64


class TileConstants(Protocol):
    """What constants of a prefill form say of its tiles."""

    @property
    def loop_keys(self) -> float:
        """Keys that the start and the end of a tile are worth."""
        ...

    @property
    def longest_share(self) -> float:
        """Weight of the longest tile."""
        ...

    @property
    def blend(self) -> float:
        """How sharply the time turns from all tiles to the longest."""
        ...


@dataclass(frozen=True, slots=True)
class Tiles:
    """`count` tiles that see `mean_keys` each, the longest `longest_keys`; `key_flops` for each key of a tile."""

    count: Number
    mean_keys: Number
    longest_keys: Number
    key_flops: Number


def tiles_s(constants: TileConstants, tiles: Tiles, flops_s: Number, multiprocessors: int) -> Number:
    """Seconds of `tiles` where full tiles on all `multiprocessors` reach `flops_s` FLOP/s."""
    all_flops = tiles.count * (_whole_blocks(tiles.mean_keys) + constants.loop_keys) * tiles.key_flops
    longest_flops = (_whole_blocks(tiles.longest_keys) + constants.loop_keys) * tiles.key_flops
    alone_s = longest_flops / (flops_s / multiprocessors)
    return soft_max(all_flops / flops_s, constants.longest_share * alone_s, constants.blend)


def _whole_blocks(keys: Number) -> Number:
    return ceil(keys / _KEY_BLOCK) * _KEY_BLOCK
