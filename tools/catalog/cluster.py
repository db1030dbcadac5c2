"""The facts of a cluster of one kind of accelerator: memory, bandwidths, domains, peaks.

A figure that nobody states is `None` inside and an error that names it when asked for. Nothing here is derated: the
share of a peak that is reached belongs to the performance model.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InputError, MissingFieldError
from .accelerators import Accelerator
from .dtypes import COMPUTE_KEYS, WIDE, DType

# How a request states a figure that the catalogue lacks.
SAY_NETWORK = "say it (100 Gbit/s between the nodes), or give a hardware block with inter_node_bw_gb_s"


class HardwareFacts(Struct, frozen=True):
    """`nodes` of `gpus_per_node` accelerators of one kind. Bandwidths are bytes/s, one way per accelerator.

    `island_gpus`: the GPUs of a node that share fast links (bridged pairs), if that is not the whole node.
    """

    accelerator: Accelerator
    nodes: int
    gpus_per_node: int
    memory_bytes: int
    memory_provenance: str
    stated_memory_bandwidth_bytes_s: float | None
    stated_intra_bw_bytes_s: float | None
    stated_inter_bw_bytes_s: float | None
    island_gpus: int | None = None

    @property
    def memory_bandwidth_bytes_s(self) -> float:
        """Rate at which one accelerator reads its memory. Raises MissingFieldError: the accelerator states none."""
        if self.stated_memory_bandwidth_bytes_s is None:
            raise MissingFieldError(
                "memory_bandwidth_gb_s", f"accelerator {self.accelerator.id}", "decode reads all weights at this rate"
            )
        return self.stated_memory_bandwidth_bytes_s

    @property
    def intra_bw_bytes_s(self) -> float:
        """Send rate inside a domain. Raises MissingFieldError: neither the cluster nor the accelerator states one."""
        return self._known(self.stated_intra_bw_bytes_s, "intra_node_bw_gb_s", "collectives inside a node need it")

    @property
    def inter_bw_bytes_s(self) -> float:
        """Send rate between domains. Raises MissingFieldError: neither the cluster nor the accelerator states one."""
        return self._known(
            self.stated_inter_bw_bytes_s, "inter_node_bw_gb_s", f"traffic between nodes needs it; {SAY_NETWORK}"
        )

    def _known(self, value: float | None, field: str, why: str) -> float:
        if value is None:
            raise MissingFieldError(field, f"hardware ({self.accelerator.id})", why)
        return value

    @property
    def gpus(self) -> int:
        """Accelerators in all."""
        return self.nodes * self.gpus_per_node

    @property
    def nodes_per_domain(self) -> int:
        """Whole nodes of one domain: 18 of 4 in a GB200 NVL72, 1 where the node is the larger.

        A fabric that ends at the accelerator's usual node (eight H100) does not join two smaller nodes.
        """
        size, usual_node = self.accelerator.scale_up_domain_accelerators, self.accelerator.typical_node_accelerators
        if size is None or (usual_node is not None and size <= usual_node):
            return 1
        return max(1, size // self.gpus_per_node)

    def over_host(self) -> HardwareFacts:
        """The cluster as GPUs of one node in several islands see it: PCIe joins them.

        Raises MissingFieldError: nobody states how fast that is.
        """
        pcie_gb_s, joined = self.accelerator.host_pcie_gb_s_unidirectional, self.island_gpus
        why = f"its fast links join {joined} accelerators, and more of a node send over PCIe"
        over_pcie_s = self._known(pcie_gb_s, "host_pcie_gb_s_unidirectional", why) * 1e9
        accelerator = self.accelerator.model_copy(update={"scale_up_domain_accelerators": 1})
        return replace(self, accelerator=accelerator, stated_intra_bw_bytes_s=over_pcie_s, island_gpus=None)

    @property
    def crosses_nodes(self) -> bool:
        """Whether it is known how fast all nodes send to each other."""
        return self.nodes <= self.nodes_per_domain or self.stated_inter_bw_bytes_s is not None

    def peak_flops(self, dtype: DType) -> float:
        """Dense peak of one accelerator for matmuls in `dtype`, in FLOP/s.

        A part without units for a format computes in the next wider format that it has: 4-bit floats in fp8, then in 16
        bits; fp8, int8 and int4 in 16 bits; bf16 and fp16 stand in for each other, fp32 for both. Raises
        MissingFieldError: the accelerator states no peak that could stand in.
        """
        peaks = self.accelerator.dense_peak_tflops
        units = COMPUTE_KEYS[dtype]
        wider = () if dtype == "fp32" else ("fp8", *WIDE) if "fp4" in units else WIDE
        for key in (*units, *wider):
            peak: float | None = getattr(peaks, key)
            if peak is not None:
                return peak * 1e12
        raise MissingFieldError(f"dense_peak_tflops.{dtype}", f"accelerator {self.accelerator.id}", "compute needs it")


def facts_of(
    accelerator: Accelerator,
    nodes: int,
    gpus_per_node: int,
    intra_node_bw_gb_s: float | None,
    inter_node_bw_gb_s: float | None,
) -> HardwareFacts:
    """The facts of `nodes` x `gpus_per_node` of `accelerator`; stated bandwidths win over its usual ones.

    Raises MissingFieldError: the accelerator states no memory; InputError: there are no nodes or no accelerators in
    them.
    """
    if nodes < 1 or gpus_per_node < 1:
        raise InputError("hardware needs at least one node and one accelerator per node")
    memory, provenance = accelerator.memory_bytes()
    bandwidth = accelerator.memory_bandwidth_gb_s
    intra = _intra_gb_s(accelerator) if intra_node_bw_gb_s is None else intra_node_bw_gb_s
    inter = _inter_gb_s(accelerator) if inter_node_bw_gb_s is None else inter_node_bw_gb_s
    return HardwareFacts(
        accelerator=accelerator,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        memory_bytes=memory,
        memory_provenance=provenance,
        stated_memory_bandwidth_bytes_s=None if bandwidth is None else bandwidth * 1e9,
        stated_intra_bw_bytes_s=None if intra is None else intra * 1e9,
        stated_inter_bw_bytes_s=None if inter is None else inter * 1e9,
        # A stated rate is that of the whole node.
        island_gpus=_island(accelerator, gpus_per_node) if intra_node_bw_gb_s is None else None,
    )


def _island(accelerator: Accelerator, gpus_per_node: int) -> int | None:
    size = accelerator.scale_up_domain_accelerators
    # A node sold with several islands; a larger node is taken as stated.
    is_split = size is not None and 1 < size < min(gpus_per_node, accelerator.typical_node_accelerators or 1)
    return size if is_split else None


def _intra_gb_s(accelerator: Accelerator) -> float | None:
    if accelerator.intra_node_bw_gb_s_unidirectional_per_accelerator is not None:
        return accelerator.intra_node_bw_gb_s_unidirectional_per_accelerator
    if accelerator.intra_node_bw_gb_s_bidirectional_per_accelerator is not None:
        return accelerator.intra_node_bw_gb_s_bidirectional_per_accelerator / 2
    if accelerator.intra_node_p2p_gb_s_unidirectional is not None:
        return accelerator.intra_node_p2p_gb_s_unidirectional
    return accelerator.host_pcie_gb_s_unidirectional


def _inter_gb_s(accelerator: Accelerator) -> float | None:
    if accelerator.typical_nic_gb_s_unidirectional_per_accelerator is not None:
        return accelerator.typical_nic_gb_s_unidirectional_per_accelerator
    nic_gbit_s = accelerator.typical_nic_gbit_s_per_accelerator
    return None if nic_gbit_s is None else nic_gbit_s / 8
