"""A changed request, planned: what became of request, layout and figures, in force or on the side."""

from __future__ import annotations

from msgspec import Struct

from ....tools.compare import compare
from ...languages.say import say
from ...report.text import Bullets, Section, render, section
from ...report.weighed import compared_sections
from ...results import PlanResult
from ..edits import Edit
from ..outcome import Outcome, Planned
from ..words import comparison_sections, plan_lines, read_section, title_of
from .work import Work

_PROPOSERS = {"llm": "the language model's", "builtin": "the built-in proposer's"}


class Changed(Struct, frozen=True):
    """The changed request with its result, what changed in it, and how that was read."""

    planned: Planned
    changes: tuple[str, ...]
    edit: Edit


def changed_outcome(work: Work, changed: Changed, *, is_aside: bool = False) -> Outcome:
    """The outcome of a change that is in force from now on, or that was only looked at (`is_aside`)."""
    planned, changes, readings = changed.planned, changed.changes, changed.edit.readings
    if is_aside:
        lead = section("", say("On the side; the current plan stays as it is. /take makes this the current one."))
        text = render([lead, *_sections(work, changed, (say("current"), say("what if")))], width=work.width)
        told = {"on_the_side": list(changes), **told_of(planned)}
        return Outcome("what_if", text, aside=planned, readings=readings, changes=changes, told=told)
    sections = _sections(work, changed, (say("before"), say("now")))
    if planned.result.plan is None:
        stays = say("The request stays as it is now; change it further, or /undo goes back.")
        sections.append(section("", stays))
    text, told = render(sections, width=work.width), {"request": list(changes), **told_of(planned)}
    return Outcome("plan", text, planned, readings=readings, changes=changes, told=told)


def _sections(work: Work, changed: Changed, names: tuple[str, str]) -> list[Section]:
    """What changed in the request, in the layout and in the figures; the plan first."""
    planned, edit = changed.planned, changed.edit
    sections = [
        section("", *plan_lines(planned.result)),
        section(say("The request"), Bullets(changed.changes)),
    ]
    before, plan = work.state.last_planned, planned.result.plan
    now = work.state.now
    if before is not None and now is not None and now.result.plan is None:
        names = (say("last plan"), names[1])
    if before is not None and before.result.plan is not None and plan is not None:
        comparison = compare(
            before.result.plan,
            plan,
            titles=names,
            calibration=planned.intent.calibration,
            usd_per_gpu_hour=(before.intent.usd_per_gpu_hour, planned.intent.usd_per_gpu_hour),
        )
        sections += comparison_sections(comparison, names)
        sections.append(section("", _other_proposer(before.result, planned.result)))
    report = planned.result.report
    sections += compared_sections(report)
    if plan is not None and report is not None:
        sections.append(section(say("Why this one"), report.explanation))
    sections.append(_newly_assumed(work, planned))
    sections.append(read_section(edit.readings, edit.unread))
    return sections


def _other_proposer(before: PlanResult, after: PlanResult) -> str:
    """A note if the two plans are of different proposers; "" if not."""
    earlier, later = (_PROPOSERS.get(result.report.proposer, "") if result.report else "" for result in (before, after))
    same = (
        ""
        if earlier == later
        else say(
            "Compared is {one} plan with {other}: a part of the difference may be the proposer's.",
            one=say(earlier),
            other=say(later),
        )
    )
    return same if earlier and later else ""


def _newly_assumed(work: Work, planned: Planned) -> Section:
    """Assumptions that were not shown before."""
    before = work.state.now
    shown = set[str]() if before is None or before.result.report is None else {
        f"{entry.field} {entry.value} {entry.reason}" for entry in before.result.report.assumptions
    }  # fmt: skip
    report = planned.result.report
    assumptions = () if report is None else report.assumptions
    new = tuple(
        f"{entry.field}: {entry.reason}"
        for entry in assumptions
        if f"{entry.field} {entry.value} {entry.reason}" not in shown
    )
    return section(say("Assumed"), Bullets(new))


def told_of(planned: Planned) -> dict[str, object]:
    """A result in a few words, for a language model."""
    result = planned.result
    told: dict[str, object] = {"plan": title_of(result), "in_words": list(plan_lines(result))}
    if result.report is not None:
        told["explanation"] = result.report.explanation
    return told
