"""How long kernels take on one accelerator as one engine runs them: calibrated if measured, else by the roofline.

Calibrated: the form of each kernel with the constants of the accelerator's profile, times a factor fitted to the
engine's end-to-end results, but never less than datasheet rates allow. A user's own card with a stated MFU, and work
that no table covers (compressed attention), get the datasheet roofline; a recurrent layer also gets the time of its
small kernels, as end-to-end results show it.

Roofline: t = max(FLOPs / (eff_c x peak), bytes / (eff_m x bandwidth)) + launch. Efficiencies are published figures,
not fitted ones; an accelerator's own `compute_efficiency` and `memory_efficiency` win.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..calibration.chip import chip_in
from ..calibration.custom import CustomCalibration
from ..calibration.engine_profile import EngineConstants, EngineProfile, accelerator_class
from ..calibration.forms.attention import is_decode
from ..calibration.forms.elementary import Number, exceeds, larger, smaller
from ..calibration.kernel_times import KernelTime, KernelTimes
from ..calibration.profile import DATASHEET, Origin, profile_of
from ..calibration.shapes import (
    Attention,
    Collective,
    Elementwise,
    ExpertExchange,
    Gemm,
    GroupedGemm,
    Kernel,
    LatentAttention,
)
from ..catalog.accelerators import Accelerator
from ..catalog.dtypes import COMPUTE_KEYS, DType, element_bytes
from ..catalog.hardware import HardwareFacts
from .collectives import CollectiveTime
from .programs.work import Work


class Clock:
    """Times work and collectives on the accelerators of a cluster; work gets `compute_share` of their arithmetic."""

    def __init__(
        self,
        hardware: HardwareFacts,
        engine: EngineProfile,
        calibration: CustomCalibration | None = None,
        compute_share: float = 1.0,
    ) -> None:
        self.hardware = hardware
        self.engine = engine
        self.roofline = Roofline(hardware, compute_share)
        class_, generation = accelerator_class(hardware.accelerator), engine.entry.generation
        self._reads_for_each_head = engine.facts.reads_for_each_head(generation, class_)
        self._one_block_a_head = engine.facts.gives_heads_one_block(generation)
        self.kernels: KernelTimes | None = _kernel_times(hardware, engine, calibration, compute_share)
        self._calibration, self._compute_share = calibration, compute_share

    @cached_property
    def _host_kernels(self) -> KernelTimes | None:
        """Times collectives over PCIe between islands of fast links.

        Collectives of more than one island that were measured on the card itself already went over PCIe.
        """
        accelerator, most = self.hardware.accelerator, self.hardware.island_gpus or 1
        custom_kernels = None if self._calibration is None else self._calibration.kernel_file(accelerator.id)
        if custom_kernels is not None and any((entry.ranks or 1) > most for entry in custom_kernels.entries):
            return self.kernels
        return _kernel_times(self.hardware.over_host(), self.engine, None, self._compute_share)

    def time(self, work: Work) -> OperatorTime:
        """Seconds of `work` on one device, and which bound it hits."""
        if work.is_recurrence:
            roofline_time = self.roofline.time(work)
            small_s = self.engine.entry.constants.recurrent_layer_us * 1e-6
            return replace(roofline_time, seconds=roofline_time.seconds + small_s)
        if self.kernels is None or not work.kernels:
            return self.roofline.time(work)
        longest = self._kernel(work.kernels[0])
        seconds = longest.seconds
        for kernel in work.kernels[1:]:
            kernel_time = self._kernel(kernel)
            seconds = seconds + kernel_time.seconds
            if exceeds(kernel_time.seconds, longest.seconds):
                longest = kernel_time
        return OperatorTime(seconds, longest.bound, longest.origin)

    def _kernel(self, kernel: Kernel) -> OperatorTime:
        """Seconds of one kernel with the engine's factor on its kind."""
        assert self.kernels is not None
        if isinstance(kernel, Elementwise) and kernel.kind == "routing":
            # Choosing experts, permutation and the weighted sum are part of the measured time of the MoE layer; only
            # the memory bound remains, which no kernel can beat.
            return OperatorTime(kernel.moved_bytes / self.hardware.memory_bandwidth_bytes_s, "memory")
        if isinstance(kernel, Attention) and self._reads_for_each_head and is_decode(kernel.new_tokens):
            kernel = replace(kernel, kv_heads=max(kernel.kv_heads, kernel.query_heads))
        first, *others = self.kernels.choices(kernel)
        best = self._scaled(kernel, first)
        # The engine picks the kernel that is fastest with its factors.
        for other in others:
            scaled = self._scaled(kernel, other)
            quicker = scaled if exceeds(best.seconds, scaled.seconds) else best
            best = OperatorTime(smaller(best.seconds, scaled.seconds), quicker.bound, quicker.origin)
        return best

    def _scaled(self, kernel: Kernel, time: KernelTime) -> OperatorTime:
        """The time of a kernel with the engine's factor on its kind."""
        scales = self.engine.entry.constants
        bound: Bound = "compute" if time.bound == "compute" else "memory"
        if isinstance(kernel, GroupedGemm):
            work = time.seconds - time.fixed_s
            seconds = time.fixed_s * scales.moe_fixed_scale + work * scales.moe_scale
            return OperatorTime(larger(seconds, time.floor_s), bound, time.origin)
        if isinstance(kernel, Attention) and self._one_block_a_head and is_decode(kernel.new_tokens):
            seconds = larger(time.seconds * scales.attention_scale, self._one_block_a_head_s(kernel))
            return OperatorTime(larger(seconds, time.floor_s), bound, time.origin)
        if isinstance(kernel, Attention | LatentAttention):
            scale = scales.attention_scale
        elif isinstance(kernel, Gemm):
            scale = _matmul_scale(time, scales)
        else:
            scale = scales.memory_scale
        return OperatorTime(larger(time.seconds * scale, time.floor_s), bound, time.origin)

    def _one_block_a_head_s(self, kernel: Attention) -> Number:
        """Seconds of decode attention in which one thread block reads the whole cache of one head of a sequence.

        Independent of the bytes of a cached element, since instructions take the time.
        """
        assert self.kernels is not None
        shares_read = kernel.query_heads == self.engine.facts.shared_read_heads * kernel.kv_heads
        blocks = kernel.sequences * (kernel.kv_heads if shares_read else kernel.query_heads)
        seen = kernel.context + kernel.new_tokens
        if kernel.window is not None:
            seen = smaller(seen, kernel.window)
        waves = larger(1.0, blocks / self.kernels.chip.multiprocessors)
        return self.engine.entry.constants.head_token_ns * 1e-9 * seen * waves

    def collective(self, kernel: Collective | ExpertExchange) -> CollectiveTime | None:
        """Time of a collective; `None` if no table covers the links."""
        kernels = self._host_kernels if kernel.over_host else self.kernels
        if kernels is None:
            return None
        time = kernels.seconds(kernel)
        seconds = larger(time.seconds * self.engine.entry.constants.communication_scale, time.floor_s)
        return CollectiveTime(seconds, time.origin)


