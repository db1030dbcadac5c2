"""Profiles: what ships is whole and within bounds, and every stand-in is reported."""

from __future__ import annotations

import pytest

from shardwright.tools.calibration.chip import ASSUMED_MULTIPROCESSORS, chip_assumptions, chip_of
from shardwright.tools.calibration.forms.attention import DecodeConstants, PrefillConstants
from shardwright.tools.calibration.forms.collective import CollectiveConstants
from shardwright.tools.calibration.forms.constant import ElementwiseConstants, read_constants
from shardwright.tools.calibration.forms.exchange import ExchangeConstants
from shardwright.tools.calibration.forms.gemm import GemmConstants, GroupedGemmConstants
from shardwright.tools.calibration.forms.mla import MlaDecodeConstants, MlaPrefillConstants
from shardwright.tools.calibration.profile import MEASURED, Origin, profile_of
from shardwright.tools.calibration.profile_file import KernelKind, read_profile_file, relatives_of, shipped_profiles
from shardwright.tools.catalog.accelerators import Accelerator, DensePeakTFLOPS
from shardwright.tools.catalog.hardware import all_accelerators, find_accelerator
from shardwright.tools.errors import InputError, MissingFieldError

from .chips import profile_named

KINDS: dict[KernelKind, type] = {
    "gemm": GemmConstants,
    "attention_prefill": PrefillConstants,
    "attention_decode": DecodeConstants,
    "mla_prefill": MlaPrefillConstants,
    "mla_decode": MlaDecodeConstants,
    "grouped_gemm": GroupedGemmConstants,
    "elementwise": ElementwiseConstants,
    "collective": CollectiveConstants,
    "exchange": ExchangeConstants,
}
EVERYWHERE: tuple[tuple[KernelKind, tuple[str, ...]], ...] = (
    ("gemm", ("bf16", "fp16", "fp32", "fp8", "fp8_block", "nvfp4", "mxfp4", "int8", "int4_wo", "int8_wo", "mxfp4_wo")),
    ("grouped_gemm", ("bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int4_wo", "mxfp4_wo")),
    ("attention_prefill", ("bf16", "fp16", "fp8", "int8")),
    ("attention_decode", ("bf16", "fp16", "fp8", "int8")),
    ("mla_prefill", ("bf16", "fp8")),
    ("mla_decode", ("bf16", "fp8")),
    ("elementwise", ("norm", "activation", "rope", "add", "copy", "routing")),
    ("collective", ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "network")),
    ("exchange", ("dispatch", "combine", "dispatch_low_latency", "combine_low_latency", "dispatch_network")),
)


