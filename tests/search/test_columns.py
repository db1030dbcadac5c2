"""A search in columns gives what plan by plan gives, only quicker: the same figures, cuts, devices and pruning."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.builder import build_plan
from shardwright.tools.plan.document import HardwareBlock, PolicyBlock, ServingBlock, Strategy, WorkloadBlock
from shardwright.tools.plan.document import PhaseStrategy as Phase
from shardwright.tools.plan.placement import StageMaker, even_cut, gpu_count, place
from shardwright.tools.search.candidate import Candidate, SearchRequest, SearchResult
from shardwright.tools.search.devices import Footprint, end_of_replicas
from shardwright.tools.search.pipelines import BestCuts, StageCosts
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at

from ..examples import examples
from ..plan.tiny import DENSE
from ..spaces import disaggregated, strategies
from .enumeration import Point, best_of, compositions, front_of
from .questions import Question, drawn_questions, question
from .test_brute_force import MOST_LOST_TO_SCREEN, assert_covers

pytestmark = pytest.mark.thorough

# Figures of a graph and of columns are sums of the same terms in another order.
SHARE = 1e-9
# A cut must be faster than the even one by this share to be chosen.
WORTH_SHARE = 0.002
FIGURES = ("ttft_ms", "tpot_ms", "end_to_end_ms", "output_tokens_per_s", "output_tokens_per_s_per_gpu")
QUESTIONS = list(islice(drawn_questions(seed=20260, most_gpus=8), 40))
OTHERS = 4


def sampled(result: SearchResult, draw: random.Random) -> list[Candidate]:
    """The best, the ends of the front, some others, one that does not fit."""
    timed = [candidate for candidate in result.candidates if candidate.ttft_ms is not None]
    large = [candidate for candidate in result.candidates if candidate.ttft_ms is None]
    front = [result.candidates[place] for place in (*result.pareto[:1], *result.pareto[-1:])]
    return [*timed[:1], *front, *draw.sample(timed, min(OTHERS, len(timed))), *large[:1]]


@pytest.mark.parametrize("part", range(4))
def test_every_candidate_has_the_figures_of_its_own_plan(part: int) -> None:
    seen = 0
    for number, asked in enumerate(QUESTIONS[part::4]):
        result = search(asked.search)
        setting = base_setting(asked.search)
        for place_, candidate in enumerate(sampled(result, random.Random(number))):
            alone = candidate_at(asked.search, setting, candidate.strategy, candidate.concurrency)
            assert figures_of(candidate) == pytest.approx(figures_of(alone), rel=SHARE), (asked.name, candidate)
            for name in ("feasible", "why_not", "warnings", "gpus", "memory_per_gpu_bytes", "shortfall_bytes"):
                assert getattr(candidate, name) == getattr(alone, name), (asked.name, name, candidate)
            if place_ == 0 and candidate.ttft_ms is not None:
                assert_figures_of_the_graph(asked, candidate)
            seen += candidate.ttft_ms is not None
    assert seen > 20


def figures_of(candidate: Candidate) -> list[float]:
    """The candidate's figures; empty if it does not fit."""
    return [figure for name in FIGURES if (figure := getattr(candidate, name)) is not None]


def assert_figures_of_the_graph(asked: Question, candidate: Candidate) -> None:
    """The candidate's figures are those of the estimate of its document."""
    estimated = estimate(build_plan(asked.plan(candidate.strategy, candidate.concurrency)))
    latency, rates = estimated.latency, estimated.throughput
    figures = (candidate.ttft_ms, candidate.tpot_ms, candidate.end_to_end_ms, candidate.output_tokens_per_s)
    graph = (latency.ttft_ms, latency.tpot_ms, latency.end_to_end_ms, rates.dp_scaled_tokens_per_s)
    assert figures == pytest.approx(graph, rel=SHARE), (asked.name, candidate)
    assert candidate.memory_per_gpu_bytes == max(device.total_bytes for device in estimated.memory.per_device)


def apart(hardware: HardwareBlock, relaxations: tuple[str, ...], objective: str, model: str) -> Question:
    """A disaggregated search for TensorRT-LLM, which cuts a pipeline evenly by default."""
    return question(
        model,
        hardware,
        WorkloadBlock.model_validate(
            {"input_tokens": 2048, "output_tokens": 256, "concurrency": 32, "objective": objective, "tpot_ms_max": 30.0}
        ),
        policy=PolicyBlock.model_validate({"relaxations": relaxations}),
        serving=ServingBlock(engine="trtllm"),
        disaggregated=True,
    )