# The larger factor begins to count when its bound explains the first share of a matmul's time, in full at the second.
_FACTOR_FROM, _FACTOR_WHOLE = 0.4, 0.8


def _matmul_scale(time: KernelTime, scales: EngineConstants) -> Number:
    """The engine's factor on a matmul, going continuously from that of one bound to that of the other.

    The larger factor grows with the share of its bound. So time never falls as FLOPs or bytes are added or a rate goes
    down; with a step, a faster memory would slow a matmul that it makes compute-bound.
    """
    if scales.compute_scale >= scales.memory_scale:
        low, high, bound_s = scales.memory_scale, scales.compute_scale, time.compute_s
    else:
        low, high, bound_s = scales.compute_scale, scales.memory_scale, time.fixed_s + time.memory_s
    share = (bound_s / time.seconds - _FACTOR_FROM) / (_FACTOR_WHOLE - _FACTOR_FROM)
    # Beyond twice the smaller factor the weight could fall faster than the time grows.
    return low + (min(high, 2.0 * low) - low) * smaller(1.0, larger(0.0, share))


# Timed kernels, shared by all settings with the same accelerator, links, engine and custom calibration.
_TIMED: dict[tuple[str, float | None, float | None, str, str, float], KernelTimes] = {}
# More accelerators than any comparison has; each takes megabytes.
_MOST_TIMED = 12
_TIMED_LOCK = threading.Lock()


