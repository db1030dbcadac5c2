"""Time of attention over a prompt, or over a chunk of one on top of cached tokens: FlashAttention-like tiles.

t = launch + write + soft_max(soft_max(all tiles, longest tile), memory): tiles of 128 query rows walk the keys in
blocks of 64. The query heads of one KV head are rows of the same tile; those of tokens that decode beside prompts have
a tile each. The write of the new tokens' keys and values to the cache is inside, as it is in the tables of measured
times. It refuses nothing by size: any shape of `Attention` has a time, decode too, though `attention_decode` knows that
better.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.dtypes import element_bytes
from ..chip import Chip
from ..shapes import Attention
from .constant import constant
from .elementary import Number, ceil, larger, smaller, soft_max
from .tiles import TILE_ROWS, Tiles, tiles_s

# Head width that the share of the peak is stated for; others are weighed by a power of their ratio to it.
_HEAD = 128
# How smoothly memory and arithmetic pass into each other: they share one pipeline of a tile.
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
    """Seconds that no work costs, and the seconds of the work.

    `memory_scale` is the share of the memory time that is left where a benchmark finds its data in the L2 cache;
    serving finds them in memory (1).

    Raises:
        MissingFieldError: the chip states no peak of 16-bit arithmetic.
    """
    peak = chip.peak("bf16")
    rate = peak * constants.compute_share * _width_share(constants, kernel.head_dim)
    new, seen = kernel.new_tokens, kernel.new_tokens + kernel.context
    apart = kernel.query_heads if kernel.beside_prompts else kernel.kv_heads
    tiles = Tiles(
        count=kernel.sequences * apart * ceil(kernel.query_heads / apart * new / TILE_ROWS),
        # The last row of a tile is half a tile ahead of the mean one, and the mask only cuts whole blocks.
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
