"""Time of an operator on one device: the slower of arithmetic and memory, plus the launch of its kernel.

t = max(FLOPs / (eff_c x peak), bytes / (eff_m x bandwidth)) + launch. The efficiencies are published starting figures,
not fitted ones; an accelerator's own `compute_efficiency` and `memory_efficiency` win.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..calibration.forms.elementary import Number, exceeds, larger
from ..calibration.profile import DATASHEET, Origin
from ..catalog.accelerators import Accelerator
from ..catalog.dtypes import COMPUTE_KEYS, DType, element_bytes
from ..catalog.hardware import HardwareFacts
from .operators.work import Work

Bound = Literal["compute", "memory"]

# Share of the dense peak that the best large matmul reaches where the catalogue has no measured figure: between the
# 51% (MI300X) and 87% (A100) that the MAMF finder measured (stas00/ml-engineering, compute/accelerator/README.md).
DEFAULT_COMPUTE_EFFICIENCY = 0.73
# Share of the peak bandwidth, and the constant per kernel (ai-dynamo/aiconfigurator, system files:
# mem_bw_empirical_scaling_factor 0.8, mem_empirical_constant_latency 3 us).
DEFAULT_MEMORY_EFFICIENCY = 0.8
LAUNCH_S = 3e-6


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Seconds of one operator, which bound it hits, and where the constants come from."""

    seconds: Number
    bound: Bound
    origin: Origin = DATASHEET


def rate_dtype(weights: DType, activations: DType) -> DType:
    """The format that a matmul computes in: the wider of the two (weights of fewer bits are expanded on the way)."""
    return weights if element_bytes(weights) > element_bytes(activations) else activations


def compute_efficiency(accelerator: Accelerator, dtype: DType) -> float:
    """Share of the peak that matmuls in `dtype` reach: stated, else measured, else the published middle."""
    if accelerator.compute_efficiency is not None:
        return accelerator.compute_efficiency
    measured = accelerator.measured_max_matmul_tflops or {}
    for key in (*COMPUTE_KEYS[dtype], "bf16", "fp16"):
        peak: float | None = getattr(accelerator.dense_peak_tflops, key)
        if peak is not None:
            # The first format that the part has is the one that it computes in.
            return min(1.0, measured[key] / peak) if key in measured else DEFAULT_COMPUTE_EFFICIENCY
    return DEFAULT_COMPUTE_EFFICIENCY


def memory_efficiency(accelerator: Accelerator) -> float:
    """Share of the memory bandwidth that is reached."""
    return accelerator.memory_efficiency or DEFAULT_MEMORY_EFFICIENCY


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roofs of one accelerator, efficiencies applied; `compute_share` of its arithmetic is there for the work."""

    hardware: HardwareFacts
    compute_share: float = 1.0

    def flops_per_s(self, dtype: DType) -> float:
        """Attainable FLOP/s in `dtype`."""
        peak = self.hardware.peak_flops(dtype) * self.compute_share
        return peak * compute_efficiency(self.hardware.accelerator, dtype)

    @property
    def bytes_per_s(self) -> float:
        """Attainable memory bandwidth."""
        return self.hardware.memory_bandwidth_bytes_s * memory_efficiency(self.hardware.accelerator)

    def time(self, work: Work) -> OperatorTime:
        """Time of `work`; nothing at all costs nothing."""
        if not (exceeds(work.flops, 0.0) or exceeds(work.moved_bytes, 0.0)):
            return OperatorTime(0.0, "memory")
        arithmetic = work.flops / self.flops_per_s(work.dtype)
        memory = work.moved_bytes / self.bytes_per_s
        bound: Bound = "compute" if exceeds(arithmetic, memory) else "memory"
        return OperatorTime(larger(arithmetic, memory) + LAUNCH_S, bound)
