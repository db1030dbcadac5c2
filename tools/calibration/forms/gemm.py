"""Time of matmuls with weights: a dense one, and the routed experts of a device.

Dense: t = launch + soft_max(arithmetic, memory). Arithmetic is that of the best of a few tile sizes and splits of k, as
a library's heuristics would choose: tiles run in whole waves, a tile has a start-up worth some elements of k, small
tiles reach less of the peak. Quantising activations is not included: engines fuse it with the operator before.

Experts: t = launch + step log2(1 + tokens) + soft_max(arithmetic, weights) + traffic of copies + traffic of tokens. The
weights of every touched expert are read once; an expert's last tile is half empty on average. `tokens` are those that
reach the device: all of the group if they are gathered, those with a copy here if they are exchanged. The caller says
how many experts are touched and how many copies the busiest device gets; dispatch and combine are not included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...catalog.dtypes import DType, element_bytes, weight_bytes_per_element
from ..chip import Chip
from ..shapes import Gemm, GroupedGemm
from .constant import constant
from .elementary import Number, larger, least, log2, soft_max

_TILES = ((16, 64), (32, 64), (64, 64), (64, 128), (128, 128), (192, 128), (256, 128))
_LARGEST_TILE = 256 * 128
_SPLITS = (1, 2, 4)
# A split writes and reads a partial sum in fp32; a separate kernel adds them up.
_PARTIAL_BYTES = 8.0
_OUTPUT_BYTES = 2.0
# Arithmetic of this duration suffers half of the loss at the power limit.
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
    """Bytes of inputs (in the compute format) and outputs (16 bits)."""
    return kernel.m * kernel.k * element_bytes(kernel.dtype) + _OUTPUT_BYTES * kernel.m * kernel.n


@lru_cache(maxsize=1024)
def _tiles(
    constants: GemmConstants, unit_peak_flops_s: float, unit_bytes_s: float, weights: DType, dtype: DType
) -> tuple[tuple[int, int, float], ...]:
    """Rows, columns and seconds per element of k, for each tile alone on one multiprocessor.

    A tile either computes or waits for its operands: one multiprocessor cannot use the whole bandwidth, so few tiles
    with a long k are slow even if they compute little.
    """
    tiles: list[tuple[int, int, float]] = []
    for rows, columns in _TILES:
        share: float = constants.compute_share * (rows * columns / _LARGEST_TILE) ** constants.tile_power
        operand_bytes = rows * element_bytes(dtype) + columns * weight_bytes_per_element(weights)
        load_s = operand_bytes / (constants.unit_reach * unit_bytes_s)
        compute_s = 2.0 * rows * columns / (unit_peak_flops_s * share)
        tiles.append((rows, columns, soft_max(compute_s, load_s, 4.0)))
    return tuple(tiles)


def _arithmetic_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> Number:
    """Seconds of the best tile and split, slowed down by the power limit if they are long."""
    units, bytes_s = chip.multiprocessors, chip.memory_bytes_s
    m, n, k = kernel.m, kernel.n, kernel.k
    partial_s = _PARTIAL_BYTES * m * n / (constants.memory_share * bytes_s)
    merge_s = constants.merge_us * 1e-6
    loads = [(split, k / split + constants.start_k, split * partial_s + merge_s) for split in _SPLITS[1:]]
    whole = k + constants.start_k
    unit_peak_flops_s, unit_bytes_s = chip.peak(kernel.dtype) / units, bytes_s / units
    candidates: list[Number] = []
    for rows, columns, step_s in _tiles(constants, unit_peak_flops_s, unit_bytes_s, kernel.weights, kernel.dtype):
        # -(-x // y) is x / y rounded up, for floats and arrays, without the cost of a call.
        tiles = -(-m // rows) * -(-n // columns)
        candidates.append(-(-tiles // units) * step_s * whole)
        for split, length, extra_s in loads:
            candidates.append(-(-tiles * split // units) * step_s * length + extra_s)
    best = least(candidates)
    return best * (1.0 + constants.sustained_loss * best / (best + _POWER_S))


def gemm_parts(constants: GemmConstants, chip: Chip, kernel: Gemm, memory_scale: Number = 1.0) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work, at least the roofline of the datasheet.

    `memory_scale` is the share of the time to read the weights that remains if a benchmark has them in the L2 cache;
    serving reads them from memory (1). Raises MissingFieldError: the chip states no peak for the format.
    """
    moved_bytes = memory_scale * gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)
    memory_s = moved_bytes / chip.memory_bytes_s
    work_s = soft_max(_arithmetic_s(constants, chip, kernel), memory_s / constants.memory_share, constants.blend)
    floor_s = larger(gemm_flops(kernel) / chip.peak(kernel.dtype), memory_s)
    return constants.launch_us * 1e-6, larger(work_s, floor_s)


