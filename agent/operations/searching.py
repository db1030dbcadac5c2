"""`search`: every legal strategy ranked, the Pareto front, and why the others lost."""

from __future__ import annotations

from pydantic import Field

from ..agent import Agent
from ..search_api import search_intent
from ..search_results import SearchAnswer
from ..time_limit import within
from .asking import Request
from .operation import WIDTH, Operation

_SHOWN = 10


class SearchQuestion(Request):
    """A deployment whose strategies are ranked."""

    top: int | None = Field(None, ge=1, description="How many candidates beside the front; all where left out.")
    sensitivity: bool = Field(False, description="Search again for what flips the answer: several times as long.")


def _run(question: SearchQuestion, agent: Agent | None) -> SearchAnswer:
    del agent
    with within(question.time_limit_s):
        return search_intent(question.intent(), top=question.top, sensitivity=question.sensitivity)


def _text(answer: SearchAnswer) -> str:
    from ..report.search import render_search

    return render_search(answer, top=_SHOWN, width=WIDTH)


SEARCH = Operation(
    name="search",
    summary="Rank all legal strategies, with the Pareto front.",
    description="Every legal strategy for a deployment, simulated and ranked by the objective; why each family lost.",
    asked=SearchQuestion,
    answers=(SearchAnswer,),
    run=_run,
    text=_text,
    is_long=True,
)
