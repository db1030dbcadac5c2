"""Fits the constants of collectives: NCCL's operations, and the all-reduce kernels of the engines themselves.

Of an engine's own kernels the times inside a CUDA graph count, as engines replay graphs while they decode. The host of
the L40S tables has no peer-to-peer path beyond a pair: what its 4 ranks reach (5 of 32 GB/s) is called `staged` and
holds for groups of any size that go through the memory of a host, as runs of 2, 4 and 8 GeForce cards show. Its pairs
have a path (20 GB/s), and its 8 ranks share a link between sockets (1.5 GB/s) that is of that host. A PCIe part on a
host with such paths takes those of the RTX PRO 6000. Left out: hosts with NVLink between pairs only, clouds with a weak
network, and tables that a newer one of the same chip covers.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from shardwright.tools.arrays import FloatArray, IntArray
from shardwright.tools.calibration.chip import Chip
from shardwright.tools.calibration.forms.collective import CollectiveConstants, link_of, nic_of, one_level_s
from shardwright.tools.calibration.measure.kernel_fit import Problem, fit
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS
from shardwright.tools.calibration.profile_file import POOLED, KernelEntry
from shardwright.tools.calibration.shapes import Collective, CollectiveOp

from .carry import Benchmarked, FittedAccelerators, carry_checks, pooled
from .entries import Subject, entry_of
from .tables import Table, chip_named, read_table

CUSTOM = "all_reduce_custom"
NETWORK = "network"
STAGED = "_staged"
_STAGED_HOST, _STAGED_RANKS = "l40s", 4
_PCIE = ("l40s", "rtx-pro-6000-blackwell-server")
_GRAPH = "_custom_graph"


def _variant(row: dict[str, str]) -> str | None:
    """The profile's name of a row's operation; `None` where the row is not used."""
    name = _operation(row)
    if name is None or row["gpu"] != _STAGED_HOST:
        return name
    # An engine's own kernels read the memory of the other GPUs: where that is out of reach it leaves them to NCCL.
    return None if name == CUSTOM or int(row["ranks"]) != _STAGED_RANKS else f"{name}{STAGED}"


def _operation(row: dict[str, str]) -> str | None:
    src, op, nodes = row["src"], row["op"], int(row["nodes"])
    if row["gpu"] not in ACCELERATORS or float(row["us"]) <= 0.0:
        return None
    if row["impl"].endswith(_GRAPH):
        return CUSTOM
    if op == "send_recv" and row["impl"] == "nccl":
        if nodes == 1:
            # Of two tables of an H100, the one with the finer clock.
            return None if row["gpu"] == "h100-sxm" and src == "apex_plus" else op
        # The only network of a current chip that was measured in the open.
        return NETWORK if src == "vidur/h100_dgx" else None
    return op if row["impl"] == "nccl" and src.startswith("aic/nccl") and nodes == 1 else None


def _fit_curve(table: Table, variant: str, chip: Chip) -> Benchmarked[CollectiveConstants]:
    size, seconds = table.numbers("bytes"), table.numbers("us") * 1e-6
    op = next(name for name in get_args(CollectiveOp) if name == table.rows[0]["op"])
    link_bytes_s = nic_of(chip) if variant == NETWORK else link_of(chip)
    ranks = int(table.rows[0]["ranks"])

    def predict(constants: CollectiveConstants, places: IntArray) -> FloatArray:
        return one_level_s(constants, link_bytes_s, Collective(op, size[places], ranks, 1))

    return Benchmarked(
        fit(Problem(CollectiveConstants, seconds, table.shape_keys("bytes", "op"), predict)), seconds, predict
    )


def fit_collective(directory: Path) -> FittedAccelerators:
    """Entries for every accelerator, operation, implementation and number of ranks of `collectives.csv`.

    Raises:
        InputError: the table is missing or has too few rows.
    """
    entries: dict[str, list[KernelEntry]] = {}
    benchmarked: dict[tuple[str, str, str], Benchmarked[CollectiveConstants]] = {}
    table = read_table(directory / "collectives.csv").where(lambda row: _variant(row) is not None)
    for (gpu, src, impl, ranks, nodes), rows in table.groups("gpu", "src", "impl", "ranks", "nodes").items():
        accelerator, chip = ACCELERATORS[gpu], chip_named(gpu)
        framework = impl.removesuffix(_GRAPH)
        for variant in sorted({_variant(row) or "" for row in rows.rows}):
            curve = _fit_curve(rows.where(lambda row, it=variant: _variant(row) == it), variant, chip)
            subject = Subject("collective", variant, src, int(ranks), int(nodes), framework=framework)
            entries.setdefault(accelerator, []).append(entry_of(subject, curve.fitted))
            benchmarked[accelerator, framework, f"{variant}/{ranks}"] = curve
    checks = carry_checks("collective", benchmarked)
    # Medians over kinds of link would be of neither.
    entries[POOLED] = pooled({name: members for name, members in entries.items() if name not in _PCIE})
    return FittedAccelerators(entries, checks)
