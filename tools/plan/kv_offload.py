"""Memory of the host that keeps blocks of the KV cache beyond what GPUs have room for, as data of the plan document."""

from __future__ import annotations

from typing import Annotated

from .. import bounds
from ..engines.engine import Engine
from .performance import Sparse
from .prefixes import SharedPrefixes

_GB = 1e9


class KVOffload(Sparse):
    """`bytes_per_gpu` of the host's memory for each GPU, over a link that brings blocks back at `host_bw_gb_s`.

    10^9 bytes/s per GPU, one way; the catalogue's for the accelerator where absent. It changes what a plan's users see
    where `workload.prefixes` says what prompts share.
    """

    bytes_per_gpu: Annotated[int, bounds.MEMORY_BYTES.whole()]
    host_bw_gb_s: Annotated[float, bounds.BANDWIDTH_GB_S.real()] | None = None

    def __str__(self) -> str:
        """How much, and how fast, in words."""
        link = "" if self.host_bw_gb_s is None else f", which come back at {self.host_bw_gb_s:g} GB/s"
        return f"blocks of the KV cache in {self.bytes_per_gpu / _GB:,.4g} GB of host memory per GPU{link}"


def without_effect(offload: KVOffload, engine: Engine, prefixes: SharedPrefixes | None) -> str | None:
    """Why it changes nothing of what is planned on `engine` for prompts that share `prefixes`; `None`: it does."""
    if engine.keeps_in_host is None:
        return f"{offload}: how {engine.title} is told of it is not known here"
    if prefixes is None:
        return (
            f"{offload}: what it is worth depends on what prompts share; say it (a system prompt, turns of "
            "conversations, a trace)"
        )
    return None
