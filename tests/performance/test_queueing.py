"""The closed form of waits: its limits, and that longer work never shortens it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.performance.service import Prompts, stalled_seconds

SECONDS = st.floats(1e-4, 1e3)


@given(SECONDS, SECONDS, SECONDS)
def test_prompts_stall_a_replica_between_together_and_apart(together: float, more: float, decoding: float) -> None:
    stalled = stalled_seconds(Prompts(together, together, together + more), decoding)
    assert together * (1 - 1e-9) <= stalled <= (together + more) * (1 + 1e-9)


def test_prompts_are_together_where_nothing_decodes_and_apart_where_they_are_rare() -> None:
    prompts = Prompts(1.0, 2.0, 16.0)
    assert stalled_seconds(prompts, 1e-9) == pytest.approx(2.0)
    assert stalled_seconds(prompts, 1e6) == pytest.approx(16.0, rel=1e-4)
    assert stalled_seconds(Prompts(1.0, 2.0, 2.0), 5.0) == 2.0


@given(SECONDS, SECONDS, SECONDS, st.sampled_from([0, 1, 2]), st.floats(1.0, 3.0))
def test_what_takes_longer_stalls_no_less(
    together: float, more: float, decoding: float, which: int, factor: float
) -> None:
    def stalled(*values: float) -> Any:
        return stalled_seconds(Prompts(values[0], values[0], values[1]), values[2])

    before = [together, together + more, decoding]
    after = [value * factor if place == which else value for place, value in enumerate(before)]
    assert stalled(*after) >= stalled(*before) * (1 - 1e-9)


def test_of_arrays_each_element_is_what_it_is_alone() -> None:
    together, apart, decoding = np.array([1.0, 2.0, 3.0]), np.array([1.0, 9.0, 20.0]), np.array([4.0, 1.0, 50.0])
    stalled = stalled_seconds(Prompts(together, together, apart), decoding)
    alone = [
        stalled_seconds(Prompts(a, a, b), d)
        for a, b, d in zip(together.tolist(), apart.tolist(), decoding.tolist(), strict=True)
    ]
    assert stalled == pytest.approx(alone, rel=1e-12)
