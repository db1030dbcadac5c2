"""Checks of what every form of kernel time promises; the test of a form calls them with its shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.chip import Chip

Seconds = Callable[[Any, Chip, Any], Any]
# Sums of many floats in another order differ by this much.
ROUNDING = 1e-9


@st.composite
def chips(draw: st.DrawFn) -> Chip:
    """Accelerators from a small card to several generations ahead."""
    peak = draw(st.floats(5e13, 2e16))
    return Chip(
        name="any",
        peak_flops_s={"bf16": peak, "fp16": peak, "fp8": 2 * peak, "nvfp4": 4 * peak, "mxfp8": 2 * peak},
        memory_bytes_s=draw(st.floats(2e11, 4e13)),
        multiprocessors=draw(st.integers(20, 320)),
        l2_bytes=5e7,
    )


def constants_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any set of constants of `kind` inside its bounds."""
    ranges = {field.name: st.floats(field.metadata["low"], field.metadata["high"]) for field in fields(kind)}
    return st.builds(kind, **ranges)


def assert_above_roof(seconds: float, chip: Chip, flops: float, peak: float, moved_bytes: float) -> None:
    """No kernel is faster than the datasheet."""
    assert seconds >= flops / peak * (1 - ROUNDING)
    assert seconds >= moved_bytes / chip.memory_bytes_s * (1 - ROUNDING)


def assert_faster_chip_is_no_slower(form: Seconds, constants: Any, chip: Chip, kernel: Any, factor: float) -> None:
    """More FLOP/s or more bandwidth never costs time."""
    time = form(constants, chip, kernel)
    quicker = {name: peak * factor for name, peak in chip.peak_flops_s.items()}
    assert form(constants, replace(chip, peak_flops_s=quicker), kernel) <= time * (1 + ROUNDING)
    assert form(constants, replace(chip, memory_bytes_s=chip.memory_bytes_s * factor), kernel) <= time * (1 + ROUNDING)


def assert_grows(form: Seconds, constants: Any, chip: Chip, kernel: Any, more: dict[str, Any]) -> None:
    """More work never takes less time."""
    assert form(constants, chip, replace(kernel, **more)) >= form(constants, chip, kernel) * (1 - ROUNDING), more


def assert_same_for_arrays(form: Seconds, constants: Any, chip: Chip, kernels: list[Any], names: list[str]) -> None:
    """Fitting and estimating see the same numbers: an array of shapes has the times of each."""
    arrays = {name: np.array([float(getattr(kernel, name)) for kernel in kernels]) for name in names}
    together = form(constants, chip, replace(kernels[0], **arrays))
    alone = [form(constants, chip, kernel) for kernel in kernels]
    assert list(together) == pytest.approx(alone, rel=1e-12)
