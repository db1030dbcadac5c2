"""The routed experts: the promises of a form, DeepGEMM's published figures, and the skew of loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.forms.constant import read_constants
from shardwright.tools.calibration.forms.exchange import skewed_load
from shardwright.tools.calibration.forms.gemm import (
    GroupedGemmConstants,
    grouped_gemm_flops,
    grouped_gemm_parts,
    grouped_gemm_s,
    grouped_gemm_weight_bytes,
    grouped_matmuls_s,
)
from shardwright.tools.calibration.shapes import GroupedGemm
from shardwright.tools.catalog.hardware import find_accelerator

from .chips import profile_named
from .form_properties import (
    assert_above_roof,
    assert_faster_chip_is_no_slower,
    assert_grows,
    assert_same_for_arrays,
    chips,
    constants_of,
)

PUBLISHED = json.loads((Path(__file__).parent.parent / "cases/calibration/grouped_matmuls_published.json").read_text())
KINDS = constants_of(GroupedGemmConstants)


@st.composite
def shapes(draw: st.DrawFn) -> GroupedGemm:
    experts = draw(st.integers(1, 512))
    weights, dtype = draw(st.sampled_from([("bf16", "bf16"), ("fp8", "fp8"), ("nvfp4", "nvfp4"), ("mxfp4", "bf16")]))
    return GroupedGemm(
        tokens=draw(st.integers(1, 65536)),
        copies=draw(st.floats(0.1, 65536)),
        touched=draw(st.floats(0.1, experts)),
        experts=experts,
        hidden=draw(st.integers(64, 16384)),
        inner=draw(st.floats(8, 16384)),
        gated=draw(st.booleans()),
        weights=weights,
        dtype=dtype,
    )


@given(constants=KINDS, chip=chips(), kernel=shapes())
def test_experts_are_never_under_the_roofline(constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm) -> None:
    time = grouped_gemm_s(constants, chip, kernel)
    flops, read = grouped_gemm_flops(kernel), grouped_gemm_weight_bytes(kernel)
    assert_above_roof(time, chip, flops, chip.peak(kernel.dtype), read)


@given(constants=KINDS, chip=chips(), kernel=shapes(), factor=st.floats(1.0, 10.0))
def test_experts_are_no_slower_on_a_faster_chip(
    constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm, factor: float
) -> None:
    assert_faster_chip_is_no_slower(grouped_gemm_s, constants, chip, kernel, factor)


@given(constants=KINDS, chip=chips(), kernel=shapes(), more=st.floats(0.1, 500))
def test_experts_grow_with_their_work(
    constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm, more: float
) -> None:
    for name in ("tokens", "copies", "touched", "hidden", "inner"):
        assert_grows(grouped_gemm_s, constants, chip, kernel, {name: getattr(kernel, name) + more})


@given(chip=chips(), kernels=st.lists(shapes(), min_size=2))
def test_an_array_of_shapes_has_the_times_of_each(chip: Chip, kernels: list[GroupedGemm]) -> None:
    alike = [replace(kernel, weights="fp8", dtype="fp8", gated=True) for kernel in kernels]
    names = ["tokens", "copies", "touched", "experts", "hidden", "inner"]
    assert_same_for_arrays(grouped_gemm_s, GroupedGemmConstants(), chip, alike, names)


@given(constants=KINDS, chip=chips(), kernel=shapes())
def test_the_parts_of_experts_are_their_time(constants: GroupedGemmConstants, chip: Chip, kernel: GroupedGemm) -> None:
    fixed_s, work_s = grouped_gemm_parts(constants, chip, kernel)
    assert fixed_s == pytest.approx(constants.launch_us * 1e-6)
    assert fixed_s + work_s == grouped_gemm_s(constants, chip, kernel)


@pytest.mark.parametrize("case", PUBLISHED["cases"], ids=lambda case: case["name"])
def test_grouped_matmuls_take_what_deepgemm_publishes(case: dict[str, Any]) -> None:
    """The README of deepseek-ai/DeepGEMM gives TFLOP/s of the two matmuls of DeepSeek-V3's experts on H800."""
    profile = profile_named("h800", "vllm")
    constants = read_constants(GroupedGemmConstants, profile.choose("grouped_gemm", "fp8_block").entry.constants)
    groups, rows = case["groups"], case["rows_per_group"]
    kernel = GroupedGemm(groups * rows, groups * rows, groups, 256, 7168, 2048, True, "fp8", "fp8", blockwise=True)
    up_flops, down_flops = 2.0 * groups * rows * 4096 * 7168, 2.0 * groups * rows * 7168 * 2048
    published_s = up_flops / (case["up_tflops"] * 1e12) + down_flops / (case["down_tflops"] * 1e12)
    time = grouped_matmuls_s(constants, chip_of(find_accelerator("H800")), kernel)
    assert time == pytest.approx(published_s, rel=case["tolerance"])


def test_touching_more_experts_costs_their_weights_where_memory_binds() -> None:
    chip = chip_of(find_accelerator("H100"))
    few = GroupedGemm(8, 64, 50, 128, 2048, 768, True, "bf16", "bf16")
    more_s = grouped_gemm_s(GroupedGemmConstants(), chip, replace(few, touched=100))
    less_s = grouped_gemm_s(GroupedGemmConstants(), chip, few)
    extra_bytes = 50 * 3 * 2048 * 768 * 2
    assert more_s - less_s == pytest.approx(extra_bytes / chip.memory_bytes_s / 0.9, rel=0.1)


@given(ranks=st.integers(1, 1024), more=st.integers(1, 8))
def test_the_busiest_of_more_ranks_has_no_less_above_its_share(ranks: int, more: int) -> None:
    assert 1.0 <= skewed_load(ranks) <= skewed_load(ranks * more) < 2.0


def test_one_rank_has_its_share() -> None:
    assert skewed_load(1) == 1.0
