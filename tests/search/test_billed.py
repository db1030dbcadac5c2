"""Nodes are rented whole: the cheapest plan has the smallest bill, not the fewest GPUs in use."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.plan.document import Strategy
from shardwright.tools.plan.placement import StageMaker, place
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.search import search

from .requests import search_request

LOADS = tuple(product(("Llama-3.1-8B", "Qwen3-30B-A3B"), ((2, 8), (3, 4), (2, 3)), (None, True)))


def billed(strategy: Strategy, architecture: Architecture, nodes: int, gpus_per_node: int) -> int:
    """GPUs of the nodes that the devices of `strategy` are in, by the plan's own layout."""
    layout = place(strategy, StageMaker(architecture), nodes=nodes, gpus_per_node=gpus_per_node)
    assert layout is not None
    return len({device.split(".")[0] for device in layout.devices}) * gpus_per_node


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("model", "cluster", "apart"), LOADS)
def test_the_cheapest_has_the_least_bill_for_a_token(model: str, cluster: tuple[int, int], apart: bool | None) -> None:
    nodes, per_node = cluster
    asked = search_request(
        model, (nodes, per_node, "h100-sxm"), input_tokens=1024, output_tokens=64, concurrency=48, objective="cost"
    )
    asked = replace(asked, disaggregated=apart)
    result = search(asked)
    assert result.best is not None and result.best.output_tokens_per_s is not None
    for candidate in result.candidates:
        if candidate.output_tokens_per_s is not None:
            assert candidate.billed_gpus == billed(candidate.strategy, asked.architecture, nodes, per_node)
            assert worth(candidate, "cost") == pytest.approx(
                (candidate.billed_gpus or 0) / candidate.output_tokens_per_s
            )
    clean = [candidate for candidate in result.candidates if candidate.feasible and not candidate.warnings]
    assert worth(result.best, "cost") <= min(worth(candidate, "cost") for candidate in clean) * 1.005
