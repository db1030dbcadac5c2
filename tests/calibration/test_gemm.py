"""Times of matmuls: properties of every shape, and published numbers."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.forms.gemm import (
    GemmConstants,
    gemm_activation_bytes,
    gemm_flops,
    gemm_s,
    gemm_weight_bytes,
)
from shardwright.tools.calibration.kernel_times import KernelTimes
from shardwright.tools.calibration.shapes import Gemm
from shardwright.tools.catalog.dtypes import DType

from .chips import accelerators, faster, frameworks, speedups, times_of

PUBLISHED = json.loads((Path(__file__).parents[1] / "cases" / "published_kernels.json").read_text(encoding="utf-8"))
FORMATS: tuple[tuple[DType, DType, bool], ...] = (
    ("bf16", "bf16", False), ("fp16", "fp16", False), ("fp8", "fp8", False), ("fp8", "fp8", True),
    ("mxfp8", "mxfp8", False), ("nvfp4", "nvfp4", False), ("mxfp4", "mxfp4", False), ("int8", "int8", False),
    ("int4", "bf16", False), ("int8", "bf16", False), ("mxfp4", "bf16", False), ("mxfp4", "fp8", False),
)  # fmt: skip
widths = st.integers(1, 65536)


@st.composite
def gemms(draw: st.DrawFn) -> Gemm:
    """Any matmul in any format."""
    weights, dtype, blockwise = draw(st.sampled_from(FORMATS))
    return Gemm(draw(st.integers(1, 20000)), draw(widths), draw(widths), weights, dtype, blockwise)


@given(accelerators, frameworks, gemms())
def test_no_matmul_is_faster_than_the_datasheet_allows(accelerator: str, framework: str | None, kernel: Gemm) -> None:
    times = times_of(accelerator, framework)
    roofline = max(
        gemm_flops(kernel) / times.chip.peak(kernel.dtype),
        (gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)) / times.chip.memory_bytes_s,
    )
    assert times.seconds(kernel).seconds >= roofline


@given(accelerators, gemms(), speedups, speedups)
def test_a_faster_chip_is_never_slower(accelerator: str, kernel: Gemm, compute: float, memory: float) -> None:
    times = times_of(accelerator)
    better = KernelTimes(faster(times.chip, compute, memory), times.profile)
    assert better.seconds(kernel).seconds <= times.seconds(kernel).seconds * (1 + 1e-9)


@given(accelerators, gemms(), st.sampled_from(("m", "n", "k")), st.integers(1, 5000))
def test_more_work_never_takes_less_time(accelerator: str, kernel: Gemm, axis: str, more: int) -> None:
    times = times_of(accelerator)
    larger = replace(kernel, **{axis: getattr(kernel, axis) + more})
    assert times.seconds(larger).seconds >= times.seconds(kernel).seconds * (1 - 1e-9)


@given(gemms())
def test_an_array_of_shapes_takes_the_times_of_its_shapes(kernel: Gemm) -> None:
    chip, constants = times_of("h100-sxm").chip, GemmConstants()
    sizes = np.array([1.0, float(kernel.m), 777.0])
    together = gemm_s(constants, chip, replace(kernel, m=sizes, n=np.full(3, float(kernel.n))))
    apart = [gemm_s(constants, chip, replace(kernel, m=float(m))) for m in sizes]
    assert together == pytest.approx(apart, rel=1e-12)


def test_decode_on_h100_is_the_read_of_its_weights_at_four_fifths_of_the_bandwidth() -> None:
    seconds = times_of("h100-sxm").seconds(Gemm(1, 28672, 8192, "bf16", "bf16")).seconds
    assert seconds == pytest.approx(28672 * 8192 * 2 / 3.35e12 / 0.8, rel=0.15)


def test_a_long_prefill_on_h100_reaches_two_thirds_to_all_but_a_fifth_of_the_peak() -> None:
    kernel = Gemm(8192, 8192, 8192, "bf16", "bf16")
    assert 0.6 < gemm_flops(kernel) / 989e12 / times_of("h100-sxm").seconds(kernel).seconds < 0.85


def test_weight_only_formats_decode_faster_and_prefill_alike() -> None:
    times = times_of("h100-sxm")
    decode = [times.seconds(Gemm(1, 28672, 8192, weights, "bf16")).seconds for weights in ("bf16", "int8", "int4")]
    prefill = [times.seconds(Gemm(8192, 28672, 8192, weights, "bf16")).seconds for weights in ("bf16", "int4")]
    assert decode[0] > 1.7 * decode[1] > 2.5 * decode[2]
    assert prefill[1] == pytest.approx(prefill[0], rel=0.05)


def test_published_fp8_matmuls_of_deepgemm_on_h800_are_met_within_twice_and_30_percent_in_the_middle() -> None:
    times = times_of("h800", "sglang")
    ratios: list[float] = []
    for row in PUBLISHED["gemm"]:
        measured_s = 2.0 * row["m"] * row["n"] * row["k"] / row["tflops"] / 1e12
        kernel = Gemm(row["m"], row["n"], row["k"], "fp8", "fp8", blockwise=True)
        ratios.append(times.seconds(kernel).seconds / measured_s)
    assert len(ratios) == 24
    assert min(ratios) > 0.5 and max(ratios) < 2.0
    assert median(abs(ratio - 1) for ratio in ratios) < 0.30
