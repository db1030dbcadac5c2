"""`validate`: a plan document against every rule."""

from __future__ import annotations

from ...tools.validate import ValidationReport, validate
from ..agent import Agent
from .operation import WIDTH, Document, Operation, Question, plan_text


class ValidateQuestion(Question):
    """A plan document to check."""

    plan: Document


def _run(question: ValidateQuestion, agent: Agent | None) -> ValidationReport:
    del agent
    return validate(plan_text(question.plan))


def _text(report: ValidationReport) -> str:
    from ..report.validation import render_validation

    return render_validation(report, title="the plan", width=WIDTH)


VALIDATE = Operation(
    name="validate",
    summary="Check a plan document against all hard rules.",
    description="Every violation with its rule, place, what stands there, what would pass, and how to mend it.",
    asked=ValidateQuestion,
    answers=(ValidationReport,),
    run=_run,
    text=_text,
)
