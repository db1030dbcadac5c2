"""`search_strategies`: the ranked candidates for the question of the run, or for one near it.

Model, hardware and load are the question's own. `keep` narrows the space, `apart` says where phases lie, and `allow` is
what the person would have to allow: what is found with it is told and shown to the person, and cannot be submitted.
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
from ..stated_constraints import stated_constraints
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
    found = _found(desk, asked)
    told: dict[str, Any] = {"evaluated": sum(one.evaluated for one in found)}
    if asked.allow:
        told["would_need"] = list(asked.allow)
    left_out = [what for one in found for what in one.left_out]
    if left_out:
        told["not_looked_at_for_want_of_time"] = left_out
    candidates = _ranked(desk, [candidate for one in found for candidate in one.candidates])
    if not candidates:
        rejected = {rule: count for one in found for rule, count in (*one.rejected.items(), *one.refused.items())}
        return Answer({**told, "message": "no such strategy is legal and fits", "rejected": rejected}, "infeasible")
    if asked.allow:
        desk.needs(asked.allow, candidates[0])
    shown = candidates[: arguments.count or 5]
    told |= {"listed": len(candidates), "columns": list(_COLUMNS), "rows": [_row(desk, asked, one) for one in shown]}
    return Answer(rounded(told))


def _found(desk: Desk, asked: Asked) -> list[SearchResult]:
    """The searches of a call, from the desk where they were done before.

    Where phases may lie in either way and the search of the question leaves out apart, that is searched too.
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
    """The search of the question with what is kept and what is allowed.

    Raises:
        InputError: a line is of no form.
    """
    question = desk.question
    request, workload = question.request, question.request.workload
    if question.intent.concurrency_open:
        workload = workload.model_copy(update={"concurrency": question.intent.workload.concurrency})
    request = replace(request, workload=workload, concurrency_open=question.intent.concurrency_open)
    kept = stated_constraints(asked.keep) or ()
    if kept:
        every = (*(request.policy.constraints or ()), *kept)
        request = replace(request, policy=request.policy.model_copy(update={"constraints": every}))
    return allowed(request, asked.allow)


def _ranked(desk: Desk, candidates: list[Candidate]) -> list[Candidate]:
    """Candidates best first: one search ranks them already, two are merged by the objective."""
    key = desk.question.against_candidate
    return sorted(candidates, key=lambda one: (not one.feasible, one.ttft_ms is None, key(one).burden_share))


def _row(desk: Desk, asked: Asked, candidate: Candidate) -> list[Any]:
    memory = candidate.memory_per_gpu_bytes
    # What the request does not allow is no answer, so that it has no handle.
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
