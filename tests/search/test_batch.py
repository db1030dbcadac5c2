"""The engine's batch limit: its default if the KV cache beside it holds the load, else the load's own size."""

from __future__ import annotations

import json
from typing import Any

import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.agent.report.plan import render_plan
from shardwright.agent.report.text import ms_text
from shardwright.agent.results import PlanResult

# At most eight of these requests fit, and fewer beside what vLLM sets up for its default of 256.
TIGHT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "hardware": "1x1:l4",
    "engine": "vllm",
    "input_tokens": 3850,
    "output_tokens": 300,
    "concurrency": 8,
}


def _plan(**changed: Any) -> PlanResult:
    planned = shardwright.plan(**{**TIGHT, **changed})
    assert planned.plan is not None and planned.estimate is not None
    return planned


def _requests_in_cache(planned: PlanResult) -> int:
    assert planned.estimate is not None and planned.estimate.memory.kv_cache_capacity_requests is not None
    return planned.estimate.memory.kv_cache_capacity_requests


def test_a_batch_of_the_load_gives_it_the_cache_that_the_engine_s_own_takes() -> None:
    of_load, of_engine = _plan(), _plan(serving={"max_batch": 256})
    assert of_load.plan is not None and of_load.plan.serving is not None and of_load.plan.serving.max_batch == 8
    assert _requests_in_cache(of_engine) < 8 <= _requests_in_cache(of_load)
    assert of_load.estimate is not None and of_engine.estimate is not None
    assert of_load.estimate.latency.ttft_ms < of_engine.estimate.latency.ttft_ms
    [batch_note] = [assumption for assumption in of_load.report.assumptions if assumption.field == "serving.max_batch"]
    assert batch_note.value == 8 and "vLLM" in batch_note.reason
    text = shardwright.export(of_load.plan, "vllm").text
    assert text is not None and "--max-num-seqs 8 " in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "changed",
    [
        {"concurrency": 4},
        {"serving": {"max_batch": 200}},
        pytest.param({"concurrency": None, "request_rate": 0.2}, marks=pytest.mark.thorough),
    ],
)
def test_the_engine_s_own_batch_stays_where_the_cache_holds_the_load_or_a_number_was_stated(
    changed: dict[str, Any],
) -> None:
    planned = _plan(**changed)
    assert planned.plan is not None
    stated = None if planned.plan.serving is None else planned.plan.serving.max_batch
    assert stated == changed.get("serving", {}).get("max_batch")
    assert not any(assumption.field == "serving.max_batch" for assumption in planned.report.assumptions)


def test_the_search_that_shows_a_plan_has_its_figures() -> None:
    planned, listed = _plan(), shardwright.search(**TIGHT)
    assert planned.estimate is not None
    assert listed.candidates[0].ttft_ms == planned.estimate.latency.ttft_ms


# vLLM runs at most 256 at once on a GPU of less than 70 GiB.
MANY: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "hardware": "1x1:l40s",
    "engine": "vllm",
    "input_tokens": 200,
    "output_tokens": 150,
    "concurrency": 600,
}


def test_more_requests_than_the_engine_runs_by_itself_raise_its_batch_where_that_is_better() -> None:
    planned = shardwright.plan(**MANY, ttft_ms=1000)
    assert planned.valid and planned.plan is not None and planned.plan.serving is not None
    assert planned.plan.serving.max_batch == 1024
    text = render_plan(planned, width=200).split("Layout")[0]
    assert (
        "vLLM is told to run 1,024 requests at once (--max-num-seqs), as the load has them: by itself it runs 256"
        in text
    )
    assert planned.estimate is not None and planned.estimate.memory.requests_at_once == 1024


@pytest.mark.parametrize("stated", [{}, {"serving": {"max_batch": 200}}])
def test_who_waits_for_the_batch_is_said_first_and_what_a_larger_one_does(stated: dict[str, Any]) -> None:
    planned = shardwright.plan(**MANY, **stated)
    most = stated.get("serving", {}).get("max_batch", 256)
    assert planned.plan is not None and planned.estimate is not None and planned.report is not None
    assert planned.estimate.memory.requests_at_once == most
    told = planned.report.on_more or ""
    assert f"has {most} of the 600 requests at a time" in told and "With a batch of 600 (--max-batch): TTFT " in told
    larger = shardwright.plan(**MANY, serving={"max_batch": 600}).estimate
    assert larger is not None and ms_text(larger.latency.ttft_ms) in told


def test_the_batch_is_an_option_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["plan", "Llama-3.2-1B on 1 L4, 600 users, 200 in, 150 out", "--max-batch", "100", "--format", "json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["plan"]["serving"]["max_batch"] == 100
