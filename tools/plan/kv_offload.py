"""Memory of the host that keeps blocks of the KV cache beyond what GPUs have room for, as data of the plan document."""

from __future__ import annotations

from typing import Annotated

from ..catalog.accelerators import Bandwidth
from ..frozen import Sparse
from ..input import bounds

_GB = 1e9


class KVOffload(Sparse):
    """`bytes_per_gpu` of the host's memory for each GPU, over a link that brings blocks back at `host_bw_gb_s`.

    10^9 bytes/s per GPU, one way; the catalogue's for the accelerator where absent. It changes what a plan's users see
    where `workload.prefixes` says what prompts share.
    """

    bytes_per_gpu: Annotated[int, bounds.MEMORY_BYTES.whole()]
    host_bw_gb_s: Bandwidth | None = None

    def __str__(self) -> str:
        """How much, and how fast, in words."""
        link = "" if self.host_bw_gb_s is None else f", which come back at {self.host_bw_gb_s:g} GB/s"
        return f"blocks of the KV cache in {self.bytes_per_gpu / _GB:,.4g} GB of host memory per GPU{link}"
