"""A limit on the whole answer: a search never answers with a plan that misses it, and drops none that holds it."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec import Struct
from msgspec.structs import replace

from shardwright.tools.performance.limits import figures_of_run, first_token_ms_max, stated_limits, token_ms_max
from shardwright.tools.plan.document import Statistic, WorkloadBlock
from shardwright.tools.plan.lengths import RequestLengths
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.floors import is_out_of_reach
from shardwright.tools.search.ranking import limited_figure, worth
from shardwright.tools.search.screen import Screen
from shardwright.tools.search.search import base_setting, search
from shardwright.tools.search.simulated import candidate_at, run_at

from ..spaces import strategies
from .requests import search_request

# What the best of all strategies may gain over the search's answer: ties go to fewer GPUs and simpler plans.
MOST_LOST = 0.01
SPREAD = RequestLengths.model_validate({
    "input": {"percentiles": [[0, 100], [50, 500], [100, 8000]]},
    "output": {"percentiles": [[0, 4], [50, 60], [90, 400], [100, 900]]},
})  # fmt: skip


class Case(Struct, frozen=True, eq=False):
    """A small space, the statistic of its limit, and which share of all strategies is to hold it."""

    name: str
    request: SearchRequest
    statistic: Statistic
    holding: float


def case(
    name: str,
    model: str,
    hardware: tuple[int, int, str],
    statistic: Statistic = "mean",
    holding: float = 0.4,
    **load: object,
) -> Case:
    """A case of a catalogue model; `load` are fields of its workload."""
    tokens = {"input_tokens": 2048, "output_tokens": 128, "concurrency": 8}
    if "lengths" in load:
        tokens |= zip(("input_tokens", "output_tokens"), map(round, SPREAD.spread(1, 1).means), strict=True)
    request = search_request(model, hardware, **{**tokens, "objective": "cost", **load})
    return Case(name, request, statistic, holding)


CASES = (
    case("a dense model, its mean", "Llama-3.1-8B-Instruct", (1, 4, "h100-sxm")),
    case("few hold", "Llama-3.1-8B-Instruct", (1, 4, "l40s"), holding=0.15, objective="throughput"),
    case("for latency", "Qwen3-32B", (1, 4, "h100-sxm"), "p90", objective="latency", concurrency=16),
    case("experts", "Qwen3-30B-A3B", (1, 4, "h20"), "p95", holding=0.15, concurrency=12),
    case("long answers", "Llama-3.1-8B-Instruct", (1, 4, "a100-80gb-sxm"), "p99", output_tokens=900),
    case("an answer of one token", "Llama-3.1-8B-Instruct", (1, 4, "l40s"), output_tokens=1, concurrency=3),
    case("the median of lengths that spread", "Llama-3.1-8B-Instruct", (1, 4, "h100-sxm"), "p50", lengths=SPREAD),
    case("the slowest of lengths that spread", "Llama-3.1-8B-Instruct", (1, 4, "h100-sxm"), "p95", lengths=SPREAD),
    case("requests at a rate", "Llama-3.1-8B-Instruct", (1, 4, "l40s"), "p95", request_rate=0.8, concurrency=16),
)  # fmt: skip


# Searches of spread lengths and of rates take most of the time.
ASKED = [
    pytest.param(
        entry,
        id=entry.name,
        marks=(pytest.mark.thorough,)
        if entry.request.workload.lengths is not None or entry.request.workload.request_rate is not None
        else (),
    )
    for entry in CASES
]


@cache
def figures(case: Case) -> tuple[tuple[Candidate, float], ...]:
    """Every strategy that fits without the limit, with the end-to-end time in ms of its own run."""
    request, setting = case.request, base_setting(case.request)
    fitting: list[tuple[Candidate, float]] = []
    for strategy in strategies(replace(request.space, disaggregated=None if request.looks_apart else False)):
        candidate = candidate_at(request, setting, strategy, request.workload.concurrency)
        if candidate.ttft_ms is not None and not candidate.queue_grows:
            times = run_at(request, setting, strategy, request.workload.concurrency).times
            fitting.append((candidate, times.end_to_end.in_ms()[case.statistic]))
    return tuple(fitting)


def limited(case: Case) -> tuple[SearchRequest, float]:
    """The request with a limit that the stated share of all strategies holds, and that limit in ms."""
    ordered = sorted(figure for _, figure in figures(case))
    bound = ordered[int(case.holding * (len(ordered) - 1))] * 1.0001
    limits = {"end_to_end_ms_max": bound, "end_to_end_statistic": case.statistic}
    return replace(case.request, workload=case.request.workload.model_copy(update=limits)), bound


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", ASKED)
def test_the_answer_is_the_best_of_all_strategies_that_hold(asked: Case) -> None:
    request, bound = limited(asked)
    holding = [candidate for candidate, figure in figures(asked) if figure <= bound and not candidate.warnings]
    assert 0 < len(holding) < len(figures(asked))
    best, objective = search(request).best, request.workload.objective
    assert best is not None
    assert worth(best, objective) <= min(worth(candidate, objective) for candidate in holding) * (1 + MOST_LOST)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_feasible_holds_the_limit_and_what_is_not_says_by_how_much(asked: Case) -> None:
    request, bound = limited(asked)
    figure_of = {candidate.strategy: figure for candidate, figure in figures(asked)}
    (limit,) = [stated for stated in stated_limits(request.workload) if stated.field == "end_to_end_ms_max"]
    limit_name = "end to end" if asked.statistic == "mean" else f"end to end ({asked.statistic})"
    seen = 0
    for candidate in search(request).candidates:
        if candidate.strategy in figure_of:
            assert candidate.feasible == (figure_of[candidate.strategy] <= bound)
            assert limited_figure(candidate, limit) == pytest.approx(figure_of[candidate.strategy])
            assert candidate.feasible or any(f"PE010: {limit_name} " in why for why in candidate.why_not)
            seen += 1
    assert seen > 3


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", ASKED)
def test_the_screen_leaves_out_nothing_that_holds(asked: Case) -> None:
    request, bound = limited(asked)
    screen = Screen(request, base_setting(request))
    holding = screen.holding
    screened = {screen.strategy(holding, row) for row in range(len(holding))}
    together = [
        candidate.strategy
        for candidate, figure in figures(asked)
        if figure <= bound and candidate.strategy.prefill.replicas is None
    ]
    assert together
    assert not [strategy for strategy in together if strategy not in screened]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", ASKED)
def test_what_no_strategy_reaches_is_infeasible_and_only_that_is_called_out_of_reach(asked: Case) -> None:
    request, _ = limited(asked)
    assert not is_out_of_reach(request, base_setting(request))
    least = min(figure for _, figure in figures(asked)) * 0.98
    tight = replace(request, workload=request.workload.model_copy(update={"end_to_end_ms_max": least}))
    assert search(tight).best is None
    hopeless = replace(request, workload=request.workload.model_copy(update={"end_to_end_ms_max": least / 1000}))
    assert not len(Screen(hopeless, base_setting(hopeless)).holding)
    assert is_out_of_reach(hopeless, base_setting(hopeless)) == (request.workload.output_tokens > 1)


@pytest.mark.thorough
def test_an_open_number_of_requests_is_fitted_to_the_limit() -> None:
    load = {"input_tokens": 2048, "output_tokens": 128, "objective": "throughput"}
    for statistic in ("mean", "p95"):
        limits = {"end_to_end_ms_max": 4000.0, "end_to_end_statistic": statistic}
        request = search_request("Llama-3.1-8B-Instruct", (1, 2, "h100-sxm"), **load, **limits)
        best = search(request).best
        assert best is not None and best.concurrency > 16
        run = run_at(request, base_setting(request), best.strategy, best.concurrency)
        figure = figures_of_run(run).of(stated_limits(request.workload)[0])
        # The limit holds, and little of it is left unused.
        assert 0.75 * 4000.0 <= figure <= 4000.0


BOUNDS = (
    ({}, None, None),
    ({"ttft_ms_max": 300.0, "tpot_ms_max": 20.0}, 300.0, 20.0),
    ({"end_to_end_ms_max": 1000.0}, 1000.0, 10.0),
    ({"end_to_end_ms_max": 1000.0, "ttft_ms_max": 300.0, "tpot_ms_max": 20.0}, 300.0, 10.0),
    ({"end_to_end_ms_max": 9000.0, "tpot_ms_max": 20.0}, 9000.0, 20.0),
    ({"end_to_end_ms_max": 1000.0, "output_tokens": 1}, 1000.0, None),
)


@pytest.mark.parametrize(("limits", "first_ms", "each_ms"), BOUNDS)
def test_what_limits_leave_for_the_first_token_and_for_each_other(
    limits: dict[str, float], first_ms: float | None, each_ms: float | None
) -> None:
    workload = WorkloadBlock.model_validate({"input_tokens": 512, "output_tokens": 101, **limits})
    assert (first_token_ms_max(workload), token_ms_max(workload)) == (first_ms, each_ms)
