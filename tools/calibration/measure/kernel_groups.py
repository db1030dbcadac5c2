"""Rows of kernel times as the forms read them: one group for each accelerator, kernel, format and number of ranks.

Rows that do not reflect the accelerator are left out with their reason: times of the host, short kernels launched call
by call (they wait for the host), operands in a warm cache, unbalanced routing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from msgspec import Struct

from ...arrays import FloatArray
from ...catalog.accelerators import Accelerator
from ...catalog.hardware import find_accelerator
from ...errors import InputError
from ..chip import Chip, chip_of
from ..profile_file import KernelKind
from .kernel_shapes import FORMS, Columns, read_bytes, table_of_rows, variant_of
from .table import SHAPES, KernelRow, TableName

# Kernels launched call by call are only timed reliably if they last longer than the host needs for the next launch.
_LAUNCHED_US = 100.0
# Operands twice the size of the cache are evicted before they are read again.
_CACHES = 2.0
# Names in the tables, and their ids in the catalogue.
ACCELERATORS: dict[str, str] = {
    "a100-sxm": "a100-80gb-sxm",
    "h100-sxm": "h100-sxm",
    "h200-sxm": "h200-sxm",
    "h20": "h20",
    "h800": "h800",
    "b200-sxm": "b200-sxm",
    "b300-sxm": "b300-sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "a40": "a40",
    "rtx-4090": "rtx-4090",
    "rtx-pro-6000": "rtx-pro-6000-blackwell-server",
}
_NETWORK = "network"
# The engines' own all-reduce: its suffix in tables when it ran inside a graph, and its variant in profiles.
_CUSTOM_GRAPH, _CUSTOM = "_custom_graph", "all_reduce_custom"


class KernelGroup(Struct, frozen=True):
    """Rows of one kernel: constants of `kind` predict their seconds by `seconds(constants, chip, kernel)`.

    `shapes` has a word for each row; rows with the same word are held back together. The rows do not determine the
    constants in `fixed`.
    """

    accelerator: Accelerator
    chip: Chip
    kernel: KernelKind
    variant: str
    framework: str
    version: str
    kind: type[Any]
    shape: Any
    seconds: Callable[[Any, Chip, Any], Any]
    measured_s: FloatArray
    shapes: Sequence[str]
    ranks: int | None = None
    nodes: int | None = None
    fixed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For people: accelerator, kernel, format, ranks."""
        size = "" if self.ranks is None else f" over {self.ranks} ranks"
        return f"{self.accelerator.id} {self.kernel} {self.variant}{size}"


class Grouped(Struct, frozen=True):
    """All groups of a table, and why rows were left out."""

    groups: tuple[KernelGroup, ...]
    left_out: tuple[str, ...]


def stack_of(src: str) -> tuple[str, str]:
    """Framework and version of a `src` such as `vllm-0.24.0` or `aic/nccl-2.29.2`."""
    framework, _, version = src.rpartition("/")[2].partition("-")
    return ("deepgemm", "") if framework == "infersim" else (framework, version)


def accelerator_named(gpu: str, stated: str | None) -> Accelerator:
    """The catalogue's accelerator for a row's `gpu`; `stated` counts if that name is not known.

    Raises InputError: neither is known, or the row is of a host.
    """
    if gpu == "cpu":
        raise InputError("the table has times of a host (gpu cpu): they say nothing of an accelerator")
    try:
        return find_accelerator(ACCELERATORS.get(gpu, gpu))
    except InputError as error:
        if stated is None:
            raise InputError(f"gpu {gpu[:60]!r} of the table: {error} (--hardware names the accelerator)") from None
        return find_accelerator(stated)


def grouped(rows: Sequence[KernelRow], stated: str | None = None) -> Grouped:
    """The groups of `rows`. Raises InputError: an accelerator or a format is not known, or no row is left."""
    parts: defaultdict[tuple[str, ...], list[KernelRow]] = defaultdict(list)
    chips = {gpu: accelerator_named(gpu, stated) for gpu in dict.fromkeys(row.gpu for row in rows)}
    left_out: Counter[str] = Counter()
    for row in rows:
        reason = _unusable(row, chip_of(chips[row.gpu]))
        if reason:
            left_out[f"{row.table}: {reason}"] += 1
        else:
            parts[_key(row)].append(row)
    if not parts:
        raise InputError(f"no row of the table can be used: {'; '.join(left_out)}")
    groups: list[KernelGroup] = []
    for key, group_rows in sorted(parts.items()):
        try:
            groups.append(_group(chips[group_rows[0].gpu], _fastest(group_rows)))
        except InputError as error:
            left_out[f"{' '.join(key)}: {error}"] += len(group_rows)
    return Grouped(tuple(groups), tuple(f"{reason} ({count} rows)" for reason, count in sorted(left_out.items())))


