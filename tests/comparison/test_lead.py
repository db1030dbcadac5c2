"""A winner is named only where its lead exceeds the error of such figures; else every output calls it undecided."""

from __future__ import annotations

from itertools import product

import pytest

from shardwright import compare, plan
from shardwright.agent.chat.turns.compare import told_of
from shardwright.agent.report.compare import render_comparison
from shardwright.tools.calibration.error_ranges import Cell, range_of, shipped_ranges
from shardwright.tools.comparison.changes import SAME_SHARE
from shardwright.tools.comparison.lead import deciding, lead_of
from shardwright.tools.comparison.result import Change, ComparedFigure, Comparison
from shardwright.tools.comparison.words import concluded
from shardwright.tools.plan.document import Objective, Plan
from shardwright.tools.plan.performance import Calibration, RatioBand

from .plans import dense

NAMES = {"latency": "end_to_end_ms", "throughput": "output_tokens_per_s", "cost": "cost_per_million_output_tokens"}
UNTOLD = "no difference can be told"


def with_figure(objective: Objective, ratio: float, bands: tuple[Calibration | None, Calibration | None]) -> Comparison:
    """Two layouts whose deciding figures are `ratio` apart, under calibrations that state only error bands."""
    comparison = compare(dense(objective=objective), dense("TP4 DP1", objective=objective))
    more_is_better = objective == "throughput"
    better = "same" if abs(ratio - 1) <= SAME_SHARE else "b" if (ratio > 1) == more_is_better else "a"

    def stated(figure: ComparedFigure) -> ComparedFigure:
        return figure.model_copy(update={"a": 10.0, "b": 10.0 * ratio, "ratio": ratio, "better": better})

    figures = tuple(stated(figure) if figure.name == NAMES[objective] else figure for figure in comparison.figures)
    sides = {
        name: side.model_copy(update={"calibration": band})
        for (name, side), band in zip((("a", comparison.a), ("b", comparison.b)), bands, strict=True)
    }
    return concluded(comparison.model_copy(update={**sides, "figures": figures}))


def band(pct: float | None, ratio_pct: float | None = None, hardware_pct: float | None = None) -> Calibration:
    ratio, hardware = (
        None if band_pct is None else RatioBand(pct=band_pct, source="some pairs")
        for band_pct in (ratio_pct, hardware_pct)
    )
    return Calibration(
        profile="one", error_band_pct=pct, throughput_band_pct=pct, ratio_band=ratio, throughput_ratio_band=ratio,
        hardware_ratio_band=hardware, throughput_hardware_ratio_band=hardware,
    )  # fmt: skip


@pytest.mark.parametrize("objective", NAMES)
@pytest.mark.parametrize(
    ("differing", "hardware_pct", "of", "error_pct"),
    [
        ((), 20.0, "ratio", 30.0),
        (("accelerator",), 20.0, "hardware", 20.0),
        (("accelerator", "nodes", "GPUs per node"), 20.0, "hardware", 20.0),
        (("nodes",), 20.0, "ratio", 30.0),
        # Where no such ratio was measured, or more differs, the error of each estimate counts.
        (("accelerator",), None, "estimate", 81.0),
        (("accelerator", "precision weights"), 20.0, "estimate", 81.0),
        (("accelerator", "engine"), 20.0, "estimate", 81.0),
        (("accelerator", "workload input_tokens"), 20.0, "estimate", 81.0),
        (("model",), 20.0, "estimate", 81.0),
    ],
)
def test_deployments_are_held_against_the_error_of_what_they_differ_in(
    objective: Objective, differing: tuple[str, ...], hardware_pct: float | None, of: str, error_pct: float
) -> None:
    known = band(81.0, 30.0, hardware_pct)
    comparison = with_figure(objective, 1.25, (known, known))
    question = tuple(Change(what=field, a="one", b="another") for field in differing)
    figure = deciding(comparison)
    assert figure is not None
    lead = lead_of(comparison.model_copy(update={"question": question}), figure)
    assert lead is not None and (lead.of, lead.error_pct) == (of, error_pct)


