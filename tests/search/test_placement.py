"""Whether prefill and decode share replicas: left open, both are searched and the better one is the answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.plan.placement import is_disaggregated
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.search import search

from .requests import search_request

LOAD = {"input_tokens": 2048, "output_tokens": 256}
ASKED = {
    "throughput": search_request("Llama-3.1-70B-Instruct", (1, 8, "h100-sxm"), concurrency=64, **LOAD),
    "latency": search_request("Llama-3.1-8B-Instruct", (1, 4, "h100-sxm"), concurrency=8, objective="latency", **LOAD),
    "experts, cost": search_request("Qwen3-30B-A3B", (1, 4, "h100-sxm"), concurrency=32, objective="cost", **LOAD),
    "a limit, the load open": search_request("Llama-3.1-8B-Instruct", (1, 2, "h100-sxm"), tpot_ms_max=20.0, **LOAD),
    "a rate": search_request("Llama-3.1-8B-Instruct", (1, 4, "l40s"), concurrency=1, request_rate=2.0, **LOAD),
}


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_an_open_placement_is_as_good_as_the_better_of_both(asked: SearchRequest) -> None:
    stated = [search(replace(asked, disaggregated=apart)) for apart in (False, True)]
    answer = search(asked)
    objective = asked.workload.objective
    best = min(worth(result.best, objective) for result in stated if result.best is not None)
    assert answer.best is not None and worth(answer.best, objective) <= best * 1.005
    assert answer.evaluated + sum(answer.pruned.values()) == sum(
        result.evaluated + sum(result.pruned.values()) for result in stated
    )


@pytest.mark.thorough
def test_which_of_both_it_is_depends_on_the_load() -> None:
    """Otherwise the test above would pass with one of the two alone."""
    placements = {
        is_disaggregated(best.strategy) for asked in ASKED.values() if (best := search(asked).best) is not None
    }
    assert placements == {True, False}


def test_one_device_has_no_two_kinds_of_replica() -> None:
    asked = search_request("Llama-3.1-8B-Instruct", (1, 1, "h100-sxm"), **LOAD)
    assert search(asked).evaluated == search(replace(asked, disaggregated=False)).evaluated
