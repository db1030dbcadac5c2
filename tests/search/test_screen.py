"""The screen agrees with the simulation: what it leaves out would not have won, and its bounds are the same."""

from __future__ import annotations

from itertools import islice

import pytest

from shardwright.tools.performance.capacity import cache_tokens
from shardwright.tools.plan.document import HardwareBlock, PolicyBlock, ServingBlock, WorkloadBlock
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.replicas import ReplicaScreen
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at, layout_at
from shardwright.tools.search.space import colocated_kinds

from ..spaces import strategies
from .questions import Question, drawn_questions, question

# What the best of all strategies may gain over the search's answer: ties go to fewer GPUs and simpler plans.
MOST_LOST = 0.01


def load(
    cluster: str, asked: tuple[int, int, int], objective: str, **limits: float
) -> tuple[HardwareBlock, WorkloadBlock]:
    """Nodes, GPUs in each and their kind; tokens in and out, and requests in flight."""
    nodes, gpus, accelerator = cluster.split("x", 2)
    names = ("input_tokens", "output_tokens", "concurrency")
    return HardwareBlock(
        accelerator=accelerator, nodes=int(nodes), gpus_per_node=int(gpus), inter_node_bw_gb_s=25.0
    ), WorkloadBlock.model_validate(dict(zip(names, asked, strict=True)) | {"objective": objective} | limits)


# Answers of one token, whose requests wait for prompts alone; few requests in the batches of a pipeline; prompts that
# share a pass; requests that come at a rate.
CASES = (
    question(
        "Qwen3-30B-A3B",
        *load("4x1xl40s", (8192, 1, 16), "throughput", tpot_ms_max=25.0),
        policy=PolicyBlock(relaxations=("kv_sequence_decode",)),
    ),
    question(
        "Mixtral-8x7B-v0.1",
        *load("1x6xh20", (2048, 256, 3), "cost"),
        serving=ServingBlock(engine="trtllm"),
        disaggregated=True,
    ),
    question("Llama-3-8B", *load("4x1xa40", (1000, 1, 32), "cost", tpot_ms_max=25.0), disaggregated=True),
    question("gemma-2-9b", *load("1x5xmi325x", (2048, 2, 128), "latency", request_rate=2.0), disaggregated=True),
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("asked", CASES, ids=lambda asked: asked.name)
def test_no_strategy_that_was_not_simulated_is_better(asked: Question) -> None:
    request, setting = asked.search, base_setting(asked.search)
    best, load_of = search(request, setting).best, request.workload
    candidates = [
        candidate_at(request, setting, strategy, load_of.concurrency) for strategy in strategies(request.space)
    ]
    clean = [candidate for candidate in candidates if candidate.feasible and not candidate.warnings]
    assert best is not None and clean
    assert worth(best, load_of.objective) <= min(worth(candidate, load_of.objective) for candidate in clean) * (
        1 + MOST_LOST
    )


def test_what_a_replica_runs_at_once_is_what_its_engine_has_room_for() -> None:
    seen = 0
    for asked in islice(drawn_questions(seed=5, most_gpus=8), 40):
        request, setting = asked.search, base_setting(asked.search)
        if request.disaggregated:
            continue
        screen = ReplicaScreen(request, setting)
        for kind in islice(colocated_kinds(request.space), 4):
            replicas = screen.evenly_cut(kind, list(kind.rooms))
            for replica, most in zip(replicas.each, replicas.memory.running(replicas.pipelines), strict=True):
                capacity = cache_tokens(layout_at(request, setting, replica.strategy(1), 1)) // setting.request_tokens
                assert most == kind.attention_groups * max(1, min(capacity, setting.max_sequences)), asked.name
                seen += 1 < capacity < setting.max_sequences
    assert seen > 50
