"""Time of the core of sparse latent attention (DeepSeek-V3.2): each new token attends to the cached ones it has chosen.

Tokens that choose for themselves share no tile of keys, so that kernels run absorbed in prefill too, whatever the rest
of the prompt is, and compute for as many heads as their blocks have: a device with fewer computes padding. It does not
choose: the indexer is an operation of its own. A part that nobody measured is timed by the dense absorbed form.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.dtypes import element_bytes
from ..chip import Chip
from ..shapes import LatentAttention
from .elementary import Number, ceil, larger

# One block of threads computes so many heads of one token.
_BLOCK_HEADS = 64
# As the dense kernels of the same library in `data/kernels` (8 to 13 us).
_LAUNCH_S = 10e-6
_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class SparseKernels:
    """A library's kernels on one generation: heads that 16-bit ones are padded to, shares of the 16-bit peak.

    `share` is that of 16-bit caches, and of prefill; `fp8_share` of decode from an 8-bit cache, which expands it.
    """

    heads: int
    share: float
    fp8_share: float


# FlashMLA reaches 640 and 410 TFLOP/s on H800 (of 989), 1450 and 350 on B200 (of 2250), and takes 64 or 128 heads on
# Hopper (README at 066b5ba6). vLLM pads to 64 on Hopper and to 128 on Blackwell (pull request 46189), where 512 to 4096
# tokens of 32 heads took 0.226 to 1.687 ms (pull request 33451).
_KERNELS = {"hopper": SparseKernels(64, 0.647, 0.414), "blackwell": SparseKernels(128, 0.644, 0.156)}


def sparse_kernels(chip: Chip) -> SparseKernels | None:
    """The kernels that were measured on the generation of `chip`, if any were."""
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
        # What the tokens of a prompt choose is read from a cache on the chip again and again.
        return moved
    return moved + kernel.sequences * kernel.chosen * (kernel.latent + kernel.rope) * element_bytes(kernel.kv)


def mla_sparse_parts(kernels: SparseKernels, chip: Chip, kernel: LatentAttention) -> tuple[Number, Number]:
    """Seconds that no work costs, and the seconds of the work.

    A token is the work of one block for each 64 of its heads, which go over the multiprocessors in waves; the kernel
    of 8-bit caches splits tokens further.

    Raises:
        MissingFieldError: the chip states no peak of 16-bit arithmetic.
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
