"""`search_strategies`: the ranked candidates for the run's question, or for one near it.

Model, hardware and load are the question's. `keep` narrows the space, `apart` says where phases run, and `allow` is
what the person would have to allow: its results are shown to the person, and cannot be submitted.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import Field

from ...tools.errors import InputError
from ...tools.plan.describe import describe
from ...tools.search.candidate import Candidate, SearchRequest, SearchResult
from ...tools.search.search import search
from ..loop.desk import Asked, Desk
from ..loop.shorten import rounded
from ..loop.would_need import allowed
from ..stated.constraints import stated_constraints
from .tool import Answer, Arguments, Bench, Tool

_COLUMNS = (
    "handle", "plan", "feasible", "gpus", "concurrency", "ttft_ms", "tpot_ms", "output_tokens_per_s",
    "memory_per_gpu_gb", "against_reference", "why_not",
)  # fmt: skip
Line = Annotated[str, Field(max_length=200)]


class SearchArguments(Arguments):
    """What is looked for."""

    count: Annotated[int, Field(ge=1, le=20)] | None = Field(default=None, description="candidates; null: 5")
    keep: Annotated[tuple[Line, ...], Field(max_length=16)] | None = Field(
        default=None, description="constraints: 'tp <= 8', 'decode pp = 1', 'no sp', 'replicas = 2', 'ep within node'"
    )
    apart: bool | None = Field(default=None, description="prefill and decode on GPUs of their own; null: either")
    allow: Annotated[tuple[Line, ...], Field(max_length=8)] | None = Field(
        default=None,
        description="if allowed: 'tpot_ms = 42', 'end_to_end_ms = 9e3', 'weights = fp8', 'relax = attention_dp'",
    )


def _run(bench: Bench, arguments: SearchArguments) -> Answer:
    desk, asked = bench.desk, Asked(arguments.keep or (), arguments.apart, arguments.allow or ())
    results = _searches(desk, asked)
    content: dict[str, Any] = {"evaluated": sum(result.evaluated for result in results)}
    if asked.allow:
        content["would_need"] = list(asked.allow)
    left_out = [reason for result in results for reason in result.left_out]
    if left_out:
        content["not_looked_at_for_want_of_time"] = left_out
    candidates = _ranked(desk, [candidate for result in results for candidate in result.candidates])
    if not candidates:
        rejected = {rule: count for run in results for rule, count in (*run.rejected.items(), *run.refused.items())}
        return Answer({**content, "message": "no such strategy is legal and fits", "rejected": rejected}, "infeasible")
    if asked.allow:
        desk.needs(asked.allow, candidates[0])
    shown = candidates[: arguments.count or 5]
    content |= {"listed": len(candidates), "columns": list(_COLUMNS), "rows": [_row(desk, asked, hit) for hit in shown]}
    return Answer(rounded(content))


def _searches(desk: Desk, asked: Asked) -> list[SearchResult]:
    """The searches of a call, cached on the desk.

    If phases may be apart or together and the question's search covers only the latter, both are searched.
    """
    question = desk.question
    wanted = question.intent.disaggregated
    if wanted is not None and asked.apart not in (None, wanted):
        raise InputError(f"the request wants the phases {'apart' if wanted else 'together'}: that is not open")
    base = _request(desk, asked)
    apart = asked.apart if wanted is None else wanted
    both = apart is None and not base.looks_apart and base.facts.gpus > 1
    ways = (None, True) if both else (apart,)
    for way in ways:
        if (key := replace(asked, apart=way)) not in desk.searches:
            desk.searches[key] = search(replace(base, disaggregated=way))
    return [desk.searches[replace(asked, apart=way)] for way in ways]


def _request(desk: Desk, asked: Asked) -> SearchRequest:
    """The question's search with the constraints to keep and the lines to allow.

    Raises:
        InputError: a line is malformed.
    """
    question = desk.question
    request, workload = question.request, question.request.workload
    if question.intent.concurrency_open:
        workload = workload.model_copy(update={"concurrency": question.intent.workload.concurrency})
    request = replace(request, workload=workload, concurrency_open=question.intent.concurrency_open)
    constraints = stated_constraints(asked.keep) or ()
    if constraints:
        all_constraints = (*(request.policy.constraints or ()), *constraints)
        request = replace(request, policy=request.policy.model_copy(update={"constraints": all_constraints}))
    return allowed(request, asked.allow)


def _ranked(desk: Desk, candidates: list[Candidate]) -> list[Candidate]:
    """Candidates best first: one search ranks them already, two are merged by the objective."""
    key = desk.question.against_candidate
    return sorted(candidates, key=lambda plan: (not plan.feasible, plan.ttft_ms is None, key(plan).burden_share))


def _row(desk: Desk, asked: Asked, candidate: Candidate) -> list[Any]:
    memory = candidate.memory_per_gpu_bytes
    # A candidate that the request does not allow is no answer and has no handle.
    handle = desk.offer(candidate) if candidate.feasible and not asked.allow else None
    beside = None if candidate.ttft_ms is None else desk.question.against_candidate(candidate).change
    return [
        handle,
        describe(candidate.strategy),
        candidate.feasible,
        candidate.gpus,
        candidate.concurrency,
        candidate.ttft_ms,
        candidate.tpot_ms,
        candidate.output_tokens_per_s,
        None if memory is None else memory / 1e9,
        beside,
        "; ".join((*candidate.why_not, *(f"warned of {rule}" for rule in candidate.warnings))) or None,
    ]


SEARCH_STRATEGIES = Tool(
    name="search_strategies",
    description=(
        "The best strategies by exact search, phases apart included, ranked for the objective, with figures, handles "
        "to submit, and why a candidate does not do. `allow` asks what the person would gain by allowing more."
    ),
    arguments=SearchArguments,
    run=_run,
)
