"""The error band of a comparison: that of a ratio where two layouts share all else, else that of an estimate."""

from __future__ import annotations

from shardwright import compare, plan
from shardwright.tools.calibration.error_ranges import Cell, all_ranges, all_ratios, range_of
from shardwright.tools.comparison.result import Comparison
from shardwright.tools.plan.document import Plan


def on(degrees: str, **asked: str) -> Plan:
    words = f"Llama-3.1-8B on 4 H100, {degrees}, 1024 in 256 out, 64 concurrent users"
    found = plan(words, engine="vllm", **asked).plan  # type: ignore[arg-type]
    assert found is not None
    return found


def told(found: Comparison) -> str:
    return next(line for line in found.verdict if line.startswith("Per token the two differ by "))


def test_two_layouts_are_held_against_the_band_of_their_ratio() -> None:
    found = told(compare(on("TP1 DP4"), on("TP4")))
    ratio = range_of(Cell("tpot", "loaded", "dense", "vllm"), all_ratios())
    assert ratio is not None
    assert f"the error band of the ratio of two layouts ({100 * (ratio.high - 1):.3g}%; {ratio.rows:,} pairs" in found


def test_two_number_formats_are_held_against_the_band_of_an_estimate() -> None:
    assert "the error band of the estimates (" in told(compare(on("TP4"), on("TP4", precision="fp8")))


def test_a_ratio_of_tpot_is_known_better_than_the_estimates_that_it_is_of() -> None:
    for ratio in all_ratios():
        one = range_of(ratio.cell, all_ranges())
        assert one is not None
        if ratio.metric == "tpot":
            assert ratio.high < one.high and ratio.low > one.low
