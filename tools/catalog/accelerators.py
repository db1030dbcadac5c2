"""Accelerators: the frozen model of one, and the catalogue of those that ship with the package.

All TFLOP/s are dense peaks of one accelerator; bandwidths are 10^9 bytes/s, links one way. A figure that is not known
is `None` and asking for it is an error that names it, never a default.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from .. import bounds
from ..errors import MissingFieldError
from .dtypes import DType

MAX_NAME_CHARS = 200
# A name that says something.
AcceleratorName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"\S")]
TFLOPs = Annotated[float, bounds.TFLOPS.real()]
Bandwidth = Annotated[float, bounds.BANDWIDTH_GB_S.real()]
Gibibytes = Annotated[float, bounds.MEMORY_BYTES.over(2**30).real()]
Mebibytes = Annotated[float, bounds.MEMORY_BYTES.over(2**20).real()]
Bytes = Annotated[int, bounds.MEMORY_BYTES.whole()]
Count = Annotated[int, bounds.DEGREE.whole()]
Watts = Annotated[float, bounds.WATTS.real()]
Ratio = Annotated[float, bounds.FLOP_PER_BYTE.real()]
USDPerHour = Annotated[float, bounds.USD.real()]
# Of a part's peak; the least that is worth its name.
Share = Annotated[float, bounds.USABLE_SHARE.real()]


class DensePeakTFLOPS(BaseModel):
    """Dense matmul peaks by number format, in TFLOP/s; `None` where the accelerator has no such unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    fp32: TFLOPs | None = None
    bf16: TFLOPs | None = None
    fp16: TFLOPs | None = None
    fp8: TFLOPs | None = None
    fp4: TFLOPs | None = None
    int8: TFLOPs | None = None
    int4: TFLOPs | None = None


class Accelerator(BaseModel):
    """One kind of accelerator, from the catalogue or of a user's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: AcceleratorName
    # How people write it, the family's name shared by its variants, and what may stand before that.
    names: tuple[AcceleratorName, ...] = ()
    brands: tuple[AcceleratorName, ...] = ()
    vendor: str | None = None
    architecture: str | None = None
    form_factor: str | None = None
    memory_gb_marketing: Gibibytes | None = None
    memory_type: str | None = None
    memory_bytes_reported: Bytes | None = None
    memory_gib_reported: Gibibytes | None = None
    driver_memory_mib_from_memory_unverified: Mebibytes | None = None
    # What a process is told that there is in all (cudaMemGetInfo), as engines log it: the driver keeps some.
    memory_gib_to_processes: Gibibytes | None = None
    memory_bandwidth_gb_s: Bandwidth | None = None
    # What work is spread over (SMs of NVIDIA, compute units of AMD), and the cache that all of them share.
    multiprocessors: Count | None = None
    l2_bytes: Annotated[int, bounds.CACHE_BYTES.whole()] | None = None
    dense_peak_tflops: DensePeakTFLOPS
    intra_node_interconnect: str | None = None
    intra_node_bw_gb_s_unidirectional_per_accelerator: Bandwidth | None = None
    intra_node_bw_gb_s_bidirectional_per_accelerator: Bandwidth | None = None
    intra_node_p2p_gb_s_unidirectional: Bandwidth | None = None
    # False: the GPUs of a node do not reach each other's memory over PCIe, and what they send goes through the host's.
    peer_access: bool | None = None
    scale_up_domain_accelerators: Count | None = None
    typical_node_accelerators: Count | None = None
    typical_nic_gbit_s_per_accelerator: Bandwidth | None = None
    typical_nic_gb_s_unidirectional_per_accelerator: Bandwidth | None = None
    host_pcie_gb_s_unidirectional: Bandwidth | None = None
    # Where the host's memory is reached by another link than PCIe (NVLink-C2C).
    host_link_gb_s_unidirectional: Bandwidth | None = None
    tdp_w: Watts | None = None
    on_demand_usd_per_hour: tuple[USDPerHour, USDPerHour] | None = None
    price_source: str | None = None
    measured_max_matmul_tflops: dict[str, TFLOPs] | None = None
    ridge_flop_per_byte: dict[str, Ratio] | None = None
    # Whose measured kernels stand in for its own, nearest first; none stated: the first of the same architecture.
    kernels_like: tuple[AcceleratorName, ...] = ()
    kernels_like_reason: str | None = None
    source: tuple[str, ...] = ()
    confidence: str | None = None
    notes: str | None = None
    # A user's own: share of the peak that large matmuls reach (MFU), share of the memory bandwidth that is reached.
    compute_efficiency: Share | None = None
    memory_efficiency: Share | None = None

    @property
    def generation(self) -> str:
        """The first word of its architecture in small letters, empty where none is stated."""
        return (self.architecture or "").strip().partition(" ")[0].lower()

    @property
    def usd_per_hour(self) -> float | None:
        """The middle of what one costs an hour on demand, where that is known."""
        return None if self.on_demand_usd_per_hour is None else sum(self.on_demand_usd_per_hour) / 2

    @property
    def host_gb_s(self) -> float | None:
        """10^9 bytes/s at which one reads the host's memory, at the peak of its link, where that is known."""
        return self.host_link_gb_s_unidirectional or self.host_pcie_gb_s_unidirectional

    def computes_in(self, wanted: DType) -> DType:
        """`wanted`, or fp16 in place of a bf16 that this part has no units for (V100, T4)."""
        peaks = self.dense_peak_tflops
        return "fp16" if wanted == "bf16" and peaks.bf16 is None and peaks.fp16 is not None else wanted

    def memory_bytes(self) -> tuple[int, str]:
        """Memory of one accelerator in bytes, and which figure that is.

        The reported figure, else the driver's, else the marketing GiB less 0.5% (rule ME001).

        Raises:
            MissingFieldError: the accelerator states no memory at all.
        """
        if self.memory_bytes_reported is not None:
            return self.memory_bytes_reported, "reported by the device"
        if self.memory_gib_reported is not None:
            return round(self.memory_gib_reported * 2**30), "reported by the device"
        if self.driver_memory_mib_from_memory_unverified is not None:
            return round(self.driver_memory_mib_from_memory_unverified * 2**20), "driver's figure (unverified)"
        if self.memory_gb_marketing is not None:
            return round(self.memory_gb_marketing * 2**30 * 0.995), "marketing GiB less 0.5%"
        raise MissingFieldError("memory_gb_marketing", f"accelerator {self.id}", "memory decides what fits")

    def memory_bytes_to_processes(self) -> int:
        """Bytes of which an engine takes its share: what a process is told, where that was logged, else all memory.

        Raises:
            MissingFieldError: the accelerator states no memory at all.
        """
        if self.memory_gib_to_processes is not None:
            return round(self.memory_gib_to_processes * 2**30)
        return self.memory_bytes()[0]
