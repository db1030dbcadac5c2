"""Time of attention: for prompts and their chunks in tiles like FlashAttention's; for decode a read of the KV cache.

Prefill: t = launch + write + soft_max(soft_max(all tiles, longest tile), memory): tiles of 128 query rows walk the keys
in blocks of 64. The query heads of one KV head are rows of the same tile; those of tokens that decode beside prompts
have a tile each. Writing the new tokens' keys and values to the cache is included, as in the tables of measured times.
Any shape of `Attention` has a time; decode too, though the decode form is more accurate.

A causal mask lets tiles differ in length; a multiprocessor works on one at a time, so a small batch of long prompts
waits for its longest tile.

Decode: t = launch + split + waves + soft_max(memory, arithmetic). Few sequences are split over the multiprocessors and
combined (a cost that grows with the logarithm of the length); many run in waves of thread blocks that each cost time
even with almost no cache. All sequences have the same length; the caller handles unequal ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from ...catalog.dtypes import element_bytes
from ..chip import Chip
from ..shapes import Attention
from .constant import constant
from .elementary import Number, ceil, larger, log2, smaller, soft_max

# Head width that the share of the peak is stated for; other widths scale it by a power of their ratio.
_HEAD = 128
# How smoothly the time changes from memory to arithmetic, which share the pipeline of a tile.
_BLEND = 2.0


@dataclass(frozen=True, slots=True)
class PrefillConstants:
    """Constants of attention over new tokens; shares are of datasheet peaks."""

    launch_us: float = constant(8.0, 2.0, 40.0, "cost of the kernels at no work, in microseconds")
    compute_share: float = constant(0.6, 0.1, 1.0, "share of the 16-bit peak with heads 128 wide")
    memory_share: float = constant(0.7, 0.1, 1.0, "share of the memory bandwidth for queries, outputs and cached keys")
    write_share: float = constant(0.5, 0.05, 1.0, "share of the memory bandwidth of the write to the cache")
    token_us: float = constant(0.1, 0.001, 1.0, "write to the cache of one token on each multiprocessor, microseconds")
    loop_keys: float = constant(100.0, 1.0, 600.0, "keys that the start and the end of a tile are worth")
    longest_share: float = constant(1.0, 0.2, 4.0, "weight of the longest tile, which one multiprocessor does alone")
    blend: float = constant(2.0, 1.0, 8.0, "how sharply the time turns from all tiles to the longest")
    narrow_power: float = constant(0.3, 0.01, 1.0, "loss of heads narrower than 128: share times (width/128)^this")
    wide_power: float = constant(0.1, 0.001, 1.0, "gain of heads wider than 128, likewise")


def visible_pairs(kernel: Attention) -> Number:
    """(query, visible key) pairs of one sequence: causal, cut at the window."""
    new, context = kernel.new_tokens, kernel.context
    if kernel.window is None:
        return new * context + new * (new + 1) / 2
    # New tokens before the window is full see everything before them; the others see `window` keys.
    growing = larger(smaller(kernel.window - context, new), 0.0)
    return growing * context + growing * (growing + 1) / 2 + (new - growing) * kernel.window


def attention_flops(kernel: Attention) -> Number:
    """FLOPs of the scores and of their product with the values, in all sequences."""
    return 4.0 * kernel.sequences * kernel.query_heads * kernel.head_dim * visible_pairs(kernel)


def attention_bytes(kernel: Attention) -> Number:
    """Bytes that must move: queries in, outputs out (16 bit), visible keys and values in (KV format)."""
    seen = kernel.new_tokens + kernel.context
    if kernel.window is not None:
        seen = smaller(seen, kernel.new_tokens + kernel.window)
    rows = 2 * kernel.query_heads * kernel.new_tokens * 2.0
    return kernel.sequences * kernel.head_dim * (rows + 2 * kernel.kv_heads * seen * element_bytes(kernel.kv))


def attention_prefill_parts(
    constants: PrefillConstants, chip: Chip, kernel: Attention, memory_scale: Number = 1.0
) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work.

    `memory_scale` is the share of the memory time that remains if a benchmark has its data in the L2 cache; serving
    reads them from memory (1). Raises MissingFieldError: the chip states no peak of 16-bit arithmetic.
    """
    peak = chip.peak("bf16")
    rate = peak * constants.compute_share * _width_share(constants, kernel.head_dim)
    new, seen = kernel.new_tokens, kernel.new_tokens + kernel.context
    apart = kernel.query_heads if kernel.beside_prompts else kernel.kv_heads
    tiles = Tiles(
        count=kernel.sequences * apart * ceil(kernel.query_heads / apart * new / TILE_ROWS),
        # The last row of a tile is half a tile ahead of its mean row, and the mask only cuts whole blocks.
        mean_keys=visible_pairs(kernel) / new + TILE_ROWS / 2,
        longest_keys=seen if kernel.window is None else smaller(seen, kernel.window + TILE_ROWS),
        key_flops=4.0 * kernel.head_dim * TILE_ROWS,
    )
    arithmetic_s = tiles_s(constants, tiles, rate, chip.multiprocessors)
    memory_s = memory_scale * attention_bytes(kernel) / (constants.memory_share * chip.memory_bytes_s)
    written = 2 * kernel.sequences * kernel.kv_heads * kernel.head_dim * new * (2.0 + element_bytes(kernel.kv))
    write_s = memory_scale * written / (constants.write_share * chip.memory_bytes_s)
    write_s += constants.token_us * 1e-6 * kernel.sequences * new / chip.multiprocessors
    floor_s = larger(attention_flops(kernel) / peak, memory_scale * attention_bytes(kernel) / chip.memory_bytes_s)
    return constants.launch_us * 1e-6, larger(write_s + soft_max(arithmetic_s, memory_s, _BLEND), floor_s)


