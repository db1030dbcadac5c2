"""Time of attention of one new token in each sequence: a read of the whole visible KV cache.

t = launch + split + waves + soft_max(memory, arithmetic). Few sequences are split over the multiprocessors and combined
(a cost that grows with the logarithm of the length), many come in waves of thread blocks that each cost something even
with next to no cache. It knows one length for all sequences; what unequal lengths cost is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.dtypes import element_bytes
from ..chip import Chip
from ..shapes import Attention
from .attention_prefill import attention_bytes, attention_flops
from .constant import constant
from .elementary import Number, ceil, larger, log2, smaller, soft_max

# Query heads that share one KV head and fit one thread block; rows of the smallest tensor-core tile; keys of one split.
_BLOCK_HEADS = 64
_TILE_ROWS = 16
_SPLIT_KEYS = 128
# A window that no context reaches is none.
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
    """Seconds that no work costs, and the seconds of the work; `memory_scale` as in `attention_prefill_parts`.

    Raises:
        MissingFieldError: the chip states no peak of 16-bit arithmetic.
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
        # Some kernels only let query heads share a thread block where they see everything.
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
    """Whether a kernel with so many new tokens in each sequence is timed by the decode forms."""
    return float(new_tokens) <= 1
