"""The engine's batch limit: its default if the KV cache beside it holds the load, else the load's own size."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
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
