"""A floor excludes only what cannot hold a limit, and saves searching it."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from shardwright.tools.checkpoint import best_so_far
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.floors import is_out_of_reach, may_hold
from shardwright.tools.search.screen import fits_somehow
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.sizing import fewest_gpus

from .requests import search_request

LOAD = {"input_tokens": 2048, "output_tokens": 256}
CASES = {
    "dense": search_request("Llama-3.1-8B-Instruct", (1, 8, "h100-sxm"), **LOAD),
    "dense, one request": search_request("Llama-3.1-8B-Instruct", (2, 4, "a100-80gb-sxm"), concurrency=1, **LOAD),
    "experts": search_request("Qwen3-30B-A3B", (1, 8, "h100-sxm"), concurrency=8, **LOAD),
    "more groups than a power of two": search_request("Qwen3-30B-A3B", (2, 3, "v100-32gb-sxm"), concurrency=8, **LOAD),
    "apart": replace(search_request("Llama-3.1-8B-Instruct", (1, 4, "l40s"), **LOAD), disaggregated=True),
}


def with_limit(request: SearchRequest, tpot_ms: float, **update: object) -> SearchRequest:
    return replace(request, workload=request.workload.model_copy(update={"tpot_ms_max": tpot_ms, **update}))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("asked", CASES.values(), ids=CASES.keys())
def test_no_limit_that_a_strategy_holds_is_out_of_reach(asked: SearchRequest) -> None:
    setting = base_setting(asked)
    result = search(with_limit(asked, 1e-3, objective="latency"))
    quickest = min(candidate.tpot_ms for candidate in result.candidates if candidate.tpot_ms is not None)
    assert not is_out_of_reach(with_limit(asked, quickest), setting)
    assert is_out_of_reach(with_limit(asked, quickest / 3), setting)


def test_a_link_that_is_not_known_excludes_nothing() -> None:
    asked = search_request("Llama-3.1-8B-Instruct", (2, 8, "l40s"), tpot_ms_max=1e-3, **LOAD)
    assert not is_out_of_reach(asked, base_setting(asked))


def test_of_a_limit_out_of_reach_no_cluster_is_searched() -> None:
    looks = {tpot_ms: count() for tpot_ms in (0.1, 4.5)}
    for tpot_ms, looked in looks.items():
        with best_so_far(lambda looked=looked: next(looked) < 0):
            fewest = fewest_gpus(with_limit(CASES["dense"], tpot_ms), 8, at_most=16)
        assert (fewest is None) == (tpot_ms < 1)
    assert next(looks[0.1]) == 0 < next(looks[4.5])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("asked", [CASES["dense"], CASES["experts"]], ids=["dense", "experts"])
def test_rates_beyond_all_arithmetic_are_out_of_reach_and_those_that_are_served_are_not(asked: SearchRequest) -> None:
    setting = base_setting(asked)
    best = search(asked).best
    assert best is not None and best.output_tokens_per_s is not None
    served = best.output_tokens_per_s / asked.workload.output_tokens
    for rate, expected in ((served, False), (1000 * served, True)):
        wanted = replace(asked, workload=asked.workload.model_copy(update={"request_rate": rate}))
        assert is_out_of_reach(wanted, setting) is expected


def test_more_tokens_than_come_are_out_of_reach_of_any_hardware() -> None:
    asked = replace(CASES["dense"], workload=CASES["dense"].workload.model_copy(update={"request_rate": 10.0}))
    setting = base_setting(asked)
    for tokens_per_s, expected in ((2560.0, False), (2561.0, True)):
        wanted = asked.workload.model_copy(update={"min_tokens_per_second": tokens_per_s})
        assert is_out_of_reach(replace(asked, workload=wanted), setting) is expected


@pytest.mark.parametrize("requests", [1, 7])
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_what_fits_by_any_strategy_is_within_the_bound_on_memory(gpus: int, requests: int) -> None:
    """With rising shares of the memory: the bound excludes some, and none into which a strategy fits."""
    asked = search_request("Llama-3.2-1B", (1, gpus, "h100-sxm"), concurrency=requests, **LOAD)
    seen: set[tuple[bool, bool]] = set()
    for percent in (1, 2, 3, 4, 5, 6, 8, 10):
        policy = asked.policy.model_copy(update={"memory_utilization": percent / 200})
        part = replace(asked, policy=policy)
        setting = base_setting(part)
        seen.add((may_hold(part, setting), fits_somehow(part, setting)))
    assert (False, True) not in seen
    assert {(False, False), (True, True)} <= seen
