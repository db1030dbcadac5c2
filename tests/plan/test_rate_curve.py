"""A curve shaped to any peak and mean has both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.plan.rate_curve import shaped


@given(st.floats(1e-3, 1e4), st.floats(1.0, 12.0))
def test_a_shape_has_its_peak_and_its_mean(peak: float, times: float) -> None:
    curve = shaped(peak, peak / times, "said")
    assert curve.peak_per_s == pytest.approx(peak)
    assert curve.mean_per_s == pytest.approx(peak / times, rel=1e-6)
    assert min(step.requests_per_s for step in curve.steps) >= 0.0
    assert curve.assumed is not None
