"""A day of a plan: each hour holds the limits with the reserve lost, one replica fewer does not."""

from __future__ import annotations

import math
import re
from functools import cache

import pytest
from msgspec.structs import replace

from shardwright.agent.report.over_day import day_lines, day_section
from shardwright.agent.report.text import render
from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.rate_curve import DayAsked, RateCurve
from shardwright.tools.plan.rate_curve_text import curve_of_text
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.day import OverDay
from shardwright.tools.search.day_sizes import MOST_LEVELS, Rented, counts_of, levels_of, one_of_each, with_counts
from shardwright.tools.search.over_day import AtPeak, size_over_day
from shardwright.tools.search.search import base_setting
from shardwright.tools.search.simulated import candidate_at

from .requests import search_request

STEPS = "0-8=2,8-12=30,12-18=18,18-24=0"
HARDWARE = Rented(usual_node=8, is_open=True, usd_per_gpu_hour=2.0)
ONE = PhaseStrategy()
FOUR = Strategy(dp=4, gpu_count=4, prefill=ONE, decode=ONE)
PAIR = PhaseStrategy(tp=2, tp_ffn=2)
TWO = Strategy(dp=2, gpu_count=4, prefill=PAIR, decode=PAIR)


def request(rate: float = 30.0, concurrency: int = 40, nodes: int = 1) -> SearchRequest:
    base = search_request(
        "Llama-3.2-1B", (nodes, 8, "l4"), input_tokens=512, output_tokens=32, concurrency=concurrency,
        request_rate=rate, tpot_ms_max=12.0, ttft_ms_max=200.0, objective="cost",
    )  # fmt: skip
    return replace(base, disaggregated=False)


def chosen(strategy: Strategy = FOUR) -> Candidate:
    return Candidate(strategy=strategy, feasible=True, gpus=strategy.gpu_count, concurrency=40)


@cache
def day(reserve: int = 1, headroom: float = 0.1) -> OverDay:
    asked = DayAsked(curve=curve_of_text(STEPS, "stated"), reserve_replicas=reserve, headroom_share=headroom)
    return size_over_day(request(), AtPeak(chosen(), others=[chosen(TWO)]), asked, HARDWARE)


def holds(rate: float, replicas: int) -> bool:
    wanted = request(rate, max(replicas, math.ceil(rate * 40 / 30)), nodes=2)
    strategy = with_counts(FOUR, (replicas,))
    return candidate_at(wanted, base_setting(wanted), strategy, wanted.workload.concurrency).feasible


def test_each_hour_has_the_fewest_replicas_that_hold_and_the_reserve() -> None:
    steps = day().steps
    assert [(step.begins_h, step.ends_h) for step in steps] == [(0, 8), (8, 12), (12, 18), (18, 24)]
    assert len({step.replicas for step in steps}) >= 3
    for step in steps:
        needed = step.replicas - 1
        rate = step.requests_per_s * 1.1
        assert rate == 0.0 or holds(rate, needed)
        assert needed == 1 or not holds(rate, needed - 1)
    assert steps[-1].ttft_p95_ms is None and all(step.ttft_p95_ms for step in steps[:-1])


def test_hours_and_cost_are_those_of_the_steps() -> None:
    sized = day()
    assert sized.scaled.gpu_hours == sum((step.ends_h - step.begins_h) * step.gpus for step in sized.steps)
    assert sized.at_peak_all_day.gpu_hours == 24 * max(step.gpus for step in sized.steps)
    assert sized.scaled.usd == pytest.approx((2.0 * sized.scaled.billed_gpu_hours,) * 2)
    assert sized.saved_share > 0.0
    assert sized.best_of_each_hour.billed_gpu_hours <= sized.layouts[0].cost.billed_gpu_hours
    assert {"TP2"} < {layout.layout for layout in sized.layouts}


