"""Requests that come at a rate: how many are in flight, and that no plan with a growing queue is chosen."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.performance.memory import fits
from shardwright.tools.performance.planned_run import RATE_RESERVE
from shardwright.tools.plan.document import PrecisionBlock
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at, layout_at

from .requests import search_request

LOADS: tuple[tuple[str, tuple[int, int, str], dict[str, Any]], ...] = (
    ("Llama-3.2-1B", (1, 2, "l4"), {"input_tokens": 512, "output_tokens": 128, "request_rate": 40.0}),
    ("Llama-3.1-8B-Instruct", (1, 4, "l4"), {"input_tokens": 512, "output_tokens": 64, "request_rate": 16.0}),
    ("Qwen3-30B-A3B", (1, 2, "a100-80gb-sxm"), {"input_tokens": 1024, "output_tokens": 512, "request_rate": 3.0}),
)


def with_rate(request: SearchRequest, times: float) -> SearchRequest:
    rate = request.workload.request_rate
    assert rate is not None
    return replace(request, workload=request.workload.model_copy(update={"request_rate": rate * times}))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "hardware", "load"), LOADS)
def test_as_many_are_in_flight_as_come_while_one_is_answered(
    model: str, hardware: tuple[int, int, str], load: dict[str, Any]
) -> None:
    request = search_request(model, hardware, **load)
    setting = base_setting(request)
    steady = [
        candidate for candidate in search(request).candidates if candidate.end_to_end_ms and not candidate.queue_grows
    ]
    assert steady
    for candidate in steady:
        assert candidate.end_to_end_ms is not None
        wanted = math.ceil(load["request_rate"] * candidate.end_to_end_ms / 1e3)
        # Requests that memory does not hold wait before the server.
        layout = layout_at(request, setting, candidate.strategy, 1)
        assert candidate.concurrency == wanted or (candidate.concurrency < wanted and not fits(layout, wanted))


@pytest.mark.parametrize("stated", [1, 24, 10_000])
def test_a_number_that_is_stated_beside_a_rate_changes_no_choice_and_no_figure(stated: int) -> None:
    model, hardware, load = LOADS[0]
    unstated = search(search_request(model, hardware, **load)).best
    beside = search(search_request(model, hardware, **load, concurrency=stated)).best
    assert unstated is not None
    if stated == 10_000:  # memory is to hold as many, which it does not
        assert beside is None
        return
    assert beside is not None and beside.strategy == unstated.strategy
    assert (beside.ttft_ms, beside.end_to_end_ms, beside.tpot_ms) == (
        unstated.ttft_ms,
        unstated.end_to_end_ms,
        unstated.tpot_ms,
    )
    assert beside.concurrency == max(stated, unstated.concurrency)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "hardware", "load"), LOADS)
def test_what_has_no_reserve_of_the_rate_is_behind_all_that_have_one(
    model: str, hardware: tuple[int, int, str], load: dict[str, Any]
) -> None:
    request = search_request(model, hardware, **load)
    more = with_rate(request, 1.0 + RATE_RESERVE)
    holding = [candidate for candidate in search(request).candidates if candidate.feasible]
    assert holding
    assert [candidate.lacks_reserve for candidate in holding] == sorted(
        candidate.lacks_reserve for candidate in holding
    )
    for candidate in holding:
        tried = candidate_at(more, base_setting(more), candidate.strategy, candidate.concurrency)
        assert candidate.lacks_reserve == tried.queue_grows


@pytest.mark.thorough
def test_a_queue_of_seconds_is_not_the_best_for_latency() -> None:
    load = {"input_tokens": 2500, "output_tokens": 350, "request_rate": 6.0}
    fp8 = PrecisionBlock(weights="fp8", kv_cache="bf16", activations="fp8")
    request = replace(search_request("Llama-3.3-70B-Instruct", (1, 6, "h100-sxm"), **load), precision=fp8)
    best = search(request).best
    assert best is not None and best.ttft_ms is not None and best.ttft_ms < 1_000.0
