"""The search finds what building, checking and estimating the DAG of every strategy finds, figure by figure."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.engines.names import EngineName as Engine
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.builder import BuildRequest
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.search.candidate import SearchRequest, SearchResult
from shardwright.tools.search.search import search

from .enumeration import Enumeration, Point, best_of, front_of

pytestmark = pytest.mark.thorough

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "cases" / "search_settings.json").read_text("utf-8"))
SETTINGS: list[dict[str, Any]] = CASES["settings"]
# Figures of a graph and of columns are sums of the same terms in another order.
SHARE = 1e-9
# What the best of all cuts may gain over the cuts that the search looks at.
MOST_LOST_TO_CUTS = 0.01
# What a point of the front may gain over those that the screen has simulated; `front_loss` of a setting where its model
# is so small that the host bounds most layouts alike.
MOST_LOST_TO_SCREEN = 0.06
# A strategy that breaks none but these is legal: it does not fit, or is too slow.
OF_THE_LOAD = frozenset({"ME001", "PE010"})


def config(name: str) -> dict[str, Any]:
    """The config of a model of the cases."""
    stated = dict(CASES["models"][name])
    base = stated.pop("of", None)
    return stated if base is None else {**config(base), **stated}


def build_request(setting: dict[str, Any]) -> BuildRequest:
    """All of a setting but the strategy."""
    alone = PhaseStrategy()
    return BuildRequest(
        model=ModelBlock(name=setting["model"], config=config(setting["model"])),
        hardware=HardwareBlock(**setting["hardware"]),
        workload=WorkloadBlock(**setting["workload"]),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        policy=PolicyBlock(relaxations=tuple(setting.get("relaxations", ()))),
        strategy=Strategy(dp=1, gpu_count=1, prefill=alone, decode=alone),
    )


def searched(setting: dict[str, Any], engine: Engine | None = None) -> SearchResult:
    """The search's result, without an engine or for an assumed one."""
    request = build_request(setting)
    accelerator = find_accelerator(setting["hardware"]["accelerator"])
    return search(
        SearchRequest(
            architecture=read_architecture(request.model.config),
            hardware=request.hardware,
            facts=facts_of(request.hardware, accelerator),
            workload=request.workload,
            precision=request.precision,
            policy=request.policy,
            disaggregated=setting.get("disaggregated", False),
            assumed_engine=engine,
        )
    )


def found_front(result: SearchResult) -> list[tuple[float, float]]:
    """(TPOT in ms, output tokens/s per GPU) of the search's front."""
    front = [result.candidates[place] for place in result.pareto]
    return [(candidate.tpot_ms or 0.0, candidate.output_tokens_per_s_per_gpu or 0.0) for candidate in front]


def test_there_are_twenty_settings_of_every_kind() -> None:
    assert len(SETTINGS) == 20
    assert {setting["workload"]["objective"] for setting in SETTINGS} == {"latency", "throughput", "cost"}
    assert {setting["model"] for setting in SETTINGS} <= set(CASES["models"])


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting["name"])
def test_the_optimum_and_the_front_are_those_of_the_slow_enumeration(setting: dict[str, Any]) -> None:
    assert_exact(setting)


@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS if setting.get("assumed")], ids=lambda setting: setting["name"]
)
def test_what_an_assumed_engine_cannot_start_is_left_out_and_nothing_else(setting: dict[str, Any]) -> None:
    slow = assert_exact(setting, setting["assumed"])
    assert any(rule.startswith("EN") for rules in slow.refused.values() for rule in rules)


def assert_exact(setting: dict[str, Any], engine: Engine | None = None) -> Enumeration:
    """Check the search against the slow enumeration, and return the latter."""
    slow = Enumeration(build_request(setting), disaggregated=setting.get("disaggregated", False), engine=engine)
    points = list(slow.points())
    result = searched(setting, engine)
    in_space = [point for point in points if slow.is_in_space(point.strategy)]
    assert_counts(slow, points, result)
    if not points:
        assert result.best is None and not result.pareto
        return slow
    # The best of all that the rules accept, not only of what the search promises to cover.
    assert_best(best_of(points, setting["workload"]["objective"], setting["workload"]["output_tokens"]), result)
    assert_covers(found_front(result), front_of(in_space), setting.get("front_loss", MOST_LOST_TO_SCREEN))
    return slow


