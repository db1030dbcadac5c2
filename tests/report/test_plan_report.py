"""The report of a plan has what a decision needs, in the order of importance."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan

from . import samples


def order(text: str, *phrases: str) -> bool:
    """Whether all phrases occur in `text`, in this order."""
    places = [text.find(phrase) for phrase in phrases]
    return -1 not in places and places == sorted(places)


def test_the_report_holds_every_section_in_reading_order() -> None:
    text = render_plan(samples.result(), width=100)
    assert order(
        text,
        "Your strategy: TP 3",
        "Valid plan: tiny on 8 nodes × 8 h100-sxm",
        "Limits: all hold",
        "Layout",
        "Where the time goes",
        "Where each GPU's memory goes",
        "Throughput and cost",
        "Why this one",
        "Runner-ups",
        "What was read, and what was assumed",
        "How sure this is",
        "Next",
    )


def test_the_short_report_keeps_what_decides_and_says_how_to_see_the_rest() -> None:
    full, short = (render_plan(samples.result(), width=140, is_whole=is_whole) for is_whole in (True, False))
    assert order(
        short, "Your strategy: TP 3", "Valid plan: tiny", "Limits: all hold", "Layout", "Where the time goes",
        "Where each GPU's memory goes", "Why this one", "Runner-ups", "latency was asked for", "How sure this is",
        "Next", "--full adds the largest costs",
    )  # fmt: skip
    assert set(short.splitlines()[:14]) <= set(full.splitlines())
    left_out = ["largest steps", "One request alone", "Usable per GPU"]
    assert [(phrase in full, phrase in short) for phrase in left_out] == [(True, False)] * len(left_out)


def test_what_parts_and_costs_are_of_is_said_where_there_are_stages() -> None:
    result = samples.result()
    estimate = samples.estimate(samples.device("n0.g0", 17.64))
    assert "the bubble is its wait" not in render_plan(result, width=140)
    prefill = estimate.latency.prefill.model_copy(update={"bubble_ms": 40.0})
    latency = estimate.latency.model_copy(update={"prefill": prefill})
    piped = result.model_copy(update={"estimate": estimate.model_copy(update={"latency": latency})})
    full, short = (" ".join(render_plan(piped, width=140, is_whole=is_whole).split()) for is_whole in (True, False))
    parts = "the parts are those of one stage on average, and the bubble is its wait for the others"
    assert parts in full and parts in short
    assert "the largest costs are added up over all stages" in full and "largest costs are added up" not in short


@pytest.mark.parametrize(
    "figure",
    [
        "TTFT 231 ms", "TPOT 9.81 ms", "17.6 GB", "2 GB", "500 MB", "54.9 GB", "747 tokens/s", "5.35 GPU-seconds",
        "12% slower end to end", "327,680 bytes per token",
        "runs at most 61 such requests at once", "900 GB/s NVLink read as both directions", "latency was asked for",
        "ignore the memory rule", "TTFT 231 ms (90% range 150–360 ms)",
        "747 tokens/s (90% range 501–1,104 tokens/s)",
        "vocab_parallel would save 3.7 GB",
        "TTFT 231 ms of at most 500 ms", "stage 0 to stage 2", "drop the edge", "stage 1: layers 4–7 on n0.g2–3",
    ],
)  # fmt: skip
def test_the_report_shows(figure: str) -> None:
    assert figure in " ".join(render_plan(samples.result(), width=140).split())


def test_only_the_five_largest_steps_are_shown_largest_first() -> None:
    text = render_plan(samples.result(), width=100)
    assert order(text, "step-7", "step-6", "step-5", "step-4", "step-3")
    assert "step-2" not in text


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_report_fits_its_width(width: int) -> None:
    for result in (samples.result(), samples.infeasible()):
        lines = render_plan(result, width=width).split("\n")
        assert max(cell_len(line) for line in lines) <= width
        assert all(line == line.rstrip() for line in lines)


def test_gpus_with_equal_figures_are_one_line_and_a_shortfall_is_named() -> None:
    devices = [samples.device(f"n0.g{index}", 17.64) for index in range(4)] + [samples.device("n1.g0", 90)]
    result = samples.result().model_copy(update={"estimate": samples.estimate(*devices)})
    text = render_plan(result, width=120)
    assert "n0.g0–3 (4)" in text
    assert "short by 17.5 GB" in text


def test_an_infeasible_request_is_told_what_binds_and_what_would_do() -> None:
    text = render_plan(samples.infeasible(), width=120)
    assert order(text, "Infeasible: the weights alone take 812 GB", "ME001", "788 GB", "48 × rtx-4090 in 6 nodes")
    assert "Closest: one device" in text
    assert "Next" not in text
    assert "Why this one" not in text


def test_a_limit_that_does_not_hold_is_said_in_words() -> None:
    result = samples.result()
    assert result.report is not None
    missed = result.model_copy(update={"report": result.report.model_copy(update={"limits_met": False})})
    assert "Limits: NOT all hold" in render_plan(missed, width=100)


@pytest.mark.parametrize(
    ("request_", "lead"),
    [
        ("Llama-3.1-8B with TP2 on two L4, 1k in, 64 out, 2 users", "As stated: TTFT"),
        ("Llama-3.1-8B with TP2 on two L4, 1k in, 64 out, 2 users, TPOT below 1 ms", "As stated: TTFT"),
        ("Llama-3.1-8B with TP3 on three L4, 1k in, 64 out, 2 users", "As stated, if it ran: TTFT"),
    ],
    ids=["valid", "misses a limit", "not valid"],
)
def test_figures_of_what_cannot_run_say_so(request_: str, lead: str) -> None:
    text = " ".join(render_plan(plan(request_), width=140).split())
    assert lead in text


def test_the_next_commands_quote_the_file_that_was_written() -> None:
    text = render_plan(samples.result(), width=100, saved_as=Path("my plan.json"))
    assert "shardwright validate 'my plan.json'" in text


def test_figures_of_cards_that_nothing_was_measured_on_are_said_to_have_no_range() -> None:
    measured, other = (
        render_plan(plan(f"Llama-3.2-1B on one {card}, 512 in, 32 out"), width=140).split("Layout")[0]
        for card in ("H100", "Gaudi 3")
    )
    assert "No range is known" in other and "No range is known" not in measured
