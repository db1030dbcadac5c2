"""Time of the core of latent attention (arXiv 2405.04434): naive, absorbed, and DeepSeek-V3.2's sparse form.

Naive (prompts): keys and values are expanded from the latents, one KV head for each query head, in tiles as in prefill
attention; cached latents are expanded again, those of new tokens by a matmul of the caller. Absorbed (one new token):
all heads of a device read the same latents once. Projections around the core and the cache write are not included.

Sparse: tokens with their own choice of keys share no tile, so kernels run absorbed in prefill too, and compute for as
many heads as their blocks have: a device with fewer heads computes padding. The indexer that chooses is a separate
operation. Accelerators without a measurement are timed by the dense absorbed form.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from ...catalog.dtypes import element_bytes
from ..chip import Chip
from ..shapes import LatentAttention
from .attention import TILE_ROWS, Tiles, tiles_s
from .constant import constant
from .elementary import Number, ceil, larger, log2, soft_max

# Heads that share one thread block of the absorbed form, and heads in the smallest step of a matrix unit.
_BLOCK_HEADS = 64
_STEP_HEADS = 16
_SPLIT_KEYS = 128
_ACTIVATION_BYTES = 2.0
# How smoothly the time changes from memory to arithmetic in the naive form, as in prefill attention.
_BLEND = 2.0


@dataclass(frozen=True, slots=True)
class MlaPrefillConstants:
    """Constants of the naive form; shares are of datasheet peaks (of 16 bits, its compute format)."""

    launch_us: float = constant(13.0, 2.0, 40.0, "cost of the kernels at no work, in microseconds")
    compute_share: float = constant(0.55, 0.1, 1.0, "share of the peak in full tiles")
    memory_share: float = constant(0.6, 0.1, 1.0, "share of the memory bandwidth for queries, keys, values and outputs")
    loop_keys: float = constant(100.0, 1.0, 600.0, "keys that the start and the end of a tile are worth")
    longest_share: float = constant(1.0, 0.2, 4.0, "weight of the longest tile, which one multiprocessor does alone")
    blend: float = constant(2.0, 1.0, 8.0, "how sharply the time turns from all tiles to the longest")


@dataclass(frozen=True, slots=True)
class MlaDecodeConstants:
    """Constants of the absorbed form; shares are of datasheet peaks (of the cache's format)."""

    launch_us: float = constant(12.0, 2.0, 40.0, "cost of the kernels at no work, in microseconds")
    memory_share: float = constant(0.9, 0.3, 1.0, "share of the memory bandwidth of the read of the latents")
    compute_share: float = constant(0.6, 0.02, 1.0, "share of the peak, with padded heads")
    least_heads: float = constant(64.0, 16.0, 128.0, "heads that one sequence is padded to at least", slack=0.5)
    wave_us: float = constant(2.0, 0.05, 30.0, "microseconds of one wave of thread blocks of 64 heads")
    split_us: float = constant(1.0, 0.05, 8.0, "microseconds for each doubling of the length beyond 128 tokens")
    blend: float = constant(2.0, 1.0, 12.0, "how sharply the time turns from memory to arithmetic")


def naive_flops(kernel: LatentAttention) -> Number:
    """FLOPs of scores and values of the naive form, and of expanding the cached latents again."""
    pairs = kernel.new_tokens * kernel.context + kernel.new_tokens * (kernel.new_tokens + 1) / 2
    core = 2.0 * pairs * (kernel.nope + kernel.rope + kernel.value)
    return kernel.sequences * kernel.heads * (core + _expand_flops(kernel))


def _expand_flops(kernel: LatentAttention) -> Number:
    """FLOPs of expanding the cached latents of one sequence for one head."""
    return 2.0 * kernel.context * kernel.latent * (kernel.nope + kernel.value)


def naive_bytes(kernel: LatentAttention) -> Number:
    """Bytes that must move in the naive form: queries in, outputs out, the new tokens' keys and values in (16 bit), and
    the cached latents in."""
    per_token = kernel.heads * 2 * (kernel.nope + kernel.rope + kernel.value) * _ACTIVATION_BYTES
    latents = kernel.context * (kernel.latent + kernel.rope) * element_bytes(kernel.kv)
    return kernel.sequences * (kernel.new_tokens * per_token + latents)


def absorbed_flops(kernel: LatentAttention) -> Number:
    """FLOPs of scores and values of the absorbed form."""
    pairs = kernel.sequences * kernel.new_tokens * (kernel.context + kernel.new_tokens)
    return 2.0 * pairs * kernel.heads * (2 * kernel.latent + kernel.rope)


def absorbed_bytes(kernel: LatentAttention) -> Number:
    """Bytes that must move in the absorbed form: the latents in, queries in and outputs out (16 bit)."""
    latents = (kernel.context + kernel.new_tokens) * (kernel.latent + kernel.rope) * element_bytes(kernel.kv)
    rows = kernel.new_tokens * kernel.heads * (2 * kernel.latent + kernel.rope) * _ACTIVATION_BYTES
    return kernel.sequences * (latents + rows)


def mla_prefill_parts(
    constants: MlaPrefillConstants, chip: Chip, kernel: LatentAttention, memory_scale: Number = 1.0
) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work; `memory_scale` as in `attention_prefill_parts`.

    Raises MissingFieldError: the chip states no peak of 16-bit arithmetic.
    """
    peak = chip.peak("bf16")
    rate = peak * constants.compute_share
    tiles = Tiles(
        count=kernel.sequences * kernel.heads * ceil(kernel.new_tokens / TILE_ROWS),
        mean_keys=kernel.context + (kernel.new_tokens + 1) / 2 + TILE_ROWS / 2,
        longest_keys=kernel.context + kernel.new_tokens,
        key_flops=2.0 * TILE_ROWS * (kernel.nope + kernel.rope + kernel.value),
    )
    arithmetic_s = tiles_s(constants, tiles, rate, chip.multiprocessors)
    # Expanded latents are written and read once more.
    expanded = kernel.sequences * kernel.heads * kernel.context * (kernel.nope + kernel.value) * 2 * _ACTIVATION_BYTES
    memory_s = (naive_bytes(kernel) + expanded) / (constants.memory_share * chip.memory_bytes_s)
    expand_s = kernel.sequences * kernel.heads * _expand_flops(kernel) / rate
    floor_s = larger(naive_flops(kernel) / peak, memory_scale * naive_bytes(kernel) / chip.memory_bytes_s)
    work_s = expand_s + soft_max(arithmetic_s, memory_scale * memory_s, _BLEND)
    return constants.launch_us * 1e-6, larger(work_s, floor_s)


def mla_decode_parts(
    constants: MlaDecodeConstants, chip: Chip, kernel: LatentAttention, memory_scale: Number = 1.0
) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work; `memory_scale` as in `attention_prefill_parts`.

    Raises MissingFieldError: the chip states no peak for the format of the cache.
    """
    peak = chip.peak(kernel.kv)
    seen = kernel.context + kernel.new_tokens
    rows = kernel.new_tokens * kernel.heads
    padded = larger(ceil(rows / _STEP_HEADS) * _STEP_HEADS, constants.least_heads)
    flops = 2.0 * kernel.sequences * padded * seen * (2 * kernel.latent + kernel.rope)
    memory_s = memory_scale * absorbed_bytes(kernel) / (constants.memory_share * chip.memory_bytes_s)
    work_s = soft_max(memory_s, flops / (constants.compute_share * peak), constants.blend)
    waves = kernel.sequences * ceil(rows / _BLOCK_HEADS) / chip.multiprocessors
    overhead_us = constants.split_us * log2(1.0 + seen / _SPLIT_KEYS) + constants.wave_us * waves
    floor_s = larger(absorbed_flops(kernel) / peak, memory_scale * absorbed_bytes(kernel) / chip.memory_bytes_s)
    return constants.launch_us * 1e-6, overhead_us * 1e-6 + larger(work_s, floor_s)


# As for the dense kernels of the same library in `data/kernels` (8 to 13 us).
_LAUNCH_S = 10e-6


class SparseKernels(Struct, frozen=True):
    """A library's kernels on one generation: heads that 16-bit kernels pad to, and shares of the 16-bit peak.

    `share` is for 16-bit caches and prefill, `fp8_share` for decode from an 8-bit cache, which is expanded.
    """

    heads: int
    share: float
    fp8_share: float


# FlashMLA reaches 640 and 410 TFLOP/s on H800 (of 989), 1450 and 350 on B200 (of 2250), and takes 64 or 128 heads on
# Hopper (README at 066b5ba6). vLLM pads to 64 on Hopper and to 128 on Blackwell (pull request 46189), where 512 to 4096
# tokens of 32 heads took 0.226 to 1.687 ms (pull request 33451).
_KERNELS = {"hopper": SparseKernels(64, 0.647, 0.414), "blackwell": SparseKernels(128, 0.644, 0.156)}


def sparse_kernels(chip: Chip) -> SparseKernels | None:
    """The kernels measured on the generation of `chip`; `None` if there are none."""
    return _KERNELS.get(chip.generation)


def sparse_flops(kernel: LatentAttention) -> Number:
    """FLOPs of scores and values over the chosen tokens, absorbed, without padding."""
    pairs = kernel.sequences * kernel.new_tokens * kernel.chosen
    return 2.0 * pairs * kernel.heads * (2 * kernel.latent + kernel.rope)


def sparse_bytes(kernel: LatentAttention) -> Number:
    """Bytes that must move: queries in and outputs out (16 bit); in decode also the chosen latents of each sequence."""
    rows = kernel.sequences * kernel.new_tokens * kernel.heads
    moved = rows * (2 * kernel.latent + kernel.rope) * _ACTIVATION_BYTES
    if kernel.new_tokens > 1:
        # The chosen latents of a prompt's tokens are reread from an on-chip cache.
        return moved
    return moved + kernel.sequences * kernel.chosen * (kernel.latent + kernel.rope) * element_bytes(kernel.kv)


def mla_sparse_parts(kernels: SparseKernels, chip: Chip, kernel: LatentAttention) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work.

    A token takes one block for each 64 of its heads; blocks run over the multiprocessors in waves. The kernel for 8-bit
    caches splits tokens further. Raises MissingFieldError: the chip states no peak of 16-bit arithmetic.
    """
    peak = chip.peak("bf16")
    tokens = kernel.sequences * kernel.new_tokens
    block_flops = 2.0 * _BLOCK_HEADS * kernel.chosen * (2 * kernel.latent + kernel.rope)
    memory_s = sparse_bytes(kernel) / chip.memory_bytes_s
    if kernel.new_tokens <= 1 and element_bytes(kernel.kv) <= 1.0:
        blocks = tokens * ceil(kernel.heads / _BLOCK_HEADS)
        return _LAUNCH_S, larger(blocks * block_flops / (kernels.fp8_share * peak), memory_s)
    blocks = tokens * ceil(kernel.heads / kernels.heads) * kernels.heads / _BLOCK_HEADS
    waves = ceil(blocks / chip.multiprocessors)
    return _LAUNCH_S, larger(waves * block_flops * chip.multiprocessors / (kernels.share * peak), memory_s)
