"""Times of kernels that only move memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.calibration.kernel_times import KernelTimes
from shardwright.tools.calibration.shapes import Elementwise

from .chips import accelerators, faster, speedups, times_of

kinds = st.sampled_from(("norm", "activation", "rope", "add", "copy", "routing"))
sizes = st.floats(0.0, 1e12)


@given(accelerators, kinds, sizes)
def test_moving_bytes_takes_at_least_the_bandwidth_and_the_launch(accelerator: str, kind: str, size: float) -> None:
    times = times_of(accelerator)
    taken = times.seconds(Elementwise(size, kind))  # type: ignore[arg-type]  # a literal drawn from a list
    assert taken.seconds >= max(size / times.chip.memory_bytes_s, taken.fixed_s) > 0
    assert taken.bound == "memory"


@given(accelerators, kinds, sizes, st.floats(1.0, 10.0), speedups)
def test_more_bytes_take_longer_and_more_bandwidth_never_does(
    accelerator: str, kind: str, size: float, more: float, memory: float
) -> None:
    times = times_of(accelerator)
    kernel = Elementwise(size, kind)  # type: ignore[arg-type]  # a literal drawn from a list
    larger = Elementwise(size * more, kind)  # type: ignore[arg-type]  # a literal drawn from a list
    better = KernelTimes(faster(times.chip, memory=memory), times.profile)
    assert times.seconds(larger).seconds >= times.seconds(kernel).seconds * (1 - 1e-9)
    assert better.seconds(kernel).seconds <= times.seconds(kernel).seconds * (1 + 1e-9)


def test_a_fused_norm_of_a_decode_step_costs_two_to_three_microseconds() -> None:
    seconds = times_of("h100-sxm").seconds(Elementwise(4 * 16 * 8192 * 2, "norm")).seconds
    assert seconds == pytest.approx(2.4e-6, rel=0.3)