def attention_prefill_s(constants: PrefillConstants, chip: Chip, kernel: Attention) -> Number:
    """Seconds of `kernel` with cold caches; see `attention_prefill_parts`."""
    fixed_s, work_s = attention_prefill_parts(constants, chip, kernel)
    return fixed_s + work_s


def _width_share(constants: PrefillConstants, head_dim: Number) -> Number:
    narrow, wide = smaller(head_dim / _HEAD, 1.0), larger(head_dim / _HEAD, 1.0)
    return narrow**constants.narrow_power * wide**constants.wide_power


TILE_ROWS = 128
_KEY_BLOCK = 64


class TileConstants(Protocol):
    """Constants of tiles that a prefill form has."""

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


class Tiles(Struct, frozen=True):
    """`count` tiles that see `mean_keys` each, the longest `longest_keys`; `key_flops` for each key of a tile."""

    count: Number
    mean_keys: Number
    longest_keys: Number
    key_flops: Number


def tiles_s(constants: TileConstants, tiles: Tiles, flops_s: Number, multiprocessors: int) -> Number:
    """Seconds of `tiles` when full tiles on all `multiprocessors` reach `flops_s` FLOP/s."""
    all_flops = tiles.count * (_whole_blocks(tiles.mean_keys) + constants.loop_keys) * tiles.key_flops
    longest_flops = (_whole_blocks(tiles.longest_keys) + constants.loop_keys) * tiles.key_flops
    alone_s = longest_flops / (flops_s / multiprocessors)
    return soft_max(all_flops / flops_s, constants.longest_share * alone_s, constants.blend)


def _whole_blocks(keys: Number) -> Number:
    return ceil(keys / _KEY_BLOCK) * _KEY_BLOCK


# Query heads that share one KV head and fit one thread block; rows of the smallest tensor-core tile; keys of one split.
_BLOCK_HEADS = 64
_TILE_ROWS = 16
_SPLIT_KEYS = 128
# A window at least this long counts as none, since no context reaches it.
_FAR = 2**30


@dataclass(frozen=True, slots=True)
class DecodeConstants:
    """Constants of attention of one new token; shares are of datasheet peaks."""

    launch_us: float = constant(10.0, 2.0, 40.0, "cost of the kernels at no work, in microseconds")
    memory_share: float = constant(0.9, 0.3, 1.0, "share of the memory bandwidth of the read of the cache")
    compute_share: float = constant(0.3, 0.02, 1.0, "share of the 16-bit peak in tiles of 16 query heads")
    wave_us: float = constant(2.0, 0.05, 20.0, "microseconds of one wave of thread blocks")
    split_us: float = constant(1.0, 0.05, 8.0, "microseconds for each doubling of the length beyond 128 tokens")
    blend: float = constant(2.0, 1.0, 12.0, "how sharply the time turns from memory to arithmetic")
    ungrouped: float = constant(0.1, 0.01, 1.0, "of a windowed kernel: waves grow with (query heads/KV heads)^this")


def attention_decode_parts(
    constants: DecodeConstants, chip: Chip, kernel: Attention, memory_scale: Number = 1.0
) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work; `memory_scale` as in `attention_prefill_parts`.

    Raises MissingFieldError: the chip states no peak of 16-bit arithmetic.
    """
    peak = chip.peak("bf16")
    seen = kernel.context + kernel.new_tokens
    if kernel.window is not None:
        seen = smaller(seen, kernel.window)
    group = kernel.query_heads / kernel.kv_heads
    pairs = kernel.sequences * kernel.kv_heads
    cache_bytes = 2.0 * pairs * seen * kernel.head_dim * element_bytes(kernel.kv)
    memory_s = memory_scale * cache_bytes / (constants.memory_share * chip.memory_bytes_s)
    padded_heads = ceil(group / _TILE_ROWS) * _TILE_ROWS
    flops = 4.0 * pairs * kernel.new_tokens * padded_heads * seen * kernel.head_dim
    arithmetic_s = flops / (constants.compute_share * peak)
    waves = pairs * ceil(group / _BLOCK_HEADS) / chip.multiprocessors
    if kernel.window is not None:
        # Some kernels let query heads share a thread block only without a window.
        waves = waves * group ** ((kernel.window < _FAR) * constants.ungrouped)
    overhead_us = constants.split_us * log2(1.0 + seen / _SPLIT_KEYS) + constants.wave_us * waves
    floor_s = larger(attention_flops(kernel) / peak, memory_scale * attention_bytes(kernel) / chip.memory_bytes_s)
    work_s = larger(soft_max(memory_s, arithmetic_s, constants.blend), floor_s)
    return constants.launch_us * 1e-6, overhead_us * 1e-6 + work_s


def attention_decode_s(constants: DecodeConstants, chip: Chip, kernel: Attention) -> Number:
    """Seconds of `kernel` with cold caches; see `attention_decode_parts`."""
    fixed_s, work_s = attention_decode_parts(constants, chip, kernel)
    return fixed_s + work_s


def is_decode(new_tokens: Number) -> bool:
    """Whether a kernel with `new_tokens` per sequence is timed by the decode forms."""
    return float(new_tokens) <= 1
