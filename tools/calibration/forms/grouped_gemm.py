"""Time of the routed experts of one device: routing, permutation, grouped matmuls, activation, sum over the copies.

t = launch + step log2(1 + tokens) + soft_max(arithmetic, weights) + traffic of copies + traffic of tokens. The weights
of every touched expert are read once; an expert's last tile is half empty on average. `tokens` are those that reach the
device: all of the group where they are gathered, those with a copy here where they are exchanged. Which experts are
touched, and how many copies the busiest device gets, is the caller's to expect; dispatch and combine are not inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.dtypes import weight_bytes_per_element
from ..chip import Chip
from ..shapes import GroupedGemm
from .constant import constant
from .elementary import Number, larger, log2, soft_max

_ACTIVATION_BYTES = 2.0
_SCORE_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class GroupedGemmConstants:
    """Constants of the routed experts; shares are of datasheet peaks (the peak is that of the format computed in)."""

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
    """FLOPs of the matmuls of all copies: 2 x (2 or 3) x hidden x inner each."""
    return 2.0 * kernel.copies * matrices(kernel) * kernel.hidden * kernel.inner


def grouped_gemm_weight_bytes(kernel: GroupedGemm) -> Number:
    """Bytes of the weights of the touched experts as stored, scales included."""
    elements = kernel.touched * matrices(kernel) * kernel.hidden * kernel.inner
    return elements * weight_bytes_per_element(kernel.weights)


def matrices(kernel: GroupedGemm) -> int:
    """Matrices of an expert: up and down, and the gate where there is one."""
    return 3 if kernel.gated else 2


def grouped_matmuls_s(
    constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm, memory_scale: Number = 1.0
) -> Number:
    """Seconds of the matmuls alone; `memory_scale` as in `grouped_gemm_parts`.

    Raises:
        MissingFieldError: the chip states no peak that could stand in for the format computed in.
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
    """Seconds that no work costs, and the seconds of the work.

    `memory_scale` is the share of the time to read weights that is left where a benchmark finds them in the L2 cache;
    serving finds them in memory (1).

    Raises:
        MissingFieldError: the chip states no peak that could stand in for the format computed in.
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
