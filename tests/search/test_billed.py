"""Nodes are rented whole: the cheapest plan is that of the least bill, not of the fewest GPUs in use."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shardwright.tools.plan.document import Strategy
from shardwright.tools.plan.placement import place
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.search import search

from .requests import search_request

LOADS = tuple(product(("Llama-3.1-8B", "Qwen3-30B-A3B"), ((2, 8), (3, 4), (2, 3)), (None, True)))


def billed(strategy: Strategy, layers: int, nodes: int, gpus_per_node: int) -> int:
    """GPUs of the nodes that the devices of `strategy` are in, by the plan's own placement."""
    placement = place(strategy, layers, nodes=nodes, gpus_per_node=gpus_per_node)
    assert placement is not None
    stages = [stage for one in placement for phase in (one.prefill, one.decode) for stage in phase or ()]
    return len({device.split(".")[0] for stage in stages for device in stage.devices}) * gpus_per_node


@pytest.mark.parametrize(("model", "cluster", "apart"), LOADS)
def test_the_cheapest_has_the_least_bill_for_a_token(model: str, cluster: tuple[int, int], apart: bool | None) -> None:
    nodes, per_node = cluster
    asked = search_request(
        model, (nodes, per_node, "h100-sxm"), input_tokens=1024, output_tokens=64, concurrency=48, objective="cost"
    )
    asked = replace(asked, disaggregated=apart)
    found = search(asked)
    assert found.best is not None and found.best.output_tokens_per_s is not None
    layers = asked.architecture.num_layers
    for one in found.candidates:
        if one.output_tokens_per_s is not None:
            assert one.billed_gpus == billed(one.strategy, layers, nodes, per_node)
            assert worth(one, "cost") == pytest.approx((one.billed_gpus or 0) / one.output_tokens_per_s)
    clean = [one for one in found.candidates if one.feasible and not one.warnings]
    assert worth(found.best, "cost") <= min(worth(one, "cost") for one in clean) * 1.005
