"""Time of a matmul with weights: tiles in waves over the multiprocessors, blended with the read of the operands.

t = launch + soft_max(arithmetic, memory). Arithmetic is that of the best of a few tile sizes and splits of k, as a
library's heuristics would find: tiles come in whole waves, a tile has a start-up worth some elements of k, small tiles
reach less of the peak. The quantisation of activations is not inside: engines fuse it with the operator before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...catalog.dtypes import DType, element_bytes, weight_bytes_per_element
from ..chip import Chip
from ..shapes import Gemm
from .constant import constant
from .elementary import Number, larger, least, soft_max

_TILES = ((16, 64), (32, 64), (64, 64), (64, 128), (128, 128), (192, 128), (256, 128))
_LARGEST_TILE = 256 * 128
_SPLITS = (1, 2, 4)
# A split writes and reads a partial sum in fp32, and adds them up in a kernel of its own.
_PARTIAL_BYTES = 8.0
_OUTPUT_BYTES = 2.0
# Arithmetic of this length has lost half of what the power limit takes.
_POWER_S = 1e-3


@dataclass(frozen=True, slots=True)
class GemmConstants:
    """Constants of a matmul; shares are of datasheet peaks."""

    launch_us: float = constant(4.0, 0.5, 12.0, "cost of the kernel at no work, in microseconds")
    memory_share: float = constant(0.82, 0.45, 1.0, "share of the memory bandwidth that is reached", slack=0.15)
    compute_share: float = constant(0.75, 0.1, 1.0, "share of the peak in full waves of the largest tile", slack=0.3)
    start_k: float = constant(100.0, 1.0, 1500.0, "elements of k that the start and the end of a tile are worth")
    tile_power: float = constant(0.2, 0.005, 1.2, "loss of smaller tiles: share times (tile/largest tile)^this")
    unit_reach: float = constant(
        3.0, 0.5, 30.0, "times its even share of the bandwidth that one multiprocessor can draw"
    )
    merge_us: float = constant(0.5, 0.05, 40.0, "cost of adding up the parts of a split k, in microseconds")
    sustained_loss: float = constant(0.1, 0.001, 0.8, "share by which long arithmetic slows down at the power limit")
    blend: float = constant(3.0, 1.0, 12.0, "how sharply the time turns from memory to arithmetic")


def gemm_flops(kernel: Gemm) -> Number:
    """FLOPs: 2 m n k."""
    return 2.0 * kernel.m * kernel.n * kernel.k


def gemm_weight_bytes(kernel: Gemm) -> Number:
    """Bytes of the weights as stored, scales included."""
    return kernel.n * kernel.k * weight_bytes_per_element(kernel.weights)


def gemm_activation_bytes(kernel: Gemm) -> Number:
    """Bytes in (format computed in) and out (16 bits)."""
    return kernel.m * kernel.k * element_bytes(kernel.dtype) + _OUTPUT_BYTES * kernel.m * kernel.n


@lru_cache(maxsize=1024)
def _tiles(
    constants: GemmConstants, unit_peak_flops_s: float, unit_bytes_s: float, weights: DType, dtype: DType
) -> tuple[tuple[int, int, float], ...]:
    """Rows, columns and seconds for each element of k, of each tile alone on one multiprocessor.

    A tile either computes or waits for its operands: one multiprocessor cannot draw the whole bandwidth, so few tiles
    of a long k are slow however little they compute.
    """
    found: list[tuple[int, int, float]] = []
    for rows, columns in _TILES:
        share: float = constants.compute_share * (rows * columns / _LARGEST_TILE) ** constants.tile_power
        operand_bytes = rows * element_bytes(dtype) + columns * weight_bytes_per_element(weights)
        load_s = operand_bytes / (constants.unit_reach * unit_bytes_s)
        compute_s = 2.0 * rows * columns / (unit_peak_flops_s * share)
        found.append((rows, columns, soft_max(compute_s, load_s, 4.0)))
    return tuple(found)


def _arithmetic_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> Number:
    """Seconds of the best tile and split, slowed down by the power limit where they last."""
    units, bytes_s = chip.multiprocessors, chip.memory_bytes_s
    m, n, k = kernel.m, kernel.n, kernel.k
    partial_s = _PARTIAL_BYTES * m * n / (constants.memory_share * bytes_s)
    merge_s = constants.merge_us * 1e-6
    loads = [(split, k / split + constants.start_k, split * partial_s + merge_s) for split in _SPLITS[1:]]
    whole = k + constants.start_k
    unit_peak_flops_s, unit_bytes_s = chip.peak(kernel.dtype) / units, bytes_s / units
    candidates: list[Number] = []
    for rows, columns, step_s in _tiles(constants, unit_peak_flops_s, unit_bytes_s, kernel.weights, kernel.dtype):
        # -(-x // y) is x / y rounded up, of floats and of arrays alike, without the cost of a call.
        tiles = -(-m // rows) * -(-n // columns)
        candidates.append(-(-tiles // units) * step_s * whole)
        for split, length, extra_s in loads:
            candidates.append(-(-tiles * split // units) * step_s * length + extra_s)
    best = least(candidates)
    return best * (1.0 + constants.sustained_loss * best / (best + _POWER_S))


def gemm_parts(constants: GemmConstants, chip: Chip, kernel: Gemm, memory_scale: Number = 1.0) -> tuple[Number, Number]:
    """Seconds that no work costs, and the seconds of the work, which are never under the roofline of the datasheet.

    `memory_scale` is the share of the time to read the weights that is left where a benchmark finds them in the L2
    cache; serving finds them in memory (1).

    Raises:
        MissingFieldError: the chip states no peak that the format could run at.
    """
    moved_bytes = memory_scale * gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)
    memory_s = moved_bytes / chip.memory_bytes_s
    work_s = soft_max(_arithmetic_s(constants, chip, kernel), memory_s / constants.memory_share, constants.blend)
    floor_s = larger(gemm_flops(kernel) / chip.peak(kernel.dtype), memory_s)
    return constants.launch_us * 1e-6, larger(work_s, floor_s)


def gemm_roofs_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> tuple[Number, Number]:
    """Seconds of its FLOPs alone and of its bytes alone at the rates that are reached, launch not counted.

    Raises:
        MissingFieldError: the chip states no peak that the format could run at.
    """
    moved_bytes = gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)
    compute_s = gemm_flops(kernel) / (constants.compute_share * chip.peak(kernel.dtype))
    return compute_s, moved_bytes / (constants.memory_share * chip.memory_bytes_s)


def gemm_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> Number:
    """Seconds of `kernel` with cold weights; see `gemm_parts`."""
    fixed_s, work_s = gemm_parts(constants, chip, kernel)
    return fixed_s + work_s
