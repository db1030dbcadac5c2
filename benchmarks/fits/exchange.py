"""Fits the constants of dispatch and combine of experts: DeepEP's kernels, and NVLink's all-to-all of TensorRT-LLM.

Left out: the throughput kernels over eight nodes (22 GB/s for each rank, where DeepSeek publishes 50 and four nodes of
the same table reach 45), tables that time the host's launches too (a floor of 50 to 300 microseconds), and combines in
low precision. TensorRT-LLM's separate `prepare` kernel is part of its dispatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from shardwright.tools.arrays import FloatArray, IntArray
from shardwright.tools.calibration.chip import Chip
from shardwright.tools.calibration.forms.exchange import ExchangeConstants, exchange_s
from shardwright.tools.calibration.measure.kernel_fit import Problem, fit
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS
from shardwright.tools.calibration.measure.kernel_shapes import Row
from shardwright.tools.calibration.profile_file import POOLED, KernelEntry
from shardwright.tools.calibration.shapes import ExpertExchange

from .carry import Benchmarked, FittedAccelerators, carry_checks, pooled
from .entries import Subject, entry_of
from .tables import Table, chip_named, read_table

Phase = Literal["dispatch", "combine"]
# Bytes of one element of a copy on the wire: fp8 with a scale of 4 bytes for 128, nvfp4 with one byte for 16. A combine
# always moves 16 bits, whatever the experts compute in.
_WIRE_BYTES = {"bf16": 2.0, "fp8": 1.0 + 4.0 / 128, "nvfp4": 0.5 + 1.0 / 16}
_COMBINE_BYTES = 2.0
# Multiprocessors that DeepEP takes by default for its throughput kernels.
_DEFAULT_SMS = ("20", "", "0")
_TWO_SIDED = "trtllm-NVLinkTwoSided"
_SHARED = ("h100-sxm", "h200-sxm")


# Few multiprocessors that handle many copies, or links that wait.
_STARTS = (
    ExchangeConstants(handling_us=0.01, blend=4.0),
    ExchangeConstants(handling_us=0.003, link_share=0.3, blend=2.0),
    ExchangeConstants(alpha_us=50.0, handling_us=0.005, blend=1.2),
)


def variant_of(phase: Phase, *, low_latency: bool, network: bool) -> str:
    """The name of an entry's operation."""
    return phase + ("_low_latency" if low_latency else "") + ("_network" if network else "")


def _usable(row: Row) -> bool:
    if row["dtype"] not in _WIRE_BYTES or row["phase"] not in ("dispatch", "combine") or float(row["us"]) <= 0.0:
        return False
    if row["impl"] == _TWO_SIDED:
        return True
    weak = row["mode"] == "normal" and int(row["nodes"]) >= 8
    return row["impl"] == "deepep-v1" and row["sms"] in _DEFAULT_SMS and not weak


def _with_prepare(rows: Sequence[Row]) -> list[Row]:
    """Dispatch rows of TensorRT-LLM with the time of their `prepare` kernel added."""
    keys = ("gpu", "src", "impl", "dtype", "ranks", "hidden", "topk", "experts", "tokens_per_rank")
    prepare = {tuple(row[key] for key in keys): float(row["us"]) for row in rows if row["phase"] == "prepare"}
    return [
        {**row, "us": str(float(row["us"]) + prepare.get(tuple(row[key] for key in keys), 0.0))}
        if row["phase"] == "dispatch"
        else row
        for row in rows
    ]


def _fit_curve(table: Table, phase: Phase, chip: Chip, nodes: int) -> Benchmarked[ExchangeConstants]:
    tokens, hidden, top_k = table.numbers("tokens_per_rank"), table.numbers("hidden"), table.numbers("topk")
    wire = [_COMBINE_BYTES if phase == "combine" else _WIRE_BYTES[row["dtype"]] for row in table.rows]
    copy_bytes = hidden * wire
    seconds = table.numbers("us") * 1e-6
    ranks, low_latency = int(table.rows[0]["ranks"]), table.rows[0]["mode"] == "low_latency"

    def predict(constants: ExchangeConstants, places: IntArray) -> FloatArray:
        kernel = ExpertExchange(phase, tokens[places], copy_bytes[places], top_k[places], ranks, nodes, low_latency)
        return exchange_s(constants, chip, kernel)

    shapes = table.shape_keys("hidden", "topk", "tokens_per_rank")
    return Benchmarked(fit(Problem(ExchangeConstants, seconds, shapes, predict, _STARTS)), seconds, predict)


def fit_exchange(directory: Path) -> FittedAccelerators:
    """Entries for every accelerator, phase, mode and group of `ep_alltoall.csv`.

    Raises:
        InputError: the table is missing or has too few rows.
    """
    entries: dict[str, list[KernelEntry]] = {}
    benchmarked: dict[tuple[str, str, str], Benchmarked[ExchangeConstants]] = {}
    rows = Table(_with_prepare(read_table(directory / "ep_alltoall.csv").rows)).where(_usable)
    columns = ("gpu", "src", "impl", "mode", "phase", "ranks", "nodes")
    for (gpu, src, impl, mode, phase_name, ranks, domains), table in rows.groups(*columns).items():
        phase: Phase = "dispatch" if phase_name == "dispatch" else "combine"
        # All 72 GPUs of a rack are one domain of NVLink.
        nodes = 1 if impl == _TWO_SIDED else int(domains)
        framework = "trtllm" if impl == _TWO_SIDED else "deepep"
        shared = gpu == "h100-or-h200"
        if shared and nodes == 1:
            continue
        curve = _fit_curve(table, phase, chip_named(_SHARED[0] if shared else gpu), nodes)
        # TensorRT-LLM has one kernel for both modes.
        modes = (False, True) if impl == _TWO_SIDED else (mode == "low_latency",)
        for accelerator in _SHARED if shared else (ACCELERATORS[gpu],):
            for low_latency in modes:
                variant = variant_of(phase, low_latency=low_latency, network=nodes > 1)
                subject = Subject("exchange", variant, src, int(ranks), nodes, framework=framework)
                entries.setdefault(accelerator, []).append(entry_of(subject, curve.fitted))
            if not shared:
                benchmarked[accelerator, framework, f"{phase}/{mode}/{ranks}"] = curve
    checks = carry_checks("exchange", benchmarked)
    entries[POOLED] = pooled(entries)
    return FittedAccelerators(entries, checks)
