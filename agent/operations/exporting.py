"""`export`: a plan document as what starts its servers."""

from __future__ import annotations

from pydantic import Field

from ...tools.export.export import export
from ...tools.export.result import Export, TargetName
from ..agent import Agent
from .operation import WIDTH, Document, Operation, Question, plan_text


class ExportQuestion(Question):
    """A plan document, and what is to run it."""

    plan: Document
    to: TargetName = Field(description="An engine, or a form that runs the plan's engine.")


def _run(question: ExportQuestion, agent: Agent | None) -> Export:
    del agent
    return export(plan_text(question.plan), question.to)


def _text(found: Export) -> str:
    if found.text is not None:
        return found.text
    from ..report.export import render_export

    return render_export(found, title="the plan", width=WIDTH)


EXPORT = Operation(
    name="export",
    summary="What starts the servers of a plan document.",
    description="The launch script or manifest of a plan, or why the engine cannot run it and the nearest plan it can.",
    asked=ExportQuestion,
    answers=(Export,),
    run=_run,
    text=_text,
    is_long=True,
)
