"""Catalogue chips, and faster versions of them, for the tests of kernel times."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.forms.elementary import Number
from shardwright.tools.calibration.forms.mla import (
    MlaDecodeConstants,
    MlaPrefillConstants,
    mla_decode_parts,
    mla_prefill_parts,
)
from shardwright.tools.calibration.kernel_times import KernelTimes
from shardwright.tools.calibration.profile import KernelProfile, profile_of
from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.engines.names import JUDGED

MEASURED = ("a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "l40s")
CARRIED = ("h20", "h100-pcie", "mi300x", "rtx-6000-ada", "v100-32gb-sxm")
FRAMEWORKS = (*JUDGED, None)


def profile_named(accelerator: str, framework: str | None = None) -> KernelProfile:
    """Kernel profile of a catalogue accelerator."""
    return profile_of(find_accelerator(accelerator), framework)


def mla_prefill_s(constants: MlaPrefillConstants, chip: Chip, kernel: LatentAttention) -> Number:
    """Seconds of the naive form with cold caches."""
    return sum(mla_prefill_parts(constants, chip, kernel))


def mla_decode_s(constants: MlaDecodeConstants, chip: Chip, kernel: LatentAttention) -> Number:
    """Seconds of the absorbed form with cold caches."""
    return sum(mla_decode_parts(constants, chip, kernel))


def times_of(accelerator: str, framework: str | None = "vllm") -> KernelTimes:
    """Kernel times of a catalogue accelerator."""
    return KernelTimes(chip_of(find_accelerator(accelerator)), profile_named(accelerator, framework))


def faster(chip: Chip, compute: float = 1.0, memory: float = 1.0, links: float = 1.0) -> Chip:
    """The same chip with higher peaks, bandwidth or links."""
    return replace(
        chip,
        peak_flops_s={dtype: peak * compute for dtype, peak in chip.peak_flops_s.items()},
        memory_bytes_s=chip.memory_bytes_s * memory,
        link_bytes_s=None if chip.link_bytes_s is None else chip.link_bytes_s * links,
        nic_bytes_s=None if chip.nic_bytes_s is None else chip.nic_bytes_s * links,
    )


accelerators = st.sampled_from((*MEASURED, *CARRIED))
frameworks = st.sampled_from(FRAMEWORKS)
speedups = st.floats(1.0, 8.0)
