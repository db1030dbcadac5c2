"""A whole measurement: the chosen kernels on this machine, as rows of the kernel tables, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ...checkpoint import doing
from ...errors import InputError
from ...frozen import Frozen
from .attention import measure_attention
from .collectives import measure_collectives
from .gemm import measure_gemm
from .machine import Effort, Machine
from .moe import measure_moe
from .table import KernelRow, Skipped

Kernel = Literal["gemm", "attention", "moe", "collectives"]

_MEASURES: Mapping[Kernel, Callable[[Machine, Effort], Iterator[KernelRow | Skipped]]] = {
    "gemm": measure_gemm,
    "attention": measure_attention,
    "moe": measure_moe,
    "collectives": measure_collectives,
}
KERNELS: tuple[Kernel, ...] = tuple(_MEASURES)


class TableCount(Frozen):
    """Rows of one table."""

    table: str
    rows: int


class MeasureReport(Frozen):
    """What was measured on which device; `left_out` says what was not, and why."""

    device: str
    gpu: str
    devices: int
    src: str
    tables: tuple[TableCount, ...]
    left_out: tuple[str, ...] = ()


class Measurement(Struct, frozen=True):
    """The measured rows and their report."""

    rows: tuple[KernelRow, ...]
    report: MeasureReport


def measure(machine: Machine, kernels: Sequence[Kernel], effort: Effort) -> Measurement:
    """Time `kernels` on `machine`; collectives are left out if it has only one accelerator.

    Raises InputError: nothing could be timed.
    """
    rows: list[KernelRow] = []
    skipped: Counter[str] = Counter()
    for kernel in kernels:
        if kernel == "collectives" and not machine.is_host and machine.count < 2:
            skipped["collectives: there is one accelerator"] += 1
            continue
        for result in _MEASURES[kernel](machine, effort):
            if isinstance(result, Skipped):
                skipped[f"{result.table}: {result.reason}"] += 1
                continue
            rows.append(result)
            doing(f"timing {result.table}: {len(rows):,} kernels so far")
    left_out = tuple(f"{reason} ({count})" if count > 1 else reason for reason, count in skipped.items())
    if not rows:
        raise InputError(f"nothing could be measured: {'; '.join(left_out) or 'no kernel was asked for'}")
    counts = Counter(row.table for row in rows)
    report = MeasureReport(
        device=machine.device_name,
        gpu=machine.gpu,
        devices=machine.count,
        src=machine.src,
        tables=tuple(TableCount(table=name, rows=count) for name, count in counts.items()),
        left_out=left_out,
    )
    return Measurement(tuple(rows), report)