@pytest.mark.parametrize("usual_node", [2, 16])
def test_whole_nodes_are_billed_at_all_hours_where_the_peak_takes_more_than_one(usual_node: int) -> None:
    asked = DayAsked(curve=curve_of_text(STEPS, "stated"), reserve_replicas=1, headroom_share=0.1)
    rented = replace(HARDWARE, usual_node=usual_node)
    sized = size_over_day(request(), AtPeak(chosen(), others=[chosen(TWO)]), asked, rented)
    is_part = max(step.gpus for step in sized.steps) <= usual_node
    assert is_part == (usual_node == 16) and any(step.gpus % 2 for step in sized.steps)
    for step in sized.steps:
        assert step.billed_gpus == (step.gpus if is_part else -(-step.gpus // usual_node) * usual_node)
    assert sized.scaled.billed_gpu_hours == sum(
        (step.ends_h - step.begins_h) * step.billed_gpus for step in sized.steps
    )
    text = " ".join(render([day_section(sized)], width=100).split())
    assert ("can be had by the hour" in text) == is_part and ("billed, whole nodes" in text) != is_part


@cache
def day_of(chosen_: str, *, is_as_good: bool) -> OverDay:
    """The day of one of two layouts; the search knows the other too, equal at the peak if `is_as_good`."""
    asked = DayAsked(curve=curve_of_text(STEPS, "stated"), reserve_replicas=1, headroom_share=0.1)
    first, second = (FOUR, TWO) if chosen_ == "one device" else (TWO, FOUR)
    other = chosen(second)
    known = AtPeak(chosen(first), (other,) if is_as_good else (), (other,))
    return size_over_day(request(), known, asked, HARDWARE)


@pytest.mark.parametrize("chosen_", ["one device", "TP2"])
def test_of_what_is_as_good_at_the_peak_the_day_is_of_what_takes_the_least(chosen_: str) -> None:
    sized = day_of(chosen_, is_as_good=True)
    assert sized.layout == sized.layouts[0].layout
    assert sized.scaled == sized.layouts[0].cost
    assert sized.steps == day_of(sized.layout, is_as_good=False).steps


def test_a_layout_that_takes_less_over_the_day_and_is_worse_at_the_peak_is_named_first() -> None:
    days = [day_of(name, is_as_good=False) for name in ("one device", "TP2")]
    (less,) = {sized.layouts[0].layout for sized in days}
    for sized in days:
        assert {layout.layout for layout in sized.layouts} >= {"one device", "TP2"}
        lines = [line for line in day_lines(sized, gpus=100) if line.startswith("Over the day")]
        assert len(lines) == (sized.layout != less)
        assert all(
            f"{less} takes less" in line and f"of {sized.layout}, the layout of the plan" in line for line in lines
        )


@pytest.mark.thorough
def test_more_reserve_or_headroom_never_takes_fewer_replicas() -> None:
    for more in (day(2), day(1, 0.5)):
        pairs = zip(day().steps, more.steps, strict=True)
        assert all(first.replicas <= second.replicas for first, second in pairs)
        assert more.scaled.gpu_hours > day().scaled.gpu_hours


def test_the_target_of_an_autoscaler_makes_what_each_hour_needs() -> None:
    sized = day()
    text = render([day_section(sized)], width=1000)
    sentence = re.search(
        r"one replica for every (\S+) requests/s .* and (\d+) in reserve, at least (\d+) and at most (\d+)", text
    )
    assert sentence is not None
    reserve, least, most = map(int, sentence.groups()[1:])
    for step in sized.steps:
        replicas = math.ceil(step.requests_per_s / sized.target_per_s_each - 1e-9) + reserve
        assert min(most, max(least, replicas)) >= step.replicas


def test_sides_of_phases_apart_are_sized_by_themselves() -> None:
    apart = ONE.model_copy(update={"replicas": 2})
    strategy = Strategy(dp=4, gpu_count=4, prefill=apart, decode=apart)
    assert counts_of(strategy) == (2, 2)
    assert one_of_each(strategy).gpu_count == 2
    asked = DayAsked(curve=curve_of_text("0-12=2,12-24=60", "stated"), reserve_replicas=0, headroom_share=0.0)
    wanted = request(60.0)
    wanted = replace(wanted, workload=wanted.workload.model_copy(update={"ttft_ms_max": 1000.0, "tpot_ms_max": 12.5}))
    sized = size_over_day(wanted, AtPeak(chosen(strategy)), asked, HARDWARE)
    night, peak = sized.steps
    assert night.prefill_replicas == 1 and night.replicas <= peak.replicas
    assert night.gpus < peak.gpus


def test_what_no_number_of_replicas_holds_is_one_line() -> None:
    hurried = request()
    hurried = replace(hurried, workload=hurried.workload.model_copy(update={"tpot_ms_max": 0.01}))
    asked = DayAsked(curve=curve_of_text(STEPS, "stated"), reserve_replicas=1, headroom_share=0.1)
    with pytest.raises(InputError, match=r"no number of replicas .* TPOT"):
        size_over_day(hurried, AtPeak(chosen()), asked, HARDWARE)


def _apart() -> tuple[SearchRequest, Candidate, DayAsked]:
    """One replica of each phase on a node of an unknown network, and a day that takes more of them."""
    hardware = 1, 2, "l40s"
    wanted = search_request(
        "Llama-3.1-8B",
        hardware,
        input_tokens=1024,
        output_tokens=64,
        concurrency=30,
        request_rate=30.0,
        objective="cost",
    )
    part = ONE.model_copy(update={"replicas": 1})
    asked = DayAsked(curve=curve_of_text("0-12=2,12-24=30", "stated"), reserve_replicas=0, headroom_share=0.1)
    return wanted, chosen(Strategy(dp=2, gpu_count=2, prefill=part, decode=part)), asked


@pytest.mark.thorough
def test_a_day_of_phases_apart_stays_in_a_node_that_can_be_rented_whole() -> None:
    wanted, pair, asked = _apart()
    assert max(step.gpus for step in size_over_day(wanted, AtPeak(pair), asked, HARDWARE).steps) > 2


def test_a_day_of_phases_apart_over_an_unknown_network_says_what_to_do() -> None:
    wanted, pair, asked = _apart()
    with pytest.raises(
        InputError, match=r"than one node holds, .* say it \(100 Gbit/s .* or have prefill and decode share"
    ):
        size_over_day(wanted, AtPeak(pair), asked, Rented(usual_node=2, is_open=False))


def test_many_rates_are_lifted_to_few_levels() -> None:
    steps = [{"begins_h": minute / 60, "requests_per_s": 1.0 + minute % 97} for minute in range(0, 1440, 5)]
    curve = RateCurve.model_validate({"steps": steps})
    levels = levels_of(DayAsked(curve=curve, reserve_replicas=0, headroom_share=0.0))
    assert len(levels) <= MOST_LEVELS
    assert all(any(level >= step.requests_per_s for level in levels) for step in curve.steps)


def test_the_report_says_what_is_saved_covered_and_left_out() -> None:
    sized = day()
    assert "that were named" not in render([day_section(sized)], width=100)
    assert "more than the 2 that were named" in render(
        [day_section(sized.model_copy(update={"gpus_named": 2}))], width=100
    )
    text = render([day_section(sized)], width=100)
    for words in (
        "N+1",
        "a day against",
        "Set an autoscaler",
        "Not in it: how long a replica takes to start",
        "08:00-12:00",
    ):
        assert words in text
