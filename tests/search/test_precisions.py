"""Number formats that are left open are searched like degrees: the answer is the best of all searches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import PrecisionBlock
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.screen import Screen, fits_somehow
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.sizing import fewest_gpus

from .requests import search_request

BF16 = PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16")
FP8 = PrecisionBlock(weights="fp8", kv_cache="fp8", activations="fp8")
INT4 = PrecisionBlock(weights="int4", kv_cache="bf16", activations="bf16")
OPEN = (BF16, FP8, INT4)


def asked(**workload: object) -> SearchRequest:
    """A search on two accelerators."""
    return search_request("Llama-3.1-8B-Instruct", (1, 2, "h100-sxm"), input_tokens=1024, output_tokens=128, **workload)


@pytest.mark.parametrize("objective", ["latency", "throughput", "cost"])
def test_the_best_is_that_of_the_best_precision(objective: str) -> None:
    request = asked(concurrency=16, objective=objective)
    results = {precision.weights: search(replace(request, precision=precision)) for precision in OPEN}
    answer = search(replace(request, precisions=OPEN))
    best = min(
        (result.best for result in results.values() if result.best is not None),
        key=lambda candidate: (
            (candidate.end_to_end_ms or 0.0) if objective == "latency" else -(candidate.output_tokens_per_s or 0.0)
        ),
    )
    assert answer.best is not None and answer.best.precision is not None
    same = [
        candidate
        for candidate in results[answer.best.precision.weights].candidates
        if candidate.strategy == answer.best.strategy
    ]
    assert answer.best.output_tokens_per_s == same[0].output_tokens_per_s
    if objective != "cost":
        assert answer.best.end_to_end_ms == pytest.approx(best.end_to_end_ms, rel=0.006)
    assert answer.evaluated == sum(result.evaluated for result in results.values())
    assert all(candidate.precision in OPEN for candidate in answer.candidates)


@pytest.mark.thorough
def test_no_point_of_the_joint_front_is_beaten_by_one_of_any_precision() -> None:
    answer = search(replace(asked(), precisions=OPEN))
    front = [answer.candidates[place] for place in answer.pareto]
    assert front
    for candidate in front:
        for rival in answer.candidates:
            if rival.feasible and rival.tpot_ms is not None and candidate.tpot_ms is not None:
                rates = rival.output_tokens_per_s_per_gpu or 0.0, candidate.output_tokens_per_s_per_gpu or 0.0
                assert not (rival.tpot_ms < candidate.tpot_ms * (1 - 1e-9) and rates[0] > rates[1] * (1 + 1e-9))


def test_a_request_is_settled_on_the_precision_of_its_plan() -> None:
    request = replace(asked(concurrency=16), precisions=OPEN)
    settled = request.settled(search(request).best)
    assert settled.precision in OPEN and settled.precisions == ()
    assert request.settled(None) == request


def test_what_looks_at_one_setting_refuses_open_formats() -> None:
    request = replace(asked(), precisions=OPEN)
    for ask in (Screen, fits_somehow):
        with pytest.raises(InputError, match="number formats are open"):
            ask(request, base_setting(request))
    assert all(fits_somehow(single, base_setting(single)) for single in request.each_precision())


@pytest.mark.thorough
def test_the_cheapest_part_of_a_node_is_that_of_the_cheapest_format() -> None:
    request = asked(objective="cost")
    clusters = [fewest_gpus(single, 8) for single in replace(request, precisions=OPEN).each_precision()]
    answer = fewest_gpus(replace(request, precisions=OPEN), 8)
    assert answer is not None and answer.result is not None and answer.result.best is not None
    bests = [cluster.result.best for cluster in clusters if cluster is not None and cluster.result is not None]
    rates = [best.output_tokens_per_s_per_gpu or 0.0 for best in bests if best is not None]
    assert answer.result.best.output_tokens_per_s_per_gpu == max(rates)


@pytest.mark.thorough
def test_fewer_accelerators_do_where_a_smaller_format_may_be_chosen() -> None:
    request = search_request("Llama-3.1-70B-Instruct", (1, 8, "h100-sxm"), input_tokens=1024, output_tokens=128)
    alone = fewest_gpus(request, 8, at_most=8)
    answer = fewest_gpus(replace(request, precisions=OPEN), 8, at_most=8)
    assert alone is not None and answer is not None
    assert answer.request.facts.gpus < alone.request.facts.gpus and answer.request.precision != BF16
    assert answer.request.precisions == ()