APART = [
    apart(HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=6), (), "throughput", "Llama-3.1-8B"),
    apart(HardwareBlock(accelerator="h200-sxm", nodes=2, gpus_per_node=3), ("attention_dp",), "cost", "Qwen3-30B-A3B"),
    apart(
        HardwareBlock(accelerator="h100-sxm", nodes=3, gpus_per_node=2),
        ("tp_in_expert",),
        "latency",
        "DeepSeek-V2-Lite",
    ),
]


@pytest.mark.parametrize("asked", APART, ids=lambda asked: asked.name)
def test_what_is_pruned_as_dominated_is_nowhere_best(asked: Question) -> None:
    """Every strategy is judged by itself, pruned or not."""
    result, setting, workload = search(asked.search), base_setting(asked.search), asked.search.workload
    all_strategies = list(disaggregated(asked.search.space))
    alone = [candidate_at(asked.search, setting, strategy, workload.concurrency) for strategy in all_strategies]
    assert len(all_strategies) == result.evaluated + result.pruned["dominated"]
    points = [
        Point(
            candidate.strategy,
            candidate.warnings,
            candidate.gpus,
            candidate.billed_gpus or candidate.gpus,
            candidate.ttft_ms,
            candidate.tpot_ms,
            candidate.output_tokens_per_s,
        )
        for candidate in alone
        if candidate.feasible and candidate.ttft_ms and candidate.tpot_ms and candidate.output_tokens_per_s
    ]
    assert result.best is not None and result.pruned["dominated"] > 0
    assert result.best.strategy in [
        point.strategy for point in best_of(points, workload.objective, workload.output_tokens)
    ]
    front = [result.candidates[place] for place in result.pareto]
    timed = [(candidate.tpot_ms, candidate.output_tokens_per_s_per_gpu) for candidate in front]
    assert_covers([(tpot_ms or 0.0, rate or 0.0) for tpot_ms, rate in timed], front_of(points), MOST_LOST_TO_SCREEN)


@pytest.mark.parametrize(
    "asked", [drawn for drawn in QUESTIONS if not drawn.search.disaggregated], ids=lambda drawn: drawn.name
)
def test_every_strategy_of_the_space_is_evaluated(asked: Question) -> None:
    """Each at least once, in the even cut; a fitted cut counts as another."""
    request = asked.search
    count = sum(1 for _ in strategies(request.space))
    alone = sum(1 for strategy in strategies(request.space) if strategy.prefill.pp == 1)
    evaluated = search(request).evaluated
    assert count <= evaluated <= alone + 2 * (count - alone)


SECONDS = st.floats(min_value=1e-6, max_value=1.0)


@st.composite
def stage_costs(draw: st.DrawFn) -> tuple[StageCosts, int]:
    """Costs of up to nine layers, of few kinds or all different, and how many stages to cut them into."""
    kinds = draw(st.lists(SECONDS, min_size=1, max_size=4))
    layers = draw(st.lists(st.sampled_from(kinds) | SECONDS, min_size=1, max_size=9))
    ends = st.just(0.0) | SECONDS
    return StageCosts(tuple(layers), draw(ends), draw(ends)), draw(st.integers(1, len(layers)))


def slowest(costs: StageCosts, cut: tuple[int, ...]) -> float:
    """Seconds of the slowest stage, layer by layer."""
    seconds, first = [], 0
    for stage, size in enumerate(cut):
        stage_s = sum(costs.layers[first : first + size])
        stage_s += costs.first * (stage == 0) + costs.last * (stage == len(cut) - 1)
        seconds.append(stage_s)
        first += size
    return max(seconds)


@given(stage_costs())
@examples(150)
def test_the_cut_is_the_best_of_all_compositions(case: tuple[StageCosts, int]) -> None:
    costs, stages = case
    least = min(slowest(costs, cut) for cut in compositions(len(costs.layers), stages))
    best, even = BestCuts(costs).cut(stages), even_cut(len(costs.layers), stages)
    if best is None:
        assert slowest(costs, even) * (1 - WORTH_SHARE) <= least * (1 + SHARE)
        return
    assert sum(best) == len(costs.layers) and len(best) == stages and min(best) > 0
    assert slowest(costs, best) == pytest.approx(least, rel=SHARE)
    assert slowest(costs, even) > least


