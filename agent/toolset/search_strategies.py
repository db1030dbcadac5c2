"""`search_strategies`: the ranked candidates for the question of the run; a further call is answered from the first.

Model, hardware, load, formats and limits are the question's own. A call says only how many candidates are wanted and
which degrees they are to have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from ...tools.language.said import StatedStrategy
from ...tools.plan.describe import describe
from ...tools.search.candidate import Candidate, SearchResult
from ...tools.search.search import search
from ..keeping import keeps
from ..loop.desk import Desk
from .estimate_dag import rounded
from .strategy_argument import StrategyArgument
from .tool import Answer, Arguments, Bench, Tool

_COLUMNS = (
    "rank", "plan", "feasible", "gpus", "concurrency", "ttft_ms", "tpot_ms", "end_to_end_ms", "output_tokens_per_s",
    "output_tokens_per_s_per_gpu", "memory_per_gpu_gb", "why_not",
)  # fmt: skip


class SearchArguments(Arguments):
    """What is wanted of the ranking."""

    count: Annotated[int, Field(ge=1, le=20)] | None = Field(default=None, description="candidates; null: 5")
    keep: StrategyArgument | None = Field(default=None, description="only candidates that have these degrees")


def _run(bench: Bench, arguments: SearchArguments) -> Answer:
    kept = None if arguments.keep is None else arguments.keep.stated()
    found = _found(bench.desk, kept)
    places = [place for place, one in enumerate(found.candidates) if kept is None or keeps(one.strategy, kept)]
    told: dict[str, Any] = {"evaluated": found.evaluated, "listed": len(found.candidates)}
    if found.left_out:
        told["not_looked_at_for_want_of_time"] = list(found.left_out)
    if not places:
        what = "no candidate that is listed has these degrees" if kept else "no legal strategy was found"
        return Answer(
            {**told, "message": f"{what}: build_dag says what is wrong with one", **_rejected(found)}, "infeasible"
        )
    shown = places[: arguments.count or 5]
    rows = [_row(place + 1, found.candidates[place]) for place in shown]
    told |= {"matching": len(places), "columns": list(_COLUMNS), "rows": rows}
    return Answer(rounded(told))


def _found(desk: Desk, kept: StatedStrategy | None) -> SearchResult:
    """The search of the question, from the desk where it was done before.

    Phases lie as the request says; where it says nothing and only one kind is searched, apart where that is wanted.
    """
    question = desk.question
    apart = question.intent.disaggregated
    wants_apart = kept is not None and None not in (kept.prefill.replicas, kept.decode.replicas)
    if apart is None and wants_apart and not question.request.looks_apart:
        apart = True
    if apart not in desk.searches:
        asked = question.intent.workload.concurrency
        workload = question.request.workload
        if question.intent.concurrency_open:
            workload = workload.model_copy(update={"concurrency": asked})
        desk.searches[apart] = search(
            replace(
                question.request,
                workload=workload,
                concurrency_open=question.intent.concurrency_open,
                disaggregated=apart,
            )
        )
    return desk.searches[apart]


def _rejected(found: SearchResult) -> dict[str, Any]:
    return {"rejected": found.rejected} if found.rejected else {}


def _row(rank: int, candidate: Candidate) -> list[Any]:
    memory = candidate.memory_per_gpu_bytes
    return [
        rank,
        describe(candidate.strategy),
        candidate.feasible,
        candidate.gpus,
        candidate.concurrency,
        candidate.ttft_ms,
        candidate.tpot_ms,
        candidate.end_to_end_ms,
        candidate.output_tokens_per_s,
        candidate.output_tokens_per_s_per_gpu,
        None if memory is None else memory / 1e9,
        "; ".join((*candidate.why_not, *(f"warned of {rule}" for rule in candidate.warnings))) or None,
    ]


SEARCH_STRATEGIES = Tool(
    name="search_strategies",
    description=(
        "The best strategies for the request by search of the whole space, ranked for its objective, with figures and "
        "why a candidate does not do."
    ),
    arguments=SearchArguments,
    run=_run,
)