def assert_counts(slow: Enumeration, points: list[Point], result: SearchResult) -> None:
    """Every legal strategy is accounted for: evaluated, too large, or pruned."""
    legal = [point.strategy for point in points]
    legal += [strategy for strategy, rules in slow.refused.items() if rules <= OF_THE_LOAD]
    count = sum(slow.is_in_space(strategy) for strategy in legal)
    assert count == result.evaluated + sum(result.pruned.values())


def assert_best(leading: list[Point], result: SearchResult) -> None:
    """The search's best is one of the leading points, with its figures."""
    best = result.best
    assert best is not None
    same = [point for point in leading if point.strategy == best.strategy]
    assert same, f"{best.strategy} was found, {leading[0].strategy} is the best"
    figures = (same[0].ttft_ms, same[0].tpot_ms, same[0].rate, same[0].gpus)
    assert (best.ttft_ms, best.tpot_ms, best.output_tokens_per_s, best.gpus) == pytest.approx(figures, rel=SHARE)


def assert_covers(front: list[tuple[float, float]], wanted: list[tuple[float, float]], most_lost: float) -> None:
    """Each wanted point has one of `front` near it or ahead of it: the search does not simulate every point."""
    for tpot_ms, rate in wanted:
        assert any(
            near_ms <= tpot_ms * (1 + most_lost) and near_rate >= rate * (1 - most_lost) for near_ms, near_rate in front
        ), (
            tpot_ms,
            rate,
            front,
        )


@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS if setting.get("all_cuts")], ids=lambda setting: setting["name"]
)
def test_no_other_cut_of_the_pipeline_is_much_better(setting: dict[str, Any]) -> None:
    """The best of all cuts of all strategies leads by little: the two cuts that the search tries are enough."""
    slow = Enumeration(build_request(setting), disaggregated=setting.get("disaggregated", False), all_cuts=True)
    points = [point for point in slow.points() if slow.is_in_space(point.strategy)]
    result, workload = searched(setting), setting["workload"]
    objective, output_tokens = workload["objective"], workload["output_tokens"]
    least = min(point.worth(objective, output_tokens) for point in points if not point.warned)
    (answered,) = {
        point.worth(objective, output_tokens) for point in points if point.strategy == result.candidates[0].strategy
    }
    # A tie goes to the simpler plan.
    assert answered <= least * (1 + MOST_LOST_TO_CUTS)
    assert_covers(found_front(result), front_of(points), setting.get("front_loss", MOST_LOST_TO_SCREEN))


@cache
def _some_points() -> tuple[Point, ...]:
    return tuple(Enumeration(build_request(SETTINGS[0]), disaggregated=False).points())


def test_the_slow_ranking_has_the_stated_order() -> None:
    """Checks the measure itself: in a tie fewer GPUs win, and a warned plan never leads an unwarned one."""
    few, *more = sorted(_some_points(), key=lambda point: point.gpus)
    wide = more[-1]
    close = Point(wide.strategy, (), wide.gpus, wide.billed, few.ttft_ms * 0.999, few.tpot_ms * 0.999, few.rate * 1.001)
    ahead = Point(wide.strategy, ("GP005",), wide.gpus, wide.billed, few.ttft_ms / 2, few.tpot_ms / 2, few.rate * 2)
    clear = Point(wide.strategy, (), wide.gpus, wide.billed, few.ttft_ms / 2, few.tpot_ms / 2, few.rate * 2)
    assert best_of([few, close, ahead], "latency", 128) == [few]
    assert best_of([few, clear], "latency", 128) == [clear]
