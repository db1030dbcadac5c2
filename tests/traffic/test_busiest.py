"""The curve of a trace over time: its busiest stretch is found, reported, and planned for unless a rate is stated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.agent.report.request import workload_text
from shardwright.benchmarks.traces import azure_lines, burstgpt_lines, mooncake_lines
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.document import WorkloadBlock
from shardwright.tools.plan.load import arrival_words
from shardwright.tools.traffic.counted import Reservoir, Stretch, Windows
from shardwright.tools.traffic.rows import Row
from shardwright.tools.traffic.trace import trace_of_text

pytestmark = pytest.mark.thorough

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm"}
DAY_S = 86_400.0


def arrivals(rate: Callable[[float], float], most: float, span_s: float, shape: float = 1.0) -> Iterator[float]:
    """Seconds of arrivals with gamma-distributed gaps, thinned to a changing `rate` per second."""
    draw, now = Random(5), 0.0
    while (now := now + draw.gammavariate(shape, 1 / most / shape)) < span_s:
        if draw.random() < rate(now) / most:
            yield now


def day_at(at_s: float) -> float:
    """Twice the mean at noon, nothing at midnight."""
    return 0.5 * (1 - math.cos(2 * math.pi * at_s / DAY_S))


def mooncake(times: Iterator[float], prompt: Callable[[float], int] = lambda _: 500) -> str:
    lines = ({"timestamp": round(1e3 * at), "input_length": prompt(at), "output_length": 40} for at in times)
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def azure(times: Iterator[float]) -> str:
    begin = datetime(2024, 5, 10, tzinfo=UTC)
    lines = (f"{begin + timedelta(seconds=at):%Y-%m-%d %H:%M:%S.%f},700,30\n" for at in times)
    return "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(lines)


@pytest.mark.parametrize(
    ("text_of", "stretch", "begins", "times"),
    [
        (lambda: mooncake(arrivals(day_at, 1.0, DAY_S)), "hour", "11.9 h after", 2.0),
        (lambda: azure(arrivals(day_at, 1.0, DAY_S)), "hour", "2024-05-10 12:", 2.0),
        (lambda: mooncake(arrivals(lambda at: at / 7200, 1.0, 7200.0)), "10 min", "1.8 h after", 1.92),
        (lambda: mooncake(arrivals(lambda at: 9.0 if 600 < at < 660 else 1.0, 9.0, 1200.0)), "1 min", "9.9", 6.4),
        (lambda: mooncake(arrivals(lambda at: 0.2 if at < 2e4 else 0.02, 0.2, 3e5)), "hour", "7.9", 6.3),
    ],
)
def test_the_busiest_stretch_is_told_with_its_rate_and_when(
    text_of: Callable[[], str], stretch: str, begins: str, times: float
) -> None:
    trace = trace_of_text(text_of())
    peak = trace.peak
    assert peak is not None and peak.stretch == stretch
    assert peak.begins.startswith(begins)
    assert peak.times == pytest.approx(times, rel=0.12)
    assert trace.planned_rate_per_s == peak.rate_per_s and peak.mean_per_s == trace.rate_per_s
    assert f"busiest {stretch} {peak.rate_per_s:.3g}/s" in trace.describe() and peak.begins in trace.describe()


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 5.0])
@pytest.mark.parametrize(("rate", "span_s"), [(1.0, DAY_S), (10.0, 1200.0), (0.05, 1e6), (2.0, 30.0)])
def test_chance_alone_has_no_busiest_stretch(shape: float, rate: float, span_s: float) -> None:
    windows = Windows()
    for at in arrivals(lambda _: rate, rate, span_s, shape):
        windows.add(at)
    assert windows.busiest() is None


@pytest.mark.parametrize("lines", [azure_lines, burstgpt_lines, mooncake_lines])
def test_traces_of_one_rate_are_planned_for_it(lines: Callable[[], Iterator[str]]) -> None:
    trace = trace_of_text("\n".join(lines()))
    assert trace.peak is None and trace.planned_rate_per_s == trace.rate_per_s and "busiest" not in trace.describe()


def test_a_plan_is_for_the_busiest_hour_and_one_for_less_is_warned_of() -> None:
    text = mooncake(arrivals(day_at, 1.0, DAY_S))
    trace = trace_of_text(text)
    asks = "the busiest hour asks 1.02 requests/s, 2 times the mean"
    expected: dict[str, Any] = {
        "Planned for the busiest hour, 1.02 requests/s": plan(**SMALL, trace=trace),
        f"Mind: {asks}; planned for 0.522 requests/s": plan(**SMALL, trace=trace_of_text(text, window="whole")),
        f"Mind: {asks}; planned for 0.7 requests/s": plan(**SMALL, trace=trace, request_rate=0.7),
        f"Planned for 3 requests/s: {asks}": plan(**SMALL, trace=trace, request_rate=3.0),
        f"{asks}; planned for users who wait for their answers, whatever the rate": plan(
            **SMALL, trace=trace, concurrency=2
        ),
    }
    for words, result in expected.items():
        head = " ".join(render_plan(result, width=100).split("Valid plan")[0].split())
        assert words in head, head
    whole = expected[f"Mind: {asks}; planned for 0.522 requests/s"].plan
    assert whole.workload.request_rate == trace.rate_per_s
    figures = estimate(whole, trace=trace)
    assert figures.trace is not None and figures.trace.endswith("\nEstimated for the busiest hour, 1.02 requests/s")
    assert figures.load.load.startswith("open loop, 1.02")


def test_lengths_are_those_of_the_stretch_that_is_planned_for() -> None:
    text = mooncake(arrivals(day_at, 1.0, DAY_S), lambda at: 900 if 3.5e4 < at < 5e4 else 100)
    busiest, whole = trace_of_text(text), trace_of_text(text, window="whole")
    assert {prompt for prompt, _ in busiest.pairs} == {900} and busiest.is_of_peak
    assert {prompt for prompt, _ in whole.pairs} == {100, 900} and not whole.is_of_peak
    assert "1,000 of those of the busiest hour sampled" in busiest.describe()
    assert "1,000 of them sampled" in whole.describe()


def test_of_a_stretch_of_which_too_few_were_kept_lengths_are_those_of_all() -> None:
    reservoir = Reservoir(seed=0)
    for at in range(300_000):
        reservoir.add(Row(float(at), at + 1, 1))
    assert reservoir.within(Stretch(0.0, 150.0, 150), 0.0) == reservoir.places
    many = reservoir.within(Stretch(0.0, 3600.0, 3600), 0.0)
    assert 1200 < len(many) < 2000 and reservoir.sample(50, many) == reservoir.sample(50, many)
    assert all(1 <= prompt <= 3600 for prompt, _ in reservoir.sample(1000, many))


def test_servers_take_the_longest_request_of_the_whole_trace() -> None:
    prompts = iter(range(10**6))
    text = mooncake(arrivals(lambda _: 1.0, 1.0, 5000.0), lambda _: 60_000 if next(prompts) == 7 else 400)
    trace = trace_of_text(text, 100, 1)
    assert max(map(sum, trace.pairs)) == 440 and trace.longest == (60_000, 40)
    document = plan(**SMALL, trace=trace).plan
    assert document is not None and document.workload.lengths is not None
    assert document.workload.lengths.longest == (60_000, 40)
    assert document.workload.input_tokens == 400


def test_requests_that_no_server_of_the_model_takes_are_left_out_and_told() -> None:
    prompts = iter(range(10**6))
    text = mooncake(arrivals(lambda _: 1.0, 1.0, 900.0), lambda _: 140_000 if next(prompts) % 9 == 8 else 400)
    result = plan(**SMALL, trace=trace_of_text(text))
    assert result.plan is not None and result.plan.workload.input_tokens == 400
    assert result.intent is not None
    reasons = [assumption.reason for assumption in result.intent.assumptions if assumption.field == "lengths"]
    assert reasons == ["the trace has requests of up to 140,040 tokens; those beyond the model's 131,072 are left out"]


@pytest.mark.parametrize(
    ("burstiness", "words"),
    [
        (0.05, "in bursts (burstiness 0.05)"),
        (0.89, "in bursts (burstiness 0.89)"),
        (0.9, "at random (burstiness 0.9)"),
        (0.97, "at random (burstiness 0.97)"),
        (1.0, "at random"),
        (1.1, "at random (burstiness 1.1)"),
        (1.2, "more evenly than at random (burstiness 1.2)"),
        (40.0, "more evenly than at random (burstiness 40)"),
    ],
)
def test_words_follow_the_burstiness(burstiness: float, words: str) -> None:
    load = {"input_tokens": 500, "output_tokens": 50, "request_rate": 2.0, "arrivals": {"burstiness": burstiness}}
    assert arrival_words(burstiness) == words
    assert f"2 requests/s {words}, planned for latency" in workload_text(WorkloadBlock.model_validate(load))


def test_the_busiest_stretch_is_planned_for_with_its_own_bursts_not_with_the_step_up_to_it() -> None:
    trace = trace_of_text(mooncake(arrivals(lambda at: 60.0 if 600 < at < 660 else 1.0, 60.0, 1200.0)))
    assert trace.is_of_peak and trace.burstiness is not None and trace.burstiness < 0.8
    assert trace.arrivals is not None and trace.arrivals.burstiness == 1.0
    bursty = trace_of_text(mooncake(arrivals(lambda at: 60.0 if 600 < at < 660 else 1.0, 60.0, 1200.0, 0.1)))
    assert bursty.arrivals is not None and bursty.arrivals.burstiness is not None and bursty.arrivals.burstiness < 0.5
