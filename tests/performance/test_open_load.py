"""A stated rate of requests: whether they pile up is found near what a deployment serves at most, and not far below."""

from __future__ import annotations

import pytest

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.planned_run import lengths_of, planned_run
from shardwright.tools.performance.serving.load import OpenLoop
from shardwright.tools.performance.serving_estimate import serve
from shardwright.tools.plan.document import PhaseStrategy, PrecisionBlock, ServingBlock, Strategy, WorkloadBlock

from .physics_space import Deployment

MODELS = {"dense": "Llama-3.1-8B", "experts": "Qwen3-30B-A3B"}


def layout(model: str, *, apart: bool, rate: float | None = None) -> LoadedLayout:
    """A replica of two GPUs, or one of each phase, under `rate` requests per second."""
    side = PhaseStrategy(replicas=1) if apart else PhaseStrategy(tp=2, tp_ffn=2)
    return Deployment(
        MODELS[model],
        find_accelerator("h100-sxm"),
        1,
        2,
        Strategy(dp=2 if apart else 1, gpu_count=2, prefill=side, decode=side),
        PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        WorkloadBlock(input_tokens=2048, output_tokens=128, concurrency=256, request_rate=rate),
        ServingBlock(),
    ).layout()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("model", MODELS)
def test_requests_pile_up_just_above_what_is_served_at_most_and_not_below(model: str, *, apart: bool) -> None:
    asked = layout(model, apart=apart)
    # All arrive at once: the rate at which they are served is the highest possible.
    many = 6000
    most = many / serve(asked, OpenLoop(1e5, many), lengths_of(asked)).makespan_s
    for share, is_too_much in ((0.6, False), (0.9, False), (1.1, True), (1.5, True)):
        assert planned_run(layout(model, apart=apart, rate=share * most)).times.saturated is is_too_much, share
