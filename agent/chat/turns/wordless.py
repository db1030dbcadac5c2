"""The outcome of a turn without words: fields of the request that were set, or a plan document that was opened."""

from __future__ import annotations

from ....tools.errors import InputError
from ....tools.plan.document import Plan
from ....tools.plan.performance import PerformanceEstimate
from ....tools.validate import ValidationReport, validate
from ...judgement import judged
from ...languages.say import say
from ...report.text import Bullets, render, section
from ...results import PlanResult
from ..edits import Edit
from ..outcome import Outcome, Planned
from ..turn_input import Given, said_of_plan
from ..words import plan_lines, request_changes
from .change import begin, edited
from .changed import told_of
from .work import Work

_MOST_FINDINGS = 3


def given(work: Work, text: str, change: Given) -> Outcome:
    """The outcome of a turn that is given a `change`; `text` is what a person calls it.

    Raises:
        InputError: what was given cannot be planned.
    """
    if change.plan is not None:
        return _stand(work, change.plan)
    if change.begins or work.state.current is None:
        return begin(work, "", [change.said])
    return edited(work, text, Edit(said=change.said, dropped=change.dropped))


def _stand(work: Work, plan: Plan) -> Outcome:
    """Make `plan` the current one as it stands; if it is valid, later changes keep its strategy."""
    report, figures, why_not = _judged(work, plan)
    said = said_of_plan(plan, keeps_strategy=report.valid)
    intent = work.intent([said])
    planned = Planned(said, intent, PlanResult(plan=plan, valid=report.valid, estimate=figures, intent=intent))
    errors = [f"{finding.rule}: {finding.message}" for finding in report.violations if finding.severity == "error"]
    more = [say("and {count} more", count=len(errors) - _MOST_FINDINGS)] if len(errors) > _MOST_FINDINGS else []
    before = work.state.current
    changes = () if before is None else request_changes(before.intent, intent)
    sections = [
        section("", *plan_lines(planned.result), *([] if why_not is None else [why_not])),
        section(say("Rules that it breaks or is warned by"), Bullets((*errors[:_MOST_FINDINGS], *more))),
        section(say("The request"), Bullets(changes)),
    ]
    return Outcome("plan", render(sections, width=work.width), planned, changes=changes, told=told_of(planned))


def _judged(work: Work, plan: Plan) -> tuple[ValidationReport, PerformanceEstimate | None, str | None]:
    """What the rules find in `plan`, its figures, and why it has none."""
    try:
        return *judged(plan, None, work.calibration), None
    except InputError as error:
        return validate(plan), None, str(error)
