"""Fits of kernel tables give back the constants that made them, and leave out rows that say nothing."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace

from shardwright.tools.calibration.custom import CustomCalibration, parse_calibration
from shardwright.tools.calibration.forms.gemm import GemmConstants
from shardwright.tools.calibration.measure.kernel_fit import KernelFits, fit_kernel_rows
from shardwright.tools.calibration.measure.machine import FULL, QUICK
from shardwright.tools.calibration.measure.table import KernelRow, read_kernel_rows, table_text
from shardwright.tools.calibration.profile import profile_of
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError

from .truths import GPU, TRUTHS, gemm_rows

TODAY = date(2026, 11, 21)
OWN = GemmConstants(launch_us=6.0, memory_share=0.6, compute_share=0.5)


def fitted(rows: list[KernelRow]) -> KernelFits:
    """The fits of rows after a round trip through the file that they are written to."""
    return fit_kernel_rows(read_kernel_rows(table_text(rows), "table"), TODAY)


@pytest.mark.parametrize("kernel", TRUTHS)
def test_a_full_table_gives_back_its_times_and_its_main_constants(kernel: str) -> None:
    truth, rows_of, tolerances = TRUTHS[kernel]
    result = fitted(rows_of(truth, FULL))
    (fit,) = result.fits
    assert fit.entry.kernel == kernel
    assert fit.own.median_pct < 3.0
    assert fit.own.median_pct < fit.shipped.median_pct / 5.0
    for name, tolerance in tolerances.items():
        assert fit.entry.constants[name] == pytest.approx(getattr(truth, name), rel=tolerance), name


@pytest.mark.parametrize("kernel", TRUTHS)
def test_a_quick_table_has_enough_shapes_for_every_form(kernel: str) -> None:
    truth, rows_of, _ = TRUTHS[kernel]
    (fit,) = fitted(rows_of(truth, QUICK)).fits
    assert fit.own.rows == 0 or fit.own.median_pct < 10.0


def test_the_entries_are_a_calibration_that_the_profile_takes() -> None:
    result = fitted([row for truth, rows_of, _ in TRUTHS.values() for row in rows_of(truth, QUICK)])
    text = CustomCalibration(name="own", kernels=result.files).model_dump_json()
    laid = parse_calibration(text, "own.json").laid_over(profile_of(find_accelerator(GPU), "vllm"))
    chosen = laid.choose("gemm", "bf16").entry
    assert chosen.framework == "torch"
    assert chosen.source == "own measurement with torch 2.13.0"
    # A format that was not measured keeps what ships.
    assert laid.choose("gemm", "fp8").entry.framework == "vllm"
    # Only the measured number of ranks of a collective is replaced.
    ranks = {choice.entry.ranks: choice.entry.licence for choice in laid.series("collective", "all_reduce")}
    assert ranks[8] == "own measurement"
    assert ranks[2] != "own measurement"


def test_rows_that_say_nothing_of_the_accelerator_are_left_out_with_their_reason() -> None:
    good = gemm_rows(OWN, FULL)
    warm = replace(next(row for row in good if row.shape["n"] == "1024"), is_cold=False, us=0.01)
    short = replace(good[0], mode="eager", us=1.0)
    skewed = KernelRow("moe", GPU, "x-1", {**_moe_shape(), "dist": "pl1.2"}, 10.0)
    result = fitted([*good, warm, short, skewed])
    assert len(result.fits) == 1
    assert result.fits[0].own.median_pct < 3.0
    text = "; ".join(result.left_out)
    assert "operands that the warm cache holds (1 rows)" in text
    assert "where the host is what is timed (1 rows)" in text
    assert "routing is not balanced (1 rows)" in text


def test_of_two_kernels_for_one_shape_the_faster_counts() -> None:
    truth, rows_of, _ = TRUTHS["attention_decode"]
    good = rows_of(truth, FULL)
    slow = [replace(row, shape={**row.shape, "kernel": "other"}, us=3.0 * row.us) for row in good]
    assert fitted([*slow, *good]).fits[0].own.median_pct < 3.0


def test_times_of_a_host_are_refused() -> None:
    rows = [replace(row, gpu="cpu", mode="host") for row in gemm_rows(OWN, QUICK)]
    with pytest.raises(InputError, match="times of a host"):
        fitted(rows)


def test_an_unknown_accelerator_is_refused_unless_it_is_named() -> None:
    rows = [replace(row, gpu="Some Card 9000") for row in gemm_rows(OWN, QUICK)]
    with pytest.raises(InputError, match="--hardware names the accelerator"):
        fitted(rows)
    assert fit_kernel_rows(rows, TODAY, "h200-sxm").fits[0].group.accelerator.id == "h200-sxm"


def test_too_few_rows_are_left_out_by_name() -> None:
    with pytest.raises(InputError, match=r"h100-sxm gemm bf16: \d rows are too few to fit 9 constants"):
        fitted(gemm_rows(OWN, QUICK)[:5])


def test_noise_does_not_replace_what_ships() -> None:
    """Shapes that are held back have the times of the shipped constants, those that the fit sees are nonsense."""
    profile = profile_of(find_accelerator(GPU), None)
    shipped = GemmConstants(**profile.choose("gemm", "bf16").entry.constants)
    good = gemm_rows(shipped, FULL)
    from shardwright.tools.calibration.measure.kernel_fit import held_back
    from shardwright.tools.calibration.measure.kernel_groups import grouped

    (group,) = grouped(good).groups
    unseen = {shape for shape, out in zip(group.shapes, held_back(group.shapes), strict=True) if out}
    bad = [row if "/".join(row.shape.values()) in unseen else replace(row, us=4.0 * row.us) for row in good]
    with pytest.raises(InputError, match="what ships predicts the shapes held back better"):
        fitted(bad)


def _moe_shape() -> dict[str, str]:
    return {
        "kernel": "x", "dtype": "bf16", "dist": "balanced", "tokens": "16", "hidden": "4096", "inter": "1024",
        "topk": "2", "experts": "8", "tp": "1", "ep": "1",
    }  # fmt: skip
