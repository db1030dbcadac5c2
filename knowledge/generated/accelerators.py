"""The catalogue of accelerators: what a plan counts with."""

from __future__ import annotations

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.hardware import all_accelerators, find_accelerator
from .markdown import table

_HEADS = (
    "id", "memory GiB", "HBM GB/s", "bf16 TFLOP/s", "fp8", "link GB/s", "NIC GB/s", "per node", "domain",
)  # fmt: skip


def generate(*names: str) -> str:
    """The table of the accelerators `names`, of all where none is named. Peaks are dense, links one way.

    Raises:
        UnknownNameError: the catalogue does not have one of them.
    """
    chosen = [find_accelerator(name) for name in names] or list(all_accelerators())
    return "\n".join(table(_HEADS, [_row(item) for item in chosen]))


def _row(item: Accelerator) -> tuple[str, ...]:
    memory_gib = item.memory_bytes()[0] / 2**30
    return (
        f"`{item.id}`",
        f"{memory_gib:.1f}",
        _figure(item.memory_bandwidth_gb_s),
        _figure(item.dense_peak_tflops.bf16),
        _figure(item.dense_peak_tflops.fp8),
        _figure(item.intra_node_bw_gb_s_unidirectional_per_accelerator),
        _figure(item.typical_nic_gb_s_unidirectional_per_accelerator),
        _figure(item.typical_node_accelerators),
        _figure(item.scale_up_domain_accelerators),
    )


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:g}"
