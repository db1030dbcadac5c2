"""Fits: known constants are found again, shapes are held back whole, and bad tables are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shardwright.benchmarks.fits.gemm import fit_gemm
from shardwright.benchmarks.fits.tables import read_table
from shardwright.tools.calibration.chip import chip_of
from shardwright.tools.calibration.forms.collective import CollectiveConstants, one_level_s
from shardwright.tools.calibration.forms.constant import read_constants
from shardwright.tools.calibration.forms.gemm import GemmConstants, gemm_s
from shardwright.tools.calibration.measure.kernel_fit import Problem, errors, fit, held_back
from shardwright.tools.calibration.shapes import Collective, Gemm
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError

H100 = chip_of(find_accelerator("h100-sxm"))
TRUE = GemmConstants(launch_us=3.0, memory_share=0.85, compute_share=0.8, start_k=150.0, sustained_loss=0.2)
M = (1, 16, 64, 128, 256, 512, 1024, 4096, 8192)
WIDTHS = (1024, 2048, 4096, 7168, 16384, 65536)
SIZES = 2.0 ** np.arange(10, 30)


def write_tables(folder: Path) -> None:
    """A table of matmuls with the constants `TRUE`, every 50th ten times too slow, and one of quantisation."""
    lines = ["gpu,src,dtype,m,n,k,us"]
    for i, (m, n, k) in enumerate((m, n, k) for m in M for n in WIDTHS for k in WIDTHS):
        us = gemm_s(TRUE, H100, Gemm(m, n, k, "bf16", "bf16")) * 1e6 * (10.0 if i % 50 == 7 else 1.0)
        lines.append(f"h100-sxm,vllm-1.0,bf16,{m},{n},{k},{us:.4g}")
        lines.append(f"h100-sxm,vllm-1.0,fp8_block,{m},{n},{k},{us + 60:.4g}")
    (folder / "gemm.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    quantise = ["gpu,src,op,dtype,m,k,us", "b200-sxm,x,scale,fp8,1,1024,8", "b200-sxm,x,scale,fp8,16384,16384,160"]
    (folder / "quantize_ops.csv").write_text("\n".join(quantise) + "\n", encoding="utf-8")


def test_the_constants_behind_a_table_are_found_again_each_time_though_some_rows_are_wrong(
    tmp_path: Path,
) -> None:
    write_tables(tmp_path)
    fitted = fit_gemm(tmp_path)
    assert fitted == fit_gemm(tmp_path)
    entries = fitted.entries["h100-sxm"]
    # The host-bound table of the same stack is left out.
    assert [(entry.variant, entry.framework, entry.version) for entry in entries] == [("bf16", "vllm", "1.0")]
    constants = read_constants(GemmConstants, entries[0].constants)
    for shape in ((1, 28672, 8192), (100, 5120, 5120), (6000, 8192, 3000)):
        kernel = Gemm(*shape, "bf16", "bf16")
        assert gemm_s(constants, H100, kernel) == pytest.approx(gemm_s(TRUE, H100, kernel), rel=0.05)
    assert entries[0].held_back_median_pct is not None and entries[0].held_back_median_pct < 3.0


def test_shapes_are_held_back_whole_and_about_a_fifth_of_them() -> None:
    shapes = [f"{n}/{k}" for n in range(60) for k in range(60) for _ in range(3)]
    out = held_back(shapes)
    assert 0.15 < out.mean() < 0.25
    assert all(len(set(out[i : i + 3])) == 1 for i in range(0, len(shapes), 3))


def test_the_error_is_that_of_rows_the_fit_never_saw() -> None:
    true = CollectiveConstants(alpha_us=12.0, link_share=0.6, ramp_us=30.0)
    seconds = one_level_s(true, 450e9, Collective("all_gather", SIZES, 8, 1))
    shapes = [str(size) for size in SIZES]
    out = held_back(shapes)
    spoiled = np.where(out, seconds * 2.0, seconds)
    fitted = fit(
        Problem(
            CollectiveConstants, spoiled, shapes,
            lambda constants, places: one_level_s(constants, 450e9, Collective("all_gather", SIZES[places], 8, 1)),
        )
    )  # fmt: skip
    assert out.any() and fitted.held_back.rows == out.sum() and fitted.rows == (~out).sum()
    assert fitted.held_back.median_pct == pytest.approx(50.0, abs=5.0)
    assert fitted.constants.alpha_us == pytest.approx(12.0, rel=0.1)


def test_errors_are_absolute_percentages_of_the_measured_time() -> None:
    off = errors(np.array([1.1, 0.5, 2.0]), np.array([1.0, 1.0, 1.0]))
    assert off.rows == 3 and off.median_pct == pytest.approx(50.0) and off.p90_pct == pytest.approx(90.0)


def test_a_missing_an_empty_and_a_short_table_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table of kernel times"):
        read_table(tmp_path / "gemm.csv")
    (tmp_path / "gemm.csv").write_text("gpu,src,dtype,m,n,k,us\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no rows"):
        read_table(tmp_path / "gemm.csv")
    write_tables(tmp_path)
    (tmp_path / "gemm.csv").write_text("gpu,src,dtype,m,n,k,us\nh100-sxm,vllm-1,bf16,1,1024,1024,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="too few"):
        fit_gemm(tmp_path)


def test_data_files_hold_four_digits() -> None:
    from shardwright.tools.calibration.profile import read_profile_file

    file = read_profile_file("h100-sxm")
    assert file is not None
    assert all(value == float(f"{value:.4g}") for entry in file.entries for value in entry.constants.values())
    assert json.loads(file.model_dump_json())["accelerator"] == "h100-sxm"