@pytest.mark.parametrize("name", shipped_profiles())
def test_what_ships_is_read_by_the_forms_and_says_where_it_comes_from(name: str) -> None:
    file = read_profile_file(name)
    assert file is not None and file.accelerator == name and (file.entries or file.carry_checks)
    for entry in file.entries:
        read_constants(KINDS[entry.kernel], entry.constants)
        assert entry.source and entry.licence and (entry.rows > 0 or entry.note)
    keys = [
        (entry.kernel, entry.variant, entry.framework, entry.version, entry.ranks, entry.nodes)
        for entry in file.entries
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("accelerator", [accelerator.id for accelerator in all_accelerators()])
def test_every_accelerator_of_the_catalogue_has_constants_for_every_kernel(accelerator: str) -> None:
    profile = profile_named(accelerator, "vllm")
    for kernel, variants in EVERYWHERE:
        for variant in variants:
            choice = profile.choose(kernel, variant)
            assert choice.accelerator == accelerator or choice.origin.kind == "carried"


def test_a_table_of_the_same_chip_format_and_stack_is_exact() -> None:
    choice = profile_named("h100-sxm", "trtllm").choose("gemm", "bf16")
    assert choice.origin == MEASURED and choice.entry.framework == "trtllm" and choice.accelerator == "h100-sxm"


def test_another_stack_of_the_same_chip_stands_in_before_another_chip() -> None:
    choice = profile_named("h100-sxm", "sglang").choose("gemm", "bf16")
    assert choice.accelerator == "h100-sxm" and choice.entry.framework != "sglang"


def test_a_format_that_was_not_measured_takes_its_nearest_and_says_so() -> None:
    choice = profile_named("b200-sxm", "vllm").choose("gemm", "mxfp4")
    assert choice.entry.variant == "nvfp4" and choice.origin == Origin("carried", "another format on this card")


def test_a_carry_over_says_from_which_card() -> None:
    choice = profile_named("h100-pcie", "vllm").choose("gemm", "bf16")
    assert choice.origin == Origin("carried", "h100-sxm")


def test_amd_takes_the_medians_over_what_was_measured() -> None:
    assert profile_named("mi300x", "vllm").choose("gemm", "bf16").accelerator == "pooled"


@pytest.mark.parametrize(("card", "share"), [("l40s", 1.0), ("l4", 1.0), ("rtx-6000-ada", 1.0), ("rtx-4090", 0.0)])
def test_a_card_of_fewer_flops_a_watt_loses_less_at_its_power_limit_than_the_one_timed(card: str, share: float) -> None:
    def lost(name: str) -> float:
        return profile_of(find_accelerator(name), "vllm").choose("gemm", "bf16").entry.constants["sustained_loss"]

    assert lost(card) == pytest.approx(share * lost("l40s"), abs=0.002)


def test_relatives_are_named_once_and_never_the_part_itself() -> None:
    for accelerator in all_accelerators():
        relatives = relatives_of(accelerator)
        assert accelerator.id not in relatives and len(relatives) == len(set(relatives))


def test_a_part_of_ones_own_goes_by_its_architecture() -> None:
    custom = Accelerator(
        id="h900", architecture="Hopper", memory_bandwidth_gb_s=4000, memory_gb_marketing=96,
        dense_peak_tflops=DensePeakTFLOPS(bf16=900),
    )  # fmt: skip
    assert profile_of(custom, "vllm").choose("gemm", "bf16").accelerator == "h100-sxm"
    assert chip_of(custom).multiprocessors == ASSUMED_MULTIPROCESSORS and len(chip_assumptions(custom)) == 1
    assert chip_assumptions(find_accelerator("h100-sxm")) == ()


def test_what_nobody_has_is_refused_by_name() -> None:
    nameless = Accelerator(id="../etc", dense_peak_tflops=DensePeakTFLOPS(bf16=1.0))
    assert profile_of(nameless, None).choose("gemm", "bf16").accelerator == "pooled"
    with pytest.raises(InputError, match="gemm in int3"):
        profile_named("h100-sxm").choose("gemm", "int3")
    custom = Accelerator(
        id="x", memory_bandwidth_gb_s=100, memory_gb_marketing=8, dense_peak_tflops=DensePeakTFLOPS(fp8=1.0)
    )
    with pytest.raises(MissingFieldError, match=r"dense_peak_tflops\.bf16"):
        chip_of(custom).peak("bf16")


def test_constants_out_of_their_bounds_or_of_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="launch_us"):
        read_constants(GemmConstants, {"launch_us": -1.0})
    with pytest.raises(InputError, match="has no constant 'speed'"):
        read_constants(GemmConstants, {"speed": 1.0})


def test_multiprocessors_and_l2_are_known_of_every_nvidia_and_amd_part_or_said_to_be_unpublished() -> None:
    for accelerator in all_accelerators():
        known = accelerator.multiprocessors is not None and accelerator.l2_bytes is not None
        if accelerator.vendor in ("NVIDIA", "AMD") and not known:
            assert "Multiprocessors and L2 are not published" in (accelerator.notes or ""), accelerator.id


def test_blackwell_takes_the_fastest_stack_for_a_matmul_and_hopper_its_own() -> None:
    blackwell, hopper = (profile_named(name, "sglang") for name in ("b200-sxm", "h100-sxm"))
    stacks = [choice.entry.framework for choice in blackwell.alternatives("gemm", "fp8_block")]
    assert stacks[0] == "sglang" and "trtllm" in stacks
    assert [choice.entry.framework for choice in hopper.alternatives("gemm", "fp8_block")] == ["sglang"]


def test_a_workstation_part_takes_after_parts_with_memory_like_its_own() -> None:
    relatives = relatives_of(find_accelerator("rtx-pro-6000-blackwell-server"))
    assert relatives.index("l40s") < relatives.index("b200-sxm")
