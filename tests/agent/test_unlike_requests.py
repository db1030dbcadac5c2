"""Lengths and arrivals stated as arguments are planned and searched, and refused if they contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.compare import compare
from shardwright.agent.operations.asking import Request
from shardwright.agent.pipeline import plan
from shardwright.agent.report.request import workload_text
from shardwright.agent.search_api import search
from shardwright.tools.errors import InputError
from shardwright.tools.language.merge import merge_said
from shardwright.tools.language.said import Said
from shardwright.tools.plan.lengths import RequestLengths
from shardwright.tools.validate import validate

pytestmark = pytest.mark.thorough

TAIL: dict[str, Any] = {"input": {"percentiles": [[50, 1000], [95, 8000]]}}
SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm"}


def test_a_plan_for_lengths_that_spread_says_their_mean_and_keeps_them() -> None:
    result = plan(**SMALL, lengths=TAIL, concurrency=8)
    assert result.plan is not None
    workload = result.plan.workload
    assert workload.input_tokens == 2199 and workload.lengths == RequestLengths.model_validate(TAIL)
    assert validate(result.plan.model_dump_json()).valid
    assert "2,199 tokens in, 256 out on average (in p50 1,000, p95 8,000, at most 49,735" in workload_text(workload)


def test_a_p99_is_that_of_the_lengths_that_come_not_of_their_mean() -> None:
    asked = {"model": "llama-3.1-70b", "hardware": "1x8:h100-sxm", "output_tokens": 300, "request_rate": 3.0}
    limits = {"objective": "latency", "ttft_ms": 2500, "ttft_statistic": "p99"}
    by_mean = search(**asked, **limits, input_tokens=2199).candidates[0]
    by_tail = search(**asked, **limits, lengths=TAIL).candidates[0]
    assert by_mean.feasible and by_tail.feasible
    assert by_tail.limited_ms["TTFT p99"] > 3 * by_mean.limited_ms["TTFT p99"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"lengths": TAIL, "input_tokens": 1000}, "input_tokens is 1,000, but these lengths have a mean of 2,199"),
        ({"lengths": TAIL, "input_tokens_range": (1, 2199)}, "input_tokens_range is stated beside lengths"),
        ({"arrivals": {"burstiness": 0.5}}, "state request_rate"),
        ({"arrivals": {"think_time_s": 5}, "request_rate": 2.0}, "leave request_rate out"),
        ({"arrivals": {"think_time_s": "long"}}, "arrivals: think_time_s"),
        ({"lengths": {"input": {"percentiles": [[50, 10]]}}}, "lengths: input.percentiles.percentiles"),
    ],
)
def test_what_cannot_be_together_is_refused_in_a_line(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        plan(**SMALL, **fields)
    assert says in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_a_request_of_a_program_states_the_same() -> None:
    request = Request.model_validate(
        {"request": "Llama 3.1 8B on 2 H100, 3 requests/s", "lengths": TAIL, "arrivals": {"burstiness": 0.4}}
    )
    workload = request.intent().workload
    assert workload.lengths == RequestLengths.model_validate(TAIL)
    assert workload.arrivals is not None and workload.arrivals.burstiness == 0.4


def test_the_later_of_lengths_and_a_length_holds() -> None:
    lengths = RequestLengths.model_validate({**TAIL, "output": {"histogram": [[400, 1]]}})
    spread = merge_said([Said(input_tokens=4096, output_tokens=16), Said(lengths=lengths)])
    assert spread.lengths == lengths and spread.input_tokens is None and spread.output_tokens is None
    alike = merge_said([Said(lengths=lengths), Said(input_tokens=4096)])
    assert alike.input_tokens == 4096
    assert alike.lengths is not None and not alike.lengths.covers("input") and alike.lengths.covers("output")
    pairs = RequestLengths.model_validate({"pairs": [[100, 10]]})
    assert merge_said([Said(lengths=pairs), Said(output_tokens=7)]).lengths is None


def test_a_comparison_and_a_refusal_say_lengths_in_words() -> None:
    alike, unlike = plan(**SMALL, input_tokens=2199).plan, plan(**SMALL, lengths=TAIL).plan
    assert alike is not None and unlike is not None
    [lengths] = [difference for difference in compare(alike, unlike).question if difference.what == "workload lengths"]
    assert (lengths.a, lengths.b) == (None, "input p50 1,000, p95 8,000, at most 49,735")
    pairs = {"pairs": [[tokens, 9] for tokens in range(1, 1000)]}
    with pytest.raises(InputError) as refused:
        plan(**SMALL, lengths=pairs, input_tokens=7)
    assert "lengths = input p50 500, p95 950, at most 999" in str(refused.value) and len(str(refused.value)) < 500