@pytest.mark.parametrize("objective", NAMES)
@pytest.mark.parametrize(
    ("ratio", "bands", "is_told"),
    [
        (1.25, (band(81.0), band(15.0)), False),
        (0.5, (band(81.0), band(81.0)), True),
        (2.0, (band(81.0), band(81.0)), True),
        (0.8, (band(15.5), band(None)), True),
        (0.9, (band(15.5), band(None)), False),
        (1.25, (band(None), band(None)), True),
        (1.25, (None, None), True),
        # Layouts of one deployment share most of their error, so the error of their ratio counts.
        (1.25, (band(81.0, 20.0), band(81.0, 15.0)), True),
        (1.19, (band(10.0, 15.0), band(10.0, 20.0)), False),
        (1.001, (band(81.0), band(81.0)), None),
    ],
)
def test_a_winner_is_named_only_where_its_lead_is_outside_of_the_error(
    objective: Objective, ratio: float, bands: tuple[Calibration | None, Calibration | None], is_told: bool | None
) -> None:
    comparison = with_figure(objective, ratio, bands)
    ahead = "b" if (ratio > 1) == (objective == "throughput") else "a"
    assert comparison.better == {True: ahead, False: "undecided", None: "same"}[is_told]
    assert (comparison.lead is None) == (is_told is None)
    assert any(UNTOLD in sentence for sentence in comparison.verdict) == (is_told is False)
    assert any(" is better" in sentence for sentence in comparison.verdict) == (is_told is True)


@pytest.mark.parametrize(("objective", "is_told"), [*product(NAMES, (True, False))])
def test_the_first_sentence_in_words_and_data_is_the_verdict_on_both_whatever_prints_it(
    objective: Objective, *, is_told: bool
) -> None:
    pct = 1.0 if is_told else 50.0
    comparison = with_figure(objective, 1.25, (band(pct), band(pct)))
    first = comparison.verdict[0]
    assert first.startswith(f"For {objective}, which both were made for, ")
    assert (UNTOLD in first) is not is_told
    assert f"±{pct:.3g}%" in first and "25% ahead" in first
    short = render_comparison(comparison, width=4000).partition("In short")[2].strip()
    assert short.removeprefix("• ").startswith(first)
    assert told_of(comparison)["verdict"] == list(comparison.verdict)


def test_how_far_figures_are_off_is_said_to_be_unknown_where_nothing_was_measured() -> None:
    comparison = with_figure("latency", 1.25, (band(None), band(None)))
    assert "not measured" in comparison.verdict[0] and comparison.lead is not None and comparison.lead.error_pct is None


def test_one_deployment_at_two_prices_differs_by_what_is_certain() -> None:
    deployment = dense(objective="cost")
    comparison = compare(deployment, deployment, usd_per_gpu_hour=2.0, usd_per_gpu_hour_b=2.1)
    assert comparison.better == "a"
    assert comparison.lead is not None and comparison.lead.error_pct == 0.0
    assert any("At their prices B has 1.05× the cost of a token" in sentence for sentence in comparison.verdict)
    assert any(
        "A at the stated price (2 USD" in sentence and "B at the stated price (2.1 USD" in sentence
        for sentence in comparison.verdict
    )


def on(degrees: str, **asked: str) -> Plan:
    words = f"Llama-3.1-8B on 4 H100, {degrees}, 1024 in 256 out, 64 concurrent users"
    planned = plan(words, engine="vllm", **asked).plan  # type: ignore[arg-type]
    assert planned is not None
    return planned


@pytest.mark.parametrize(("objective", "metric"), [("latency", "tpot"), ("throughput", "throughput")])
def test_two_layouts_are_held_against_the_measured_error_of_their_ratio(objective: str, metric: str) -> None:
    lead = compare(on("TP1 DP4", objective=objective), on("TP4", objective=objective)).lead
    ratio = range_of(Cell(metric, "loaded", "dense", "vllm"), shipped_ranges().ratios)  # type: ignore[arg-type]
    assert lead is not None and ratio is not None
    assert (lead.of, lead.error_pct) == ("ratio", pytest.approx(100 * (ratio.high - 1)))
    assert f"{ratio.rows:,} pairs" in str(lead.source)


def test_two_number_formats_are_held_against_the_error_of_an_estimate() -> None:
    lead = compare(on("TP4"), on("TP4", precision="fp8")).lead
    assert lead is not None and lead.of == "estimate"


def test_a_ratio_of_tpot_is_known_better_than_the_estimates_that_it_is_of() -> None:
    for ratio in shipped_ranges().ratios:
        estimate_range = range_of(ratio.cell, shipped_ranges().ranges)
        assert estimate_range is not None
        if ratio.metric == "tpot":
            assert ratio.high < estimate_range.high and ratio.low > estimate_range.low
