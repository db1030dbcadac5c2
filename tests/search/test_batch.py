"""The engine's batch: its own where the cache beside it holds the load, that of the load where it does not."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
from shardwright.agent.results import PlanResult

# At most eight of these requests fit, and fewer of them beside what vLLM sets up for its own 256.
TIGHT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "hardware": "1x1:l4",
    "engine": "vllm",
    "input_tokens": 3850,
    "output_tokens": 300,
    "concurrency": 8,
}


def _asked(**changed: Any) -> PlanResult:
    found = shardwright.plan(**{**TIGHT, **changed})
    assert found.plan is not None and found.estimate is not None
    return found


def _held(found: PlanResult) -> int:
    assert found.estimate is not None and found.estimate.memory.kv_cache_capacity_requests is not None
    return found.estimate.memory.kv_cache_capacity_requests


def test_a_batch_of_the_load_gives_it_the_cache_that_the_engine_s_own_takes() -> None:
    found, own = _asked(), _asked(serving={"max_batch": 256})
    assert found.plan is not None and found.plan.serving is not None and found.plan.serving.max_batch == 8
    assert _held(own) < 8 <= _held(found)
    assert found.estimate is not None and own.estimate is not None
    assert found.estimate.latency.ttft_ms < own.estimate.latency.ttft_ms
    [told] = [one for one in found.report.assumptions if one.field == "serving.max_batch"]
    assert told.value == 8 and "vLLM" in told.reason
    text = shardwright.export(found.plan, "vllm").text
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
    found = _asked(**changed)
    assert found.plan is not None
    stated = None if found.plan.serving is None else found.plan.serving.max_batch
    assert stated == changed.get("serving", {}).get("max_batch")
    assert not any(one.field == "serving.max_batch" for one in found.report.assumptions)


def test_the_search_that_shows_a_plan_has_its_figures() -> None:
    found, listed = _asked(), shardwright.search(**TIGHT)
    assert found.estimate is not None
    assert listed.candidates[0].ttft_ms == found.estimate.latency.ttft_ms
