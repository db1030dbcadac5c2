"""The facts of an accelerator that the forms of kernel time scale with."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.accelerators import Accelerator
from ..catalog.cluster import HardwareFacts, facts_of
from ..catalog.dtypes import DTYPES, DType
from ..errors import MissingFieldError
from .profile_file import kernel_generation

# Assumed for an accelerator that states none: the H100's figures, in the middle of data-centre parts. They set how
# coarse the steps of a matmul's time are; peaks and bandwidths are always the accelerator's.
ASSUMED_MULTIPROCESSORS = 132
ASSUMED_L2_BYTES = 50_000_000


class Chip(Struct, frozen=True):
    """Dense peaks in FLOP/s by compute format, memory bandwidth in bytes/s, number of SMs (or CUs), L2 in bytes.

    `generation` is the one whose kernels serve it (`profile_file.kernel_generation`).
    """

    name: str
    peak_flops_s: Mapping[str, float]
    memory_bytes_s: float
    multiprocessors: int
    l2_bytes: float
    link_bytes_s: float | None = None
    nic_bytes_s: float | None = None
    generation: str = ""

    def peak(self, dtype: DType) -> float:
        """Dense peak in FLOP/s of arithmetic in `dtype`.

        Raises MissingFieldError: the chip states no usable peak.
        """
        if dtype not in self.peak_flops_s:
            raise MissingFieldError(f"dense_peak_tflops.{dtype}", f"accelerator {self.name}", "compute needs it")
        return self.peak_flops_s[dtype]

    def with_compute(self, share: float) -> Chip:
        """The chip for work that gets `share` of the arithmetic and all of the memory."""
        if share == 1.0:
            return self
        return replace(self, peak_flops_s={dtype: share * peak for dtype, peak in self.peak_flops_s.items()})


def chip_of(accelerator: Accelerator) -> Chip:
    """The chip of `accelerator` with the links of its catalogue entry; see `chip_in`."""
    return chip_in(facts_of(accelerator, 1, 1, None, None))


def chip_in(hardware: HardwareFacts) -> Chip:
    """The chip of a cluster, with the cluster's links.

    A format without units has the peak of the format that computes in its place (`HardwareFacts.peak_flops`), and is
    absent if there is none. Links that are not stated are `None`.
    """
    accelerator = hardware.accelerator
    peaks: dict[str, float] = {}
    for dtype in DTYPES:
        try:
            peaks[dtype] = hardware.peak_flops(dtype)
        except MissingFieldError:
            continue
    return Chip(
        name=accelerator.id,
        peak_flops_s=peaks,
        memory_bytes_s=hardware.memory_bandwidth_bytes_s,
        multiprocessors=accelerator.multiprocessors or ASSUMED_MULTIPROCESSORS,
        l2_bytes=float(accelerator.l2_bytes or ASSUMED_L2_BYTES),
        link_bytes_s=hardware.stated_intra_bw_bytes_s,
        nic_bytes_s=hardware.stated_inter_bw_bytes_s,
        generation=kernel_generation(accelerator),
    )


def chip_assumptions(accelerator: Accelerator) -> tuple[str, ...]:
    """What `chip_of` assumes, in words; empty if the accelerator states everything."""
    if accelerator.multiprocessors is not None:
        return ()
    return (f"accelerator {accelerator.id} states no multiprocessors: {ASSUMED_MULTIPROCESSORS} assumed",)
