"""Tables time what plans time: layers add up to stages and stages to pipelines, wherever their groups lie."""

from __future__ import annotations

import gc
import random
import weakref

import pytest
from msgspec.structs import replace

from shardwright.tools.plan.document import PolicyBlock, Relaxation
from shardwright.tools.search.pipelines import pipelines_of
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at

from ..spaces import strategies
from .requests import search_request

pytestmark = pytest.mark.thorough

SHARE = 1e-9
FIGURES = ("ttft_ms", "tpot_ms", "end_to_end_ms", "output_tokens_per_s")


LARGE: list[tuple[str, tuple[int, int, str], tuple[Relaxation, ...]]] = [
    # Stages wider than a domain of 72 lie in one domain or in two, by their place.
    ("Llama-3.1-8B-Instruct", (20, 4, "gb200-nvl72"), ()),
    ("Qwen3-30B-A3B", (20, 4, "gb200-nvl72"), ("attention_dp",)),
    ("gpt-oss-120b", (4, 8, "h100-sxm"), ("tp_in_expert",)),
]


@pytest.mark.parametrize(("model", "hardware", "relaxations"), LARGE)
def test_of_a_large_space_nothing_is_left_out(
    model: str, hardware: tuple[int, int, str], relaxations: tuple[Relaxation, ...]
) -> None:
    request = search_request(model, hardware, input_tokens=2048, output_tokens=128, concurrency=64)
    request = replace(request, policy=PolicyBlock(relaxations=relaxations), disaggregated=False)
    result, setting = search(request), base_setting(request)
    count = sum(1 for _ in strategies(request.space))
    assert count > 700 and not result.pruned
    assert count <= result.evaluated <= 2 * count
    timed = [candidate for candidate in result.candidates if candidate.ttft_ms is not None]
    for candidate in random.Random(3).sample(timed, 12):
        alone = candidate_at(request, setting, candidate.strategy, candidate.concurrency)
        for name in FIGURES:
            assert getattr(candidate, name) == pytest.approx(getattr(alone, name), rel=SHARE), (
                name,
                candidate.strategy,
            )
        assert (candidate.memory_per_gpu_bytes, candidate.warnings) == (alone.memory_per_gpu_bytes, alone.warnings)


def test_no_strategy_of_a_large_space_is_better_than_the_best() -> None:
    """Checks 60 random strategies, each simulated alone."""
    request = search_request("gpt-oss-120b", (4, 8, "h100-sxm"), input_tokens=2048, output_tokens=128, concurrency=64)
    request = replace(request, workload=request.workload.model_copy(update={"objective": "throughput"}))
    best, setting = search(request).best, base_setting(request)
    assert best is not None and best.output_tokens_per_s is not None
    pool = list(strategies(request.space))
    for strategy in random.Random(11).sample(pool, 60):
        alone = candidate_at(request, setting, strategy, 64)
        # Ties go to fewer GPUs; plans without a warning lead.
        if alone.feasible and not alone.warnings and alone.output_tokens_per_s is not None:
            assert alone.output_tokens_per_s <= best.output_tokens_per_s * 1.0051, strategy


def test_a_model_lives_as_long_as_what_is_kept_by_its_identity() -> None:
    request = search_request("Llama-3.1-8B", (1, 1, "h100-sxm"), input_tokens=512, output_tokens=64, concurrency=4)
    search(request)
    identity, model = id(request.architecture), weakref.ref(request.architecture)
    caches = pipelines_of(((request.architecture.num_layers,),)).caches
    del request
    gc.collect()
    assert any(identity in answers for answers in caches.values())
    assert model() is not None
