"""The figures of a strategy for a question at its best load, and how much worse one strategy is than another."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from ...tools.errors import InputError
from ...tools.plan.document import Strategy
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.ranking import worth
from ...tools.search.search import base_setting
from ...tools.search.simulated import candidate_at, refined
from ..loop.question import MOST_CONCURRENT, Question
from .judged import CacheKey


def best_figures(question: Question, strategy: Strategy) -> Candidate:
    """`strategy` at the question's load; if that was left open, at the load that serves the objective best.

    An open load doubles from one request per replica until memory or a limit ends it, and is then refined.

    Raises:
        InputError: a needed fact is unknown, or the hardware is too small.
    """
    return _best_figures(_Same(question), CacheKey(strategy, strategy.model_dump_json()))


class _Same:
    """A question as a cache key, compared by identity, not by content."""

    __slots__ = ("question",)

    def __init__(self, question: Question) -> None:
        self.question = question

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.question is other.question

    def __hash__(self) -> int:
        return id(self.question)


@lru_cache(maxsize=32)
def _best_figures(same: _Same, strategy_key: CacheKey) -> Candidate:
    question, strategy = same.question, strategy_key.value
    request, setting = question.request, base_setting(question.request)
    if not question.intent.concurrency_open:
        return candidate_at(request, setting, strategy, question.reference_plan.workload.concurrency)
    load = 1 if strategy.prefill.replicas is not None else strategy.dp
    best = tried = candidate_at(request, setting, strategy, load)
    while tried.shortfall_bytes is None and load < MOST_CONCURRENT:
        load *= 2
        tried = candidate_at(request, setting, strategy, load)
        if badness(tried, request.workload.objective) < badness(best, request.workload.objective):
            best = tried
        elif best.feasible and not tried.feasible:
            break
    return refined(_open(question), setting, best) if best.feasible else best


def _open(question: Question) -> SearchRequest:
    return replace(question.request, concurrency_open=True)


def badness(candidate: Candidate, objective: str) -> float:
    """The figure that `objective` minimises; infinite if the candidate is no plan."""
    return worth(candidate, objective) if candidate.feasible else float("inf")


def regret_pct(question: Question, strategy: Strategy, golden: Strategy) -> float | None:
    """By how many percent `strategy` is worse than `golden` for the question's objective; negative if better.

    `None` if the golden is no plan by the model, so that there is nothing to compare with.

    Raises:
        InputError: as `best_figures`.
    """
    objective = question.request.workload.objective
    least = badness(best_figures(question, golden), objective)
    if least == float("inf"):
        return None
    return (badness(best_figures(question, strategy), objective) / least - 1.0) * 100.0


def regret_or_why(question: Question, strategy: Strategy, golden: Strategy) -> float | str | None:
    """As `regret_pct`; a text if a fact is missing."""
    try:
        return regret_pct(question, strategy, golden)
    except InputError as error:
        return str(error)