def _kernel_times(
    hardware: HardwareFacts, engine: EngineProfile, calibration: CustomCalibration | None, compute_share: float
) -> KernelTimes | None:
    """The calibrated kernels of an accelerator, cached with their times.

    `None` if the user states the MFU and measured none of its kernels.
    """
    accelerator = hardware.accelerator
    custom = calibration if calibration is not None and calibration.kernel_file(accelerator.id) is not None else None
    if custom is None and (accelerator.compute_efficiency is not None or accelerator.memory_efficiency is not None):
        return None
    links = hardware.stated_intra_bw_bytes_s, hardware.stated_inter_bw_bytes_s
    over_pcie = accelerator.scale_up_domain_accelerators == 1
    own_ranks = engine.facts.own_reduction_ranks(engine.entry.generation, over_pcie=over_pcie)
    whole = accelerator.model_dump_json(exclude_none=True)
    # Kernels that were measured on the card itself need no correction.
    matmuls = (
        engine.facts.matmul_share(engine.entry.generation, accelerator_class(accelerator)) if custom is None else 1.0
    )
    stack = f"{engine.facts.name} {sorted(own_ranks)} {matmuls}"
    key = (whole, *links, stack, custom.digest if custom else "", compute_share)
    with _TIMED_LOCK:
        times = _TIMED.pop(key, None)
        if times is None:
            profile = profile_of(accelerator, engine.facts.kernel_tables)
            laid = profile if custom is None else custom.laid_over(profile)
            chip, staged = chip_in(hardware).with_compute(compute_share), accelerator.peer_access is False
            times = KernelTimes(chip, laid, staged_links=staged, own_reduction_ranks=own_ranks, matmul_share=matmuls)
        # Least recently used first, which is dropped.
        _TIMED[key] = times
        if len(_TIMED) > _MOST_TIMED:
            del _TIMED[next(iter(_TIMED))]
    return times


Bound = Literal["compute", "memory"]

# Share of the dense peak that the best large matmul reaches where the catalogue has no measured figure: between the
# 51% (MI300X) and 87% (A100) that the MAMF finder measured (stas00/ml-engineering, compute/accelerator/README.md).
DEFAULT_COMPUTE_EFFICIENCY = 0.73
# Share of the peak bandwidth, and the constant per kernel launch (ai-dynamo/aiconfigurator, system files:
# mem_bw_empirical_scaling_factor 0.8, mem_empirical_constant_latency 3 us).
DEFAULT_MEMORY_EFFICIENCY = 0.8
LAUNCH_S = 3e-6


class OperatorTime(Struct, frozen=True):
    """Seconds of one operator, which bound it hits, and where the constants come from."""

    seconds: Number
    bound: Bound
    origin: Origin = DATASHEET


def rate_dtype(weights: DType, activations: DType) -> DType:
    """The format that a matmul computes in: the wider of the two (narrower weights are expanded first)."""
    return weights if element_bytes(weights) > element_bytes(activations) else activations


def compute_efficiency(accelerator: Accelerator, dtype: DType) -> float:
    """Share of the peak that matmuls in `dtype` reach: stated, else measured, else the published middle."""
    if accelerator.compute_efficiency is not None:
        return accelerator.compute_efficiency
    measured = accelerator.measured_max_matmul_tflops or {}
    for key in (*COMPUTE_KEYS[dtype], "bf16", "fp16"):
        peak: float | None = getattr(accelerator.dense_peak_tflops, key)
        if peak is not None:
            # The accelerator computes in the first of these formats that it has.
            return min(1.0, measured[key] / peak) if key in measured else DEFAULT_COMPUTE_EFFICIENCY
    return DEFAULT_COMPUTE_EFFICIENCY


def memory_efficiency(accelerator: Accelerator) -> float:
    """Share of the memory bandwidth that is reached."""
    return accelerator.memory_efficiency or DEFAULT_MEMORY_EFFICIENCY


class Roofline(Struct, frozen=True):
    """The roofs of one accelerator, efficiencies applied; work gets `compute_share` of its arithmetic."""

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
        """Time of `work`; 0 where there is no work."""
        if not (exceeds(work.flops, 0.0) or exceeds(work.moved_bytes, 0.0)):
            return OperatorTime(0.0, "memory")
        arithmetic = work.flops / self.flops_per_s(work.dtype)
        memory = work.moved_bytes / self.bytes_per_s
        bound: Bound = "compute" if exceeds(arithmetic, memory) else "memory"
        return OperatorTime(larger(arithmetic, memory) + LAUNCH_S, bound)
