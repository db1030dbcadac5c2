"""`fix`: a proposal in any form made valid, every change with its rule and JSON Patch."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ...tools.autofix.autofix import Chosen, read_anything, read_text_anyhow
from ...tools.autofix.result import FixResult
from ...tools.errors import InputError
from ...tools.language.request import MAX_REQUEST_CHARACTERS
from ...tools.plan.reader import MAX_DOCUMENT_BYTES
from ..agent import Agent
from ..fix_api import fixed
from .operation import WIDTH, Operation, Question, TakesPlan


class FixQuestion(Question):
    """A proposal, and how far it may be changed."""

    proposal: Annotated[dict[str, Any] | Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)], TakesPlan()] = Field(
        description="A plan document, or any text with a proposal in it (prose, sloppy JSON, a layout in words)."
    )
    request: Annotated[str, Field(max_length=MAX_REQUEST_CHARACTERS)] | None = Field(
        None, description="What was asked, in words, for what the proposal leaves out: model, hardware, load."
    )
    safe_only: bool = Field(False, description="Make only fixes that keep what the author decided.")
    keep_strategy: bool = Field(False, description="Where strategy and graph differ, rebuild the graph.")
    rules: list[str] | None = Field(None, max_length=200, description="Mend only what these rules find.")


def _run(question: FixQuestion, agent: Agent | None) -> FixResult:
    del agent
    proposal = question.proposal
    if isinstance(proposal, str) and not proposal.strip():
        raise InputError("proposal: empty; give a plan document, or a text with a proposal in it")
    reading = read_text_anyhow(proposal) if isinstance(proposal, str) else read_anything(proposal)
    chosen = Chosen.of(question.rules or None, safe_only=question.safe_only, keep_strategy=question.keep_strategy)
    return fixed(reading, question.request, chosen)


def _text(result: FixResult) -> str:
    from ..report.fix import render_fix

    return render_fix(result, title="the proposal", width=WIDTH)


FIX = Operation(
    name="fix",
    summary="Repair a proposal until it keeps every rule.",
    description=(
        "A valid plan of a broken one or of any proposal: what the author decided is kept as far as rules allow, and "
        "every change is listed with its rule and JSON Patch."
    ),
    asked=FixQuestion,
    answers=(FixResult,),
    run=_run,
    text=_text,
    is_long=True,
)
