"""The fewest GPUs are the fewest: every smaller number, searched by itself, misses a limit or has no reserve."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.plan.constraints import BudgetConstraint
from shardwright.tools.plan.document import PolicyBlock, PrecisionBlock, ServingBlock
from shardwright.tools.search.batch import searched
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.reach import resized
from shardwright.tools.search.sizing import fewest_gpus

from .requests import search_request

_USUAL_NODE = 8
_CHAT = {"input_tokens": 512, "output_tokens": 128}
# Model, card, load and limits: at a rate, with users, and with the number of requests left open.
QUICK: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Llama-3.2-1B", "l4", _CHAT | {"min_tokens_per_second": 4000.0}),
    ("Llama-3.1-8B-Instruct", "l4", _CHAT | {"concurrency": 64, "tpot_ms_max": 60.0}),
    ("Llama-3.1-8B-Instruct", "l40s", {"input_tokens": 2000, "output_tokens": 300, "concurrency": 200,
                                       "ttft_ms_max": 4000.0}),
)  # fmt: skip
THOROUGH: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Llama-3.2-1B", "l4", _CHAT | {"request_rate": 60.0, "tpot_ms_max": 30.0}),
    ("Qwen3-30B-A3B", "a100-80gb-sxm", {"input_tokens": 1024, "output_tokens": 512, "request_rate": 10.0}),
    ("Llama-3.1-8B-Instruct", "l4", {"input_tokens": 512, "output_tokens": 64, "request_rate": 8.0,
                                     "tpot_ms_max": 100.0}),
    ("Llama-3.1-8B-Instruct", "l4", _CHAT | {"min_tokens_per_second": 1500.0, "objective": "throughput"}),
    ("Llama-3.1-8B-Instruct", "h100-sxm", {"input_tokens": 2048, "output_tokens": 256, "request_rate": 25.0,
                                           "tpot_ms_max": 25.0}),
    ("Llama-3.1-8B-Instruct", "a100-80gb-sxm", {"input_tokens": 1000, "output_tokens": 200, "request_rate": 20.0,
                                                "ttft_ms_max": 500.0, "ttft_statistic": "p99"}),
    ("Qwen3-32B", "h100-sxm", {"input_tokens": 2048, "output_tokens": 300, "request_rate": 10.0, "ttft_ms_max": 1000.0,
                               "ttft_statistic": "p99", "tpot_ms_max": 45.0}),
    ("Llama-3.3-70B-Instruct", "h100-sxm", {"input_tokens": 2500, "output_tokens": 350, "request_rate": 6.0,
                                            "ttft_ms_max": 2000.0, "ttft_statistic": "p99", "tpot_ms_max": 50.0}),
)  # fmt: skip


def asked(model: str, card: str, load: dict[str, Any]) -> SearchRequest:
    request = search_request(model, (1, _USUAL_NODE, card), **load)
    if model.endswith("70B-Instruct"):
        fp8 = PrecisionBlock(weights="fp8", kv_cache="bf16", activations="fp8")
        request = replace(request, precision=fp8)
    return request


def by_name(request: SearchRequest, gpus: int) -> Candidate | None:
    """The best plan on exactly `gpus` accelerators, `None` if none holds."""
    shape = (1, gpus) if gpus <= _USUAL_NODE else (gpus // _USUAL_NODE, _USUAL_NODE)
    return searched(resized(request, *shape))[1].best


def check_fewest(request: SearchRequest) -> None:
    fewest = fewest_gpus(request, _USUAL_NODE, at_most=_USUAL_NODE)
    assert fewest is not None and fewest.result is not None and fewest.result.best is not None
    gpus, least = fewest.request.facts.gpus, fewest.less_sound
    for smaller in range(1, gpus):
        best = by_name(request, smaller)
        assert best is None or best.lacks_reserve, f"{smaller} of {gpus} do too"
        # `less_sound` reports fewer GPUs that hold every limit but keep no reserve.
        assert (best is not None) == (least is not None and least.request.facts.gpus <= smaller)
    assert by_name(request, gpus) is not None


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "card", "load"), QUICK)
def test_every_smaller_number_is_refused_by_its_name(model: str, card: str, load: dict[str, Any]) -> None:
    check_fewest(asked(model, card, load))


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "card", "load"), (*QUICK, *THOROUGH))
@pytest.mark.parametrize("engine", [None, "vllm", "sglang"])
def test_it_is_so_with_every_engine(model: str, card: str, load: dict[str, Any], engine: str | None) -> None:
    request = asked(model, card, load)
    if engine is not None:
        policy = request.policy.model_copy(update={"relaxations": ("vocab_parallel",)})
        request = replace(request, policy=policy, serving=ServingBlock(engine=engine))
    check_fewest(request)


def test_a_budget_below_a_whole_node_pays_for_a_part_of_one() -> None:
    """Eight H100 at 3.495 USD an hour cost more than 20: five are paid for."""
    budget = BudgetConstraint(kind="usd_per_hour", value=20.0, usd_per_gpu_hour=3.495, words="20 an hour")
    asked = search_request("Llama-3.1-8B-Instruct", (1, _USUAL_NODE, "h100-sxm"), **_CHAT, concurrency=4)
    sized = fewest_gpus(replace(asked, policy=PolicyBlock(constraints=(budget,))), _USUAL_NODE)
    assert sized is not None and sized.request.facts.gpus <= 5
    too_little = budget.model_copy(update={"value": 3.0})
    assert fewest_gpus(replace(asked, policy=PolicyBlock(constraints=(too_little,))), _USUAL_NODE) is None


def test_the_cheapest_for_a_rate_is_the_fewest_that_hold_every_limit() -> None:
    """One L4 keeps up with 25 requests a second and not with 5% more: whoever pays by the hour did not ask for two."""
    load = {"input_tokens": 512, "output_tokens": 64, "request_rate": 25.0, "ttft_ms_max": 4000.0}
    fast = fewest_gpus(search_request("Llama-3.2-1B", (1, 2, "l4"), **load), 2, at_most=2)
    assert fast is not None and fast.request.facts.gpus == 2 and fast.less_sound is not None
    formats = tuple(PrecisionBlock(weights=name, kv_cache="bf16", activations="bf16") for name in ("bf16", "int8"))
    cheap = search_request("Llama-3.2-1B", (1, 2, "l4"), **load, objective="cost")
    for asked_formats in ((), formats):
        sized = fewest_gpus(replace(cheap, precisions=asked_formats), 2, at_most=2)
        assert sized is not None and sized.request.facts.gpus == 1
