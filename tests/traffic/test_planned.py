"""Plans, searches and estimates of the requests of a trace, and reports without its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.operations.all_operations import OPERATIONS
from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.agent.search_api import search
from shardwright.benchmarks.traces import azure_lines
from shardwright.tools.errors import InputError
from shardwright.tools.input.files import without_files
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.traffic.trace import trace_of_text

SECRET = "the launch code is 0000"
USAGE = {"prompt_tokens": 120, "completion_tokens": 30}


def test_no_content_reaches_a_report() -> None:
    common = {"usage": USAGE, "messages": [{"content": SECRET}], "model": SECRET}
    objects = [{**common, "created": 1_700_000_000 + at} for at in range(40)]
    trace = trace_of_text("".join(f"{json.dumps(entry)}\n" for entry in objects))
    result = plan(model="llama-3.1-8b", hardware="1x1:h100-sxm", trace=trace)
    shown = render_plan(result, width=100) + result.model_dump_json() + trace.describe()
    assert SECRET not in shown
    assert shown.lstrip().startswith("Trace (log with token counts): 40 requests in 39 s (1/s)")


@pytest.mark.thorough
def test_plans_searches_and_estimates_are_of_the_trace() -> None:
    trace = trace_of_text("\n".join(azure_lines(2000)))
    small: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x2:h100-sxm"}
    planned = plan(**small, trace=trace)
    assert planned.plan is not None and trace.rate_per_s is not None
    workload = planned.plan.workload
    assert workload.lengths == trace.lengths and workload.request_rate == trace.rate_per_s
    assert workload.arrivals == trace.arrivals
    result = search(**small, trace=trace)
    assert result.trace == trace.describe() and result.candidates[0].strategy == planned.plan.strategy
    plain = plan(**small, input_tokens=512, output_tokens=64).plan
    assert plain is not None
    figures = estimate(plain, trace=trace)
    assert figures.trace == trace.describe() and not any("Trace" in note for note in figures.notes)
    assert figures.load.load.startswith(f"open loop, {trace.rate_per_s:g} requests/s of burstiness")
    # Users that are stated take the place of the rate, not of the lengths.
    users = plan(**small, trace=trace, concurrency=7).plan
    assert users is not None and users.workload.request_rate is None and users.workload.lengths == trace.lengths


def test_over_a_wire_a_trace_is_its_text_and_never_a_path(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_text("\n".join(azure_lines(300)), encoding="utf-8")
    ask = next(operation for operation in OPERATIONS if operation.name == "search")
    small: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "1x1:h100-sxm"}
    with without_files():
        answer: Any = ask.run(ask.question({**small, "trace": path.read_text(), "trace_sample": 50, "trace_seed": 3}))
        assert "300 requests" in answer.trace and "50 of them sampled with seed 3" in answer.trace
        with pytest.raises(InputError, match="trace: no trace that can be read: line 1: neither JSON"):
            ask.run(ask.question({**small, "trace": str(path)}))
        with pytest.raises(InputError, match="no file is opened here"):
            search(**small, trace=path)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("words", "unacted"),
    [
        ("3k in / 100 out", ("3k in", "100 out")),
        ("prompts of 1k to 4k", ("prompts of 1k to 4k",)),
        ("prompts p50 1k, p95 8k", ("1k, 8k",)),
        ("4 users", ()),
    ],
)
def test_lengths_in_words_beside_a_trace_are_not_acted_on_and_said_to_be(words: str, unacted: tuple[str, ...]) -> None:
    trace = trace_of_text("\n".join(azure_lines(50)))
    result = plan(f"Llama-3.2-1B on 1 H100, {words}", trace=trace)
    assert result.report is not None and result.plan is not None
    assert result.plan.workload.lengths == trace.lengths
    assert [remark.partition(": the trace has")[0] for remark in result.report.not_acted_on] == [
        f"{span!r}" for span in unacted
    ]
    reasons = {assumption.field: assumption.reason for assumption in result.report.assumptions}
    assert reasons["input_tokens"] == "the mean of the trace's lengths"
