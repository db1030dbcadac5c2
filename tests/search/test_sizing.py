"""How much hardware, and which: fewest GPUs, least memory, least money, checked against a search of every cluster."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.document import HardwareBlock
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.kinds import Kind, cheapest, least_memory
from shardwright.tools.search.reach import resized
from shardwright.tools.search.screen import Screen, fits_somehow
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.sizing import fewest_gpus, with_fewer

from .requests import search_request

pytestmark = pytest.mark.thorough

CASES = [
    ("Llama-3.1-8B-Instruct", {"input_tokens": 2048, "output_tokens": 256, "tpot_ms_max": 4.5}),
    ("Llama-3.1-8B-Instruct", {"input_tokens": 2048, "output_tokens": 256, "request_rate": 25.0, "tpot_ms_max": 25.0}),
    ("Llama-3.1-8B-Instruct", {"input_tokens": 2048, "output_tokens": 256, "concurrency": 24, "ttft_ms_max": 60.0}),
    ("Qwen3-30B-A3B", {"input_tokens": 1024, "output_tokens": 512, "request_rate": 10.0, "objective": "throughput"}),
]


def every_cluster(request: SearchRequest, most: int) -> int | None:
    """The fewest GPUs by a search of each part of a node of eight, then of whole nodes; `None` if none holds."""
    for gpus in [*range(1, 8), *range(8, most + 1, 8)]:
        shape = (1, gpus) if gpus < 8 else (gpus // 8, 8)
        if search(resized(request, *shape)).best is not None:
            return gpus
    return None


@pytest.mark.parametrize(("model", "workload"), CASES)
def test_the_fewest_gpus_are_those_of_looking_at_every_cluster(model: str, workload: dict[str, float]) -> None:
    request = search_request(model, (1, 8, "h100-sxm"), **workload)
    fewest = fewest_gpus(request, 8, at_most=32)
    assert (None if fewest is None else fewest.request.facts.gpus) == every_cluster(request, 32)


def test_a_limit_that_no_number_holds_finds_no_cluster() -> None:
    request = search_request(
        "Llama-3.1-8B-Instruct", (1, 8, "h100-sxm"), input_tokens=2048, output_tokens=256, tpot_ms_max=0.1
    )
    assert fewest_gpus(request, 8, at_most=32) is None


@cache
def least_for(model: str, **workload: float) -> tuple[SearchRequest, int]:
    request = search_request(model, (1, 8, "h100-sxm"), **workload)
    least = fewest_gpus(request, 8)
    assert least is not None
    return request, least.request.facts.gpus


@pytest.mark.parametrize("at_most", [1, 3, 8, 9, 15, 17, 23])
def test_no_cluster_is_larger_than_what_was_allowed(at_most: int) -> None:
    few = least_for("Llama-3.1-8B-Instruct", input_tokens=2048, output_tokens=256, tpot_ms_max=4.5)
    nodes = least_for("Llama-3.1-405B-Instruct", input_tokens=512, output_tokens=64)
    assert few[1] < 8 < nodes[1] < 23
    for request, least in (few, nodes):
        fewest = fewest_gpus(request, 8, at_most=at_most)
        assert (fewest is not None) == (least <= at_most)
        assert fewest is None or fewest.request.facts.gpus <= at_most


def test_clusters_that_are_known_to_be_too_small_are_not_found_again() -> None:
    request = search_request("Llama-3.1-8B-Instruct", (1, 8, "h100-sxm"), input_tokens=512, output_tokens=64)
    fewest = fewest_gpus(request, 8, more_than=3, at_most=32)
    assert fewest is not None and fewest.request.facts.gpus == 4


@pytest.mark.parametrize("requests", [1, 100, 400, 2000])
def test_phases_apart_fit_into_memory_with_all_requests_that_are_asked_for(requests: int) -> None:
    load = {"input_tokens": 2048, "output_tokens": 256, "concurrency": requests}
    for gpus in (1, 2, 4):
        request = replace(search_request("Llama-3.1-8B-Instruct", (1, gpus, "h100-sxm"), **load), disaggregated=True)
        setting = base_setting(request)
        assert fits_somehow(request, setting) == (len(Screen(request, setting).holding) > 0)


def kinds(workload: dict[str, float], names: list[str]) -> list[Kind]:
    candidates: list[Kind] = []
    for name in names:
        accelerator = find_accelerator(name)
        request = search_request("Llama-3.1-8B-Instruct", (1, 8, name), **workload)
        block = HardwareBlock(accelerator=name, nodes=1, gpus_per_node=8)
        price = accelerator.on_demand_usd_per_hour
        request = replace(request, hardware=block, facts=facts_of(block, accelerator))
        candidates.append(Kind(request, 8, price))
    return candidates


def test_the_kind_with_the_least_memory_in_all_is_that_of_looking_at_each() -> None:
    workload = {"input_tokens": 2048, "output_tokens": 256, "tpot_ms_max": 8.0}
    candidates = kinds(workload, ["h100-sxm", "l40s", "h200-sxm", "a100-80gb-sxm"])
    clusters = [fewest_gpus(candidate.request, 8, at_most=16) for candidate in candidates]
    memory = [
        cluster.request.facts.gpus * cluster.request.facts.memory_bytes for cluster in clusters if cluster is not None
    ]
    smallest = least_memory(candidates, 16)
    assert smallest is not None
    assert smallest.request.facts.gpus * smallest.request.facts.memory_bytes == min(memory)


@pytest.mark.parametrize("rate", [2.0, 8.0, 20.0])
def test_the_cheapest_kind_is_that_of_looking_at_each_price(rate: float) -> None:
    workload = {
        "input_tokens": 2048,
        "output_tokens": 256,
        "request_rate": rate,
        "tpot_ms_max": 30.0,
        "objective": "cost",
    }
    candidates = kinds(workload, ["l40s", "a100-80gb-sxm", "h100-sxm"])
    best = cheapest(candidates, 16)
    assert best is not None
    usd: dict[str, float] = {}
    for candidate in candidates:
        sized = fewest_gpus(candidate.request, 8, at_most=16)
        if candidate.usd_per_gpu_hour is not None and sized is not None and sized.result is not None:
            usd[candidate.request.facts.accelerator.id] = sized.request.facts.gpus * sum(candidate.usd_per_gpu_hour) / 2
    assert best.request.facts.accelerator.id == min(usd, key=lambda name: usd[name])


RATES = [
    ("Llama-3.1-8B-Instruct", {"input_tokens": 2048, "output_tokens": 300, "request_rate": 60.0, "tpot_ms_max": 30.0}),
    ("Qwen3-32B", {"input_tokens": 2048, "output_tokens": 300, "request_rate": 15.0, "tpot_ms_max": 20.0}),
    ("Mixtral-8x7B-v0.1", {"input_tokens": 2048, "output_tokens": 300, "request_rate": 30.0, "tpot_ms_max": 30.0}),
]


@pytest.mark.parametrize(("model", "workload"), RATES, ids=[model for model, _ in RATES])
def test_the_cheapest_cluster_for_a_rate_is_the_smallest(model: str, workload: dict[str, float]) -> None:
    quick, cheap = (
        fewest_gpus(search_request(model, (1, 8, "h100-sxm"), **workload, objective=objective), 8, at_most=32)
        for objective in ("latency", "cost")
    )
    assert quick is not None and cheap is not None
    assert cheap.request.facts.gpus == quick.request.facts.gpus


@pytest.mark.parametrize(("model", "workload"), RATES, ids=[model for model, _ in RATES])
def test_a_sized_cluster_is_no_larger_than_what_a_plan_on_it_needs(model: str, workload: dict[str, float]) -> None:
    cluster = fewest_gpus(search_request(model, (1, 8, "h100-sxm"), **workload, objective="cost"), 8, at_most=32)
    assert cluster is not None and cluster.result is not None
    holding = [candidate for candidate in cluster.result.candidates if candidate.feasible]
    needed = [
        candidate.gpus if (candidate.billed_gpus or 0) <= 8 else (candidate.billed_gpus or 0) for candidate in holding
    ]
    assert min(needed) == cluster.request.facts.gpus


@pytest.mark.parametrize(("model", "workload"), RATES, ids=[model for model, _ in RATES])
@pytest.mark.parametrize("objective", ["latency", "cost"])
def test_what_fewer_gpus_of_a_named_cluster_do_is_said(model: str, workload: dict[str, float], objective: str) -> None:
    request = search_request(model, (2, 8, "h100-sxm"), **workload, objective=objective)
    alone = fewest_gpus(request, 8, at_most=16)
    assert alone is not None and alone.result is not None and alone.result.best is not None
    result, fewer = with_fewer(request, search(request))
    assert result.best is not None
    least = min(candidate.gpus for candidate in (result.best, fewer) if candidate is not None)
    assert least <= alone.result.best.gpus
    if objective == "cost":
        assert (result.best.billed_gpus or 0) <= -(-alone.request.facts.gpus // 8) * 8


def test_without_a_limit_no_number_of_gpus_is_enough() -> None:
    request = search_request("Llama-3.1-8B-Instruct", (1, 2, "h100-sxm"), input_tokens=512, output_tokens=8)
    result = search(request)
    assert with_fewer(request, result) == (result, None)