class Inventory(Struct, frozen=True):
    """Nodes, GPUs in each, and devices of a stage and stages of two kinds of replicas."""

    nodes: int
    node: int
    first: tuple[int, int]
    second: tuple[int, int]


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    """Hardware, and two kinds of replicas that may run on it."""
    node, nodes = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    widths = st.integers(1, node) | st.sampled_from([node * count for count in range(1, nodes + 1)])
    sides = st.tuples(widths, st.integers(1, 7))
    return Inventory(nodes, node, draw(sides), draw(sides))


def phase(side: tuple[int, int], replicas: int | None = None) -> Phase:
    """`side`: devices of a stage, and stages."""
    return Phase(pp=side[1], tp=side[0], tp_ffn=side[0], replicas=replicas, stage_layers=(1,) * side[1])


def _number(device: str, node: int) -> int:
    home, _, place_ = device[1:].partition(".g")
    return int(home) * node + int(place_)


def is_torn(devices: list[int], node: int) -> bool:
    """Whether devices that would fit into a node lie in two."""
    return len(devices) <= node and devices[0] // node != devices[-1] // node


def devices_of(strategy: Strategy, case: Inventory) -> Iterator[list[int]]:
    """The device numbers of each replica; ends early if devices are too few or a replica is torn apart to fit."""
    layers = max(strategy.prefill.pp, strategy.decode.pp)
    maker = StageMaker(read_architecture({**DENSE, "num_hidden_layers": layers}))
    layout = place(strategy, maker, nodes=case.nodes, gpus_per_node=case.node)
    for replica in layout.replicas if layout is not None else ():
        numbers: list[int] = []
        for stage in replica.phases[0].stages:
            stage_numbers = [_number(device, case.node) for device in stage.devices]
            if is_torn(stage_numbers, case.node):
                return
            numbers.extend(stage_numbers)
        first = numbers[0] % case.node
        if is_torn(numbers, case.node) or (len(numbers) > case.node and first > 0):
            return
        yield numbers


@given(inventories(), st.integers(1, 12))
@examples(150)
def test_there_is_room_for_as_many_replicas_as_are_placed_whole(case: Inventory, count: int) -> None:
    footprint = Footprint.of(case.node, *case.first)
    alone = phase(case.first)
    strategy = Strategy(dp=count, gpu_count=count * case.first[0] * case.first[1], prefill=alone, decode=alone)
    placed = list(devices_of(strategy, case))
    assert (len(placed) == count) == (count <= footprint.room(case.nodes, case.node))
    if len(placed) == count:
        assert placed[-1][-1] + 1 == end_of_replicas(case.node, 0, count, footprint)


@given(inventories(), st.integers(1, 8), st.integers(1, 8))
@examples(150)
def test_two_kinds_of_replicas_end_where_they_are_placed(case: Inventory, count: int, rest: int) -> None:
    strategy = Strategy(dp=count + rest, gpu_count=1, prefill=phase(case.first, count), decode=phase(case.second, rest))
    strategy = strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
    taken = end_of_replicas(case.node, 0, count, Footprint.of(case.node, *case.first))
    end = end_of_replicas(case.node, taken, rest, Footprint.of(case.node, *case.second))
    placed = list(devices_of(strategy, case))
    assert (len(placed) == count + rest) == (end <= case.nodes * case.node)
    if len(placed) == count + rest:
        assert (placed[count - 1][-1] + 1, placed[-1][-1] + 1) == (taken, end)


def test_the_sample_covers_what_searches_differ_in() -> None:
    """Checks the draw: both kinds of deployment, open and stated loads, engines, relaxations, experts, stages."""
    requests: list[SearchRequest] = [request.search for request in QUESTIONS]
    assert (
        {bool(request.disaggregated) for request in requests}
        == {request.concurrency_open for request in requests}
        == {True, False}
    )
    assert {None if request.serving is None else request.serving.engine for request in requests} == {None, *JUDGED}
    assert {name for request in requests for name in request.policy.relaxations} >= {"attention_dp", "tp_in_expert"}
    assert {request.architecture.is_moe for request in requests} == {True, False}
    assert {request.hardware.nodes > 1 for request in requests} == {True, False}
