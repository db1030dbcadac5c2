"""A rate curve is read from words, rates, steps and rows; contradictions and partial days are one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.intent.complete import complete
from shardwright.agent.operations.deployments import PLAN
from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.agent.stated.arguments import said_of_arguments
from shardwright.agent.stated.curve import stated_curve
from shardwright.tools.errors import InputError
from shardwright.tools.language.request import read_words
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.placement import is_disaggregated
from shardwright.tools.plan.rate_curve import RateCurve
from shardwright.tools.search.day_sizes import one_of_each
from shardwright.tools.traffic.trace import trace_of_text

CASES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "rate_curves.json").read_text(encoding="utf-8")
)
SETTING = "Llama-3.1-8B on 8 L4, 1k/256, TTFT under 1 s, "


def checked(case: dict[str, Any], curve: RateCurve | None) -> None:
    assert curve is not None
    assert curve.peak_per_s == pytest.approx(case["peak"])
    assert curve.mean_per_s == pytest.approx(case["mean"])


@pytest.mark.parametrize("case", CASES["requests"], ids=lambda case: case["text"])
def test_words_ask_for_a_day(case: dict[str, Any]) -> None:
    if "says" in case:
        with pytest.raises(InputError, match=case["says"]) as refused:
            read_words(SETTING + case["text"])
        assert "\n" not in str(refused.value)
        return
    intent = complete(read_words(SETTING + case["text"]))
    assert not intent.unread
    if case.get("absent"):
        assert intent.day is None
        return
    assert intent.day is not None
    checked(case, intent.day.curve)
    assert intent.workload.request_rate == pytest.approx(case["peak"])
    assert intent.workload.objective == "cost"
    assert intent.day.reserve_replicas == case.get("reserve", 1)
    assumed = {assumption.field for assumption in intent.assumptions}
    assert {"request_rate", "headroom", "objective"} <= assumed
    # A shape is assumed if only a peak and a mean are stated.
    assert ("rate_curve" in assumed) == (" from " not in case["text"])


@pytest.mark.parametrize("case", CASES["texts"], ids=lambda case: case["text"])
def test_texts_are_curves(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "says" in case:
        with pytest.raises(InputError, match=case["says"]) as refused:
            stated_curve(case["text"], None)
        assert "\n" not in str(refused.value)
        return
    curve = stated_curve(case["text"], None)
    checked(case, curve)
    assert len(list(curve.spans())) == case["steps"]
    Path("day.csv").write_text(case["text"], encoding="utf-8")
    if "average" not in case["text"]:
        assert stated_curve("day.csv", None).steps == curve.steps


def test_a_trace_gives_the_busiest_of_each_hour_of_its_days() -> None:
    # Two days from 06:00 UTC on: 60 requests an hour, twice as many at noon of the second day.
    begin_s = 1_700_006_400 // 86_400 * 86_400 + 6 * 3600
    hours = [120 if hour == 30 else 60 for hour in range(48)]
    times = [begin_s + hour * 3600 + place * 3600 / count for hour, count in enumerate(hours) for place in range(count)]
    usage = {"prompt_tokens": 120, "completion_tokens": 30}
    trace = trace_of_text("".join(json.dumps({"created": at, "usage": usage}) + "\n" for at in times))
    curve = stated_curve("trace", trace)
    assert {span.begins_h: round(span.requests_per_s * 3600) for span in curve.spans()}[12.0] == 120
    assert curve.peak_per_s * 3600 == pytest.approx(120, rel=0.02)
    assert curve.mean_per_s * 3600 == pytest.approx(62.5, rel=0.02)


def test_a_reserve_is_sized_for_the_stated_rate_where_no_curve_is_stated() -> None:
    said = said_of_arguments("llama-3.1-8b", "1x8:l4", None, {"reserve_replicas": 1, "request_rate": 5.0})
    assert said is not None
    day = complete(said).day
    assert day is not None
    assert (day.curve.peak_per_s, day.curve.mean_per_s) == (5.0, 5.0)
    assert (day.reserve_replicas, day.headroom_share) == (1, 0.0)


def test_a_reserve_without_a_rate_is_not_acted_on_and_told() -> None:
    said = said_of_arguments("llama-3.1-8b", "1x8:l4", None, {"reserve_replicas": 1, "concurrency": 5})
    assert said is not None
    intent = complete(said)
    assert intent.day is None
    assert any("a reserve is sized for a rate" in line for line in intent.unread)


LOST = "3 req/s, 512 in / 8 out, TTFT under 1 s, must survive the loss of one replica"


def test_a_plan_of_one_rate_has_its_reserve_where_the_hardware_is_open() -> None:
    result = plan(f"Llama-3.2-1B on H100 with vllm, {LOST}")
    assert result.plan is not None
    assert result.valid
    assert result.plan.strategy.dp == 2
    (constraint,) = result.plan.policy.constraints or ()
    assert (constraint.kind, constraint.value, constraint.words) == ("replicas", 2, "survive the loss of one replica")
    assert result.report is not None
    assert not result.report.not_acted_on


def test_a_plan_that_has_not_its_reserve_says_so_in_the_first_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", f"Llama-3.2-1B on 1 H100 with vllm, {LOST}", "--strict"]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert (
        "Not acted on: 'survive the loss of one replica': the plan is of the rate itself; with 1 lost 2 replicas on 2 "
        "GPUs (1 named)" in output
    )


def test_a_reserve_that_nobody_had_the_time_to_look_at_is_told() -> None:
    result = plan(f"Llama-3.2-1B on 2 H100 with vllm, {LOST}", time_limit_s=0.0)
    assert result.plan is not None and result.report is not None
    assert any("loss of one replica" in line and "time was over" in line for line in result.report.not_acted_on)


def test_phases_that_were_left_open_share_replicas_where_only_that_leaves_a_reserve() -> None:
    result = plan(
        "12 requests per second of Llama-3.3-70B-Instruct in FP8 on 8 H100s, vLLM, 1500 in / 300 out, p95 TTFT below "
        "1 s, TPOT below 50 ms; must survive the loss of one replica",
        time_limit_s=300,  # on a machine with much else to do the usual limit cuts it short
    )
    assert result.plan is not None
    assert not is_disaggregated(result.plan.strategy)
    assert result.over_day is not None
    assert result.over_day.steps[0].gpus <= result.plan.strategy.gpu_count == 8


def test_a_curve_is_a_day_and_a_rate_agrees_with_it() -> None:
    for stated, reason in (
        ({"rate_curve": [2.0] * 24, "request_rate": 5.0}, "keep one"),
        ({"rate_curve": [2.0] * 23}, "23 rates"),
        ({"rate_curve": [2.0] * 24, "headroom": -1.0}, "headroom"),
    ):
        with pytest.raises(InputError, match=reason):
            said = said_of_arguments("llama-3.1-8b", "1x8:l4", None, stated)  # type: ignore[arg-type]
            assert said is not None
            complete(said)


def test_a_plan_is_for_the_peak_and_has_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    words = "Llama-3.2-1B on 1 H100, 512 in / 8 out, TTFT under 200 ms, TPOT under 12 ms"
    assert run(["plan", words, "--rate-curve", "0-12=2,12-24=20", "--reserve-replicas", "0", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["plan"]["workload"]["request_rate"] == 20.0
    assert [(step["begins_h"], step["requests_per_s"]) for step in shown["over_day"]["steps"]] == [
        (0.0, 2.0),
        (12.0, 20.0),
    ]
    assert shown["over_day"]["reserve_replicas"] == 0
    # A plan document holds nothing of the curve.
    assert "rate_curve" not in json.dumps(shown["plan"])


@pytest.mark.thorough
def test_programs_ask_for_a_day_and_get_one_line_where_it_is_none() -> None:
    asked = {
        "model": "llama-3.2-1b",
        "hardware": "1x1:h100-sxm",
        "input_tokens": 512,
        "output_tokens": 8,
        "tpot_ms": 12.0,
    }
    result = PLAN.answer(PLAN.question({**asked, "rate_curve": [2.0] * 12 + [20.0] * 12, "headroom": 0.0}))
    assert result.over_day is not None and result.over_day.headroom_share == 0.0
    assert "Over the day" in PLAN.text(result)
    reserved = PLAN.answer(PLAN.question({**asked, "hardware": "1x8:h100-sxm", "rate_curve": [2.0] * 12 + [90.0] * 12}))
    assert reserved.over_day is not None and reserved.plan is not None
    most = max(step.gpus for step in reserved.over_day.steps)
    assert most > reserved.plan.strategy.gpu_count
    assert f"With headroom and reserve the peak of the day takes {most} GPUs" in PLAN.text(reserved)
    hurried = PLAN.answer(PLAN.question({**asked, "rate_curve": [2.0] * 24, "time_limit_s": 0.0}))
    assert hurried.over_day is None and hurried.report is not None
    assert "the hours of the day" in hurried.report.left_out
    for curve in ("day.csv", [1.0, 2.0], "nothing of the kind"):
        with pytest.raises(InputError):
            PLAN.answer(PLAN.question({**asked, "rate_curve": curve}))


@pytest.mark.thorough
@pytest.mark.parametrize("stated", ["as few as needed", "8 of them, TP2"])
def test_the_plan_of_a_day_has_the_layout_of_its_table(stated: str) -> None:
    result = plan(
        f"Llama-3.2-1B on L4, {stated}, no disaggregation, 512 in / 64 out, TTFT under 300 ms, TPOT under 14 ms",
        rate_curve="0-16=4,16-24=40",
    )
    assert result.plan is not None and result.over_day is not None and result.valid
    day, layout = result.over_day, describe(one_of_each(result.plan.strategy))
    assert day.layout == layout
    if "TP2" in stated:
        assert layout == "TP2"
    elif day.layouts[0].layout != layout:
        head = render_plan(result, width=4000).split("\n\n")[0]
        assert f"Over the day {day.layouts[0].layout} takes less" in head