def _key(row: KernelRow) -> tuple[str, ...]:
    """Equal for rows of the same group."""
    columns: dict[TableName, tuple[str, ...]] = {
        "gemm": ("dtype",),
        "attn_prefill": ("kv_dtype",),
        "attn_decode": ("kv_dtype",),
        "moe": ("dtype",),
        "collectives": ("impl", "op", "ranks", "nodes"),
    }
    return (row.gpu, row.table, row.src, *(row.shape[name] for name in columns[row.table]))


def _unusable(row: KernelRow, chip: Chip) -> str:
    """Why a row does not reflect the kernel's time; empty if it does."""
    if row.mode == "host":
        return "timed on the host"
    if row.table == "moe" and row.shape["dist"] not in ("", "balanced"):
        return "routing is not balanced"
    if row.table == "collectives":
        return _unusable_collective(row)
    if row.mode == "eager" and row.us < _LAUNCHED_US:
        return f"launched call by call and under {_LAUNCHED_US:g} us, where the host is what is timed"
    if not row.is_cold and read_bytes(row) < _CACHES * chip.l2_bytes:
        return "operands that the warm cache holds"
    return ""


def _unusable_collective(row: KernelRow) -> str:
    """Why a collective's row fits no form; forms have one level of links: inside a node, or between single ranks."""
    nodes, is_custom = row.number("nodes"), "custom" in row.shape["impl"]
    if nodes > 1 and (row.shape["op"] != "send_recv" or row.number("ranks") != nodes):
        return "over several nodes with several ranks each, or more than one hop"
    if is_custom and (row.shape["op"] != "all_reduce" or not row.shape["impl"].endswith(_CUSTOM_GRAPH)):
        return "an engine's own kernel outside of a graph"
    return ""


def _fastest(rows: Sequence[KernelRow]) -> list[KernelRow]:
    """One row for each shape: the median repeat of the fastest kernel or library."""
    times: defaultdict[tuple[str, ...], defaultdict[str, list[KernelRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        implementation = row.shape.get("kernel", "") or row.shape.get("impl", "")
        times[_shape_key(row)][implementation].append(row)
    fastest: list[KernelRow] = []
    for kernels in times.values():
        best = min(kernels.values(), key=lambda repeats: median(repeat.us for repeat in repeats))
        middle = median(repeat.us for repeat in best)
        fastest.append(min(best, key=lambda repeat: abs(repeat.us - middle)))
    return fastest


def _shape_key(row: KernelRow) -> tuple[str, ...]:
    return tuple(row.shape[name] for name in SHAPES[row.table] if name not in ("kernel", "impl"))


def _group(accelerator: Accelerator, rows: Sequence[KernelRow]) -> KernelGroup:
    first, table = rows[0], table_of_rows(rows)
    form = FORMS[first.table]
    framework, version = stack_of(first.src) if first.src else ("own", "")
    is_collective = first.table == "collectives"
    variant = variant_of(first)
    if is_collective:
        impl = first.shape["impl"]
        framework, version = impl.removesuffix(_CUSTOM_GRAPH) or framework, ""
        variant = _NETWORK if first.number("nodes") > 1 else _CUSTOM if impl.endswith(_CUSTOM_GRAPH) else variant
    return KernelGroup(
        accelerator=accelerator,
        chip=chip_of(accelerator),
        kernel=form.kernel,
        variant=variant,
        framework=framework or "own",
        version=version,
        kind=form.constants,
        shape=form.shapes(table),
        seconds=form.seconds,
        measured_s=np.array([row.us * 1e-6 for row in rows], dtype=np.float64),
        shapes=["/".join(_shape_key(row)) for row in rows],
        ranks=first.number("ranks") if is_collective else None,
        nodes=first.number("nodes") if is_collective else None,
        fixed=_fixed(form.kernel, table),
    )


def _fixed(kernel: KernelKind, table: Columns) -> tuple[str, ...]:
    """Names of constants that the rows do not determine."""
    if kernel == "attention_decode" and not any(table.numbers("window") > 0):
        return ("ungrouped",)
    if kernel == "attention_prefill":
        widths = set(table.numbers("head_dim"))
        return tuple(
            name
            for name, is_covered in (("narrow_power", min(widths) < 128), ("wide_power", max(widths) > 128))
            if not is_covered
        )
    return ()
