"""The fits of the routed experts, on tables made from known constants."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardwright.benchmarks.fits.grouped_gemm import FORM, fit_grouped_gemm, measured_tables, new_model_errors
from shardwright.benchmarks.fits.tables import read_table
from shardwright.tools.calibration.chip import chip_of
from shardwright.tools.calibration.forms.constant import read_constants
from shardwright.tools.calibration.forms.gemm import GroupedGemmConstants, grouped_gemm_s, grouped_matmuls_s
from shardwright.tools.calibration.shapes import GroupedGemm
from shardwright.tools.catalog.hardware import find_accelerator

from .tables import write_table

H100, H20 = chip_of(find_accelerator("H100")), chip_of(find_accelerator("H20"))
TRUE = {"launch_us": 26.0, "memory_share": 0.85, "compute_share": 0.7, "tile_rows": 110.0, "copy_traffic": 2.0}
BUSY = {"memory_share": 0.8, "compute_share": 0.95, "tile_rows": 110.0}
MODELS = ((2048, 768, 8, 128), (4096, 14336, 2, 8), (4096, 1536, 8, 128), (7168, 2048, 8, 384))
CELLS = ((1, 1), (2, 1), (4, 1), (8, 1), (1, 4), (1, 8), (1, 32))
Slow = Callable[[int, int], float]


def layer_us(tokens: int, model: tuple[int, int, int, int], tp: int, ep: int) -> float:
    hidden, inner, top_k, experts = model
    copies = max(1.0, tokens * top_k / ep)
    touched = min(experts / ep, copies)
    sizes = [np.array([float(size)]) for size in (tokens, copies, touched, experts, hidden, inner / tp)]
    kernel = GroupedGemm(*sizes, gated=True, weights="fp8", dtype="fp8", blockwise=True)
    return float(FORM.seconds(FORM.warm(**TRUE), H100, kernel)[0]) * 1e6


def rows(stack: str, slow: Slow) -> list[dict[str, Any]]:
    table = []
    for model, (tp, ep), tokens in product(MODELS, CELLS, (1, 8, 64, 512, 4096, 16384)):
        hidden, inner, top_k, experts = model
        table.append({
            "gpu": "h100-sxm", "src": stack, "kernel": "made", "dtype": "fp8_block", "dist": "balanced",
            "tokens": tokens, "hidden": hidden, "inter": inner, "topk": top_k, "experts": experts, "tp": tp, "ep": ep,
            "us": slow(hidden, ep) * layer_us(tokens, model, tp, ep), "suspect": 0,
        })  # fmt: skip
    return table


def matmul_rows() -> list[dict[str, Any]]:
    table = []
    for hosted, per_expert, (hidden, inner) in product((2, 8, 32), (4, 32, 256, 2048), ((2048, 768), (4096, 1536))):
        kernel = GroupedGemm(1, hosted * per_expert, hosted, 128, hidden, inner, True, "fp8", "fp8", blockwise=True)
        us = grouped_matmuls_s(GroupedGemmConstants(**BUSY), H20, kernel) * 1e6
        table.append({
            "gpu": "h20", "layout": "masked", "experts": 128, "gpus": 128 // hosted, "local_experts": hosted, "topk": 8,
            "hidden": hidden, "inter": inner, "tokens_per_gpu": 64, "tokens_per_expert": per_expert,
            "up_us": 0.6 * us, "down_us": 0.4 * us,
        })  # fmt: skip
    return table


def tables(folder: Path, stack: str = "trtllm-1.3.0", slow: Slow = lambda hidden, ep: 1.0) -> Path:
    write_table(folder / "moe.csv", rows(stack, slow))
    write_table(folder / "grouped_gemm_infersim.csv", matmul_rows())
    return folder


def test_a_fit_finds_the_constants_again(tmp_path: Path) -> None:
    (entry,) = fit_grouped_gemm(tables(tmp_path)).entries["h100-sxm"]
    constants = read_constants(GroupedGemmConstants, entry.constants)
    assert entry.held_back_median_pct is not None and entry.held_back_median_pct < 1.5
    for tokens, copies, touched, inner in ((64, 512, 126, 768), (4096, 4096, 16, 768), (16384, 131072, 128, 192)):
        kernel = GroupedGemm(tokens, copies, touched, 128, 2048, inner, True, "fp8", "fp8", blockwise=True)
        true = grouped_gemm_s(GroupedGemmConstants(**TRUE), H100, kernel)
        assert grouped_gemm_s(constants, H100, kernel) == pytest.approx(true, rel=0.06)


def test_a_cell_that_was_not_tuned_changes_nothing(tmp_path: Path) -> None:
    slow = tables(tmp_path, slow=lambda hidden, ep: 3.0 if (hidden, ep) == (2048, 8) else 1.0)
    (entry,) = fit_grouped_gemm(slow).entries["h100-sxm"]
    assert entry.note is not None and entry.note.startswith("1 cells")
    assert entry.held_back_p90_pct is not None and entry.held_back_p90_pct < 3.0


def test_a_new_model_is_predicted_from_the_others(tmp_path: Path) -> None:
    (table,) = measured_tables(read_table(tables(tmp_path) / "moe.csv"))
    errors = new_model_errors(table)
    assert set(errors) == {f"{hidden}x{inner}x{experts}" for hidden, inner, _, experts in MODELS}
    assert all(error.median_pct < 6.0 for error in errors.values())


def test_synthetic_routing_that_leaves_experts_idle_is_left_out(tmp_path: Path) -> None:
    """vLLM's rows of DeepSeek-V3, whose grouped routing was given synthetic scores: made twice as fast here."""
    regular = rows("vllm-0.24.0", lambda hidden, ep: 1.0)
    idle = [{**row, "experts": 256, "us": row["us"] / 2} for row in regular if row["hidden"] == 7168]
    write_table(tmp_path / "moe.csv", [*regular, *idle])
    (table,) = measured_tables(read_table(tmp_path / "moe.csv"))
    assert len(table.rows.seconds) == len(regular)


def test_a_chip_with_matmuls_alone_keeps_what_is_around_them_of_its_relative(tmp_path: Path) -> None:
    fitted = fit_grouped_gemm(tables(tmp_path))
    (relative,) = fitted.entries["h100-sxm"]
    carried = next(entry for entry in fitted.entries["h20"] if entry.variant == "fp8_block")
    assert carried.constants["launch_us"] == relative.constants["launch_us"]
    assert carried.constants["copy_traffic"] == relative.constants["copy_traffic"]
    assert carried.constants["compute_share"] == pytest.approx(BUSY["compute_share"], rel=0.1)
    (check,) = fitted.carry_checks["h20"]
    assert (check.source, check.rows > 0) == ("h100-sxm", True)
