"""A search in which two halves of each batch overlap."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.plan.document import ServingBlock
from shardwright.tools.search.search import search

from .requests import search_request


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", ["Qwen3-8B", "Qwen3-30B-A3B"])
def test_more_requests_may_wait_than_run_where_their_number_is_open(model: str) -> None:
    request = search_request(model, (1, 2, "l40s"), input_tokens=30_000, output_tokens=64, objective="throughput")
    result = search(replace(request, serving=ServingBlock(overlap="two_batch"), disaggregated=False))
    assert result.best is not None


@pytest.mark.parametrize(("engine", "needs"), [("vllm", "attention_dp"), ("sglang", "ep")])
def test_a_named_engine_has_only_layouts_in_which_it_overlaps(engine: str, needs: str) -> None:
    request = search_request("Qwen3-30B-A3B", (1, 2, "h100-sxm"), input_tokens=2048, output_tokens=64, concurrency=16)
    serving = ServingBlock(engine=engine, overlap="two_batch")
    policy = request.policy.model_copy(update={"relaxations": ("attention_dp",)})
    result = search(replace(request, serving=serving, policy=policy, disaggregated=False))
    assert result.candidates
    assert all((getattr(candidate.strategy.decode, needs) or 1) > 1 for candidate in result.candidates)
