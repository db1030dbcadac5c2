"""A custom calibration: laid over what ships where it was measured, and refused where it is broken."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.calibration.custom import CustomCalibration, parse_calibration, read_calibration
from shardwright.tools.calibration.engine_profile import EngineEntry, all_entries
from shardwright.tools.calibration.profile import profile_of
from shardwright.tools.calibration.profile_file import KernelEntry, ProfileFile
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError

CASES = json.loads((Path(__file__).parents[1] / "cases" / "calibrations_refused.json").read_text(encoding="utf-8"))
H100, H200, L40S = (find_accelerator(name) for name in ("h100-sxm", "h200-sxm", "l40s"))


def kernel_entry(variant: str = "bf16") -> KernelEntry:
    """A matmul that reaches half of everything."""
    return KernelEntry(
        kernel="gemm", variant=variant, framework="torch", constants={"compute_share": 0.5, "memory_share": 0.5},
        rows=40, source="own", licence="own", date=date(2026, 11, 21),
    )  # fmt: skip


def own_kernels(accelerator: str = "h100-sxm") -> CustomCalibration:
    """One kernel of one accelerator."""
    return CustomCalibration(name="mine", kernels=(ProfileFile(accelerator=accelerator, entries=(kernel_entry(),)),))


def engine_entry(engine: str, class_: str = "hopper", generation: str = "v1") -> EngineEntry:
    """A shipped entry under another name."""
    changes = {"engine": engine, "accelerator_class": class_, "generation": generation}
    return all_entries()[0].model_copy(update=changes)


def test_what_was_measured_replaces_what_ships_for_the_same_and_nothing_else() -> None:
    shipped = profile_of(H100, "vllm")
    laid = own_kernels().laid_over(shipped)
    assert laid.choose("gemm", "bf16").entry == kernel_entry()
    for kernel, variant in (("gemm", "fp8"), ("attention_decode", "bf16"), ("grouped_gemm", "bf16")):
        assert laid.choose(kernel, variant).entry == shipped.choose(kernel, variant).entry  # type: ignore[arg-type] - literals drawn from a list


def test_an_accelerator_that_was_not_measured_keeps_what_ships() -> None:
    shipped = profile_of(L40S, "vllm")
    assert own_kernels("h100-sxm").laid_over(shipped) == shipped
    assert own_kernels().covers("vllm", None, L40S) == ()


def test_an_engine_is_taken_where_it_was_measured() -> None:
    custom = CustomCalibration(name="mine", engines=(engine_entry("sglang", generation="any"),))
    assert custom.engine("SGLang", "0.5", H100) is not None
    assert custom.engine("SGLang", "0.5", H200) is not None
    assert custom.engine("vllm", "0.11", H100) is None
    assert custom.engine("sglang", "0.5", L40S) is None


def test_an_engine_that_nobody_names_is_the_measured_one_where_there_is_one() -> None:
    single = CustomCalibration(name="mine", engines=(engine_entry("sglang", generation="any"),))
    both = CustomCalibration(name="mine", engines=(engine_entry("sglang", generation="any"), engine_entry("vllm")))
    chosen = single.engine(None, None, H100)
    assert chosen is not None
    assert chosen.entry.engine == "sglang"
    assert both.engine(None, None, H100) is None


def test_two_calibrations_are_told_apart() -> None:
    assert own_kernels().digest == own_kernels().digest
    assert own_kernels("h100-sxm").digest != own_kernels("l40s").digest


def test_a_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(own_kernels().model_dump_json(), encoding="utf-8")
    assert read_calibration(path) == own_kernels()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_broken_file_is_refused_in_one_line(case: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        parse_calibration(case["text"], "own.json")
    message = str(refused.value)
    assert message.startswith("own.json")
    assert case["says"] in message
    assert message.isprintable()


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes(b" " * (5 << 20))
    with pytest.raises(InputError, match="larger than 4 MiB"):
        read_calibration(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=10,
)


@given(st.fixed_dictionaries({"name": JSON}, optional={"kernels": JSON, "engines": JSON, "made_from": JSON}))
def test_no_json_does_anything_but_be_read_or_refused(document: dict[str, object]) -> None:
    try:
        parse_calibration(json.dumps(document), "own.json")
    except InputError as error:
        assert "\n" not in str(error)