def gemm_roofs_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> tuple[Number, Number]:
    """Seconds of its FLOPs alone and of its bytes alone at attained rates, without the launch.

    Raises MissingFieldError: the chip states no peak for the format.
    """
    moved_bytes = gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)
    compute_s = gemm_flops(kernel) / (constants.compute_share * chip.peak(kernel.dtype))
    return compute_s, moved_bytes / (constants.memory_share * chip.memory_bytes_s)


def gemm_s(constants: GemmConstants, chip: Chip, kernel: Gemm) -> Number:
    """Seconds of `kernel` with cold weights; see `gemm_parts`."""
    fixed_s, work_s = gemm_parts(constants, chip, kernel)
    return fixed_s + work_s


_ACTIVATION_BYTES = 2.0
_SCORE_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class GroupedGemmConstants:
    """Constants of the routed experts; shares are of datasheet peaks (of the compute format)."""

    launch_us: float = constant(30.0, 5.0, 120.0, "cost of the kernels at no work, in microseconds")
    step_us: float = constant(0.2, 0.01, 6.0, "microseconds for each doubling of the tokens")
    memory_share: float = constant(0.9, 0.3, 1.0, "share of the memory bandwidth that reading weights reaches")
    compute_share: float = constant(0.8, 0.05, 1.0, "share of the peak in full tiles")
    tile_rows: float = constant(128.0, 4.0, 512.0, "rows of a tile: half of it is empty in each touched expert")
    start_k: float = constant(500.0, 10.0, 4000.0, "inner elements that the start and the end of a tile are worth")
    blend: float = constant(3.0, 1.0, 12.0, "how sharply the time turns from weights to arithmetic")
    copy_traffic: float = constant(
        2.5, 0.1, 12.0, "times that the activations of a copy cross the memory, at full rate"
    )
    token_traffic: float = constant(2.5, 0.1, 100.0, "times that a token and its scores cross the memory, at full rate")


def grouped_gemm_flops(kernel: GroupedGemm) -> Number:
    """FLOPs of the matmuls of all copies: 2 x (2 or 3) x hidden x inner per copy."""
    return 2.0 * kernel.copies * matrices(kernel) * kernel.hidden * kernel.inner


def grouped_gemm_weight_bytes(kernel: GroupedGemm) -> Number:
    """Bytes of the weights of the touched experts as stored, scales included."""
    elements = kernel.touched * matrices(kernel) * kernel.hidden * kernel.inner
    return elements * weight_bytes_per_element(kernel.weights)


def matrices(kernel: GroupedGemm) -> int:
    """Number of matrices of an expert: up, down, and the gate if present."""
    return 3 if kernel.gated else 2


def grouped_matmuls_s(
    constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm, memory_scale: Number = 1.0
) -> Number:
    """Seconds of the matmuls alone; `memory_scale` as in `grouped_gemm_parts`.

    Raises MissingFieldError: the chip states no peak for the compute format.
    """
    peak, bandwidth = chip.peak(kernel.dtype), chip.memory_bytes_s
    up = matrices(kernel) - 1
    rows = kernel.copies + kernel.touched * constants.tile_rows / 2
    columns = up * kernel.inner * (kernel.hidden + constants.start_k)
    columns = columns + kernel.hidden * (kernel.inner + constants.start_k)
    arithmetic_s = 2.0 * rows * columns / (constants.compute_share * peak)
    cold_s = grouped_gemm_weight_bytes(kernel) / bandwidth
    work_s = soft_max(arithmetic_s, memory_scale * cold_s / constants.memory_share, constants.blend)
    return larger(work_s, larger(grouped_gemm_flops(kernel) / peak, memory_scale * cold_s))


def grouped_gemm_parts(
    constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm, memory_scale: Number = 1.0
) -> tuple[Number, Number]:
    """Fixed seconds, and the seconds of the work.

    `memory_scale` is the share of the time to read weights that remains if a benchmark has them in the L2 cache;
    serving reads them from memory (1). Raises MissingFieldError: the chip states no peak for the compute format.
    """
    # In, out and between the two matmuls, 16 bits each.
    copy_bytes = kernel.copies * (2 * kernel.hidden + matrices(kernel) * kernel.inner) * _ACTIVATION_BYTES
    token_bytes = kernel.tokens * (_ACTIVATION_BYTES * kernel.hidden + _SCORE_BYTES * kernel.experts)
    traffic_bytes = constants.copy_traffic * copy_bytes + constants.token_traffic * token_bytes
    step_s = constants.step_us * 1e-6 * log2(1.0 + kernel.tokens)
    matmuls_s = grouped_matmuls_s(constants, chip, kernel, memory_scale)
    return constants.launch_us * 1e-6, step_s + matmuls_s + traffic_bytes / chip.memory_bytes_s


def grouped_gemm_s(constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm) -> Number:
    """Seconds of `kernel` with cold weights; see `grouped_gemm_parts`."""
    fixed_s, work_s = grouped_gemm_parts(constants, chip, kernel)
    return fixed_s + work_s
