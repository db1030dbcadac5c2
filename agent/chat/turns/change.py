"""A request, or a change of it: read, planned, and set beside what was planned before."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....tools.compare import compare
from ....tools.errors import InputError
from ...intent.errors import RequestError
from ...intent.intent import Said
from ...intent.merge import merge_said
from ...intent.request import read_words
from ...report.plan import assumption_section
from ...report.text import Bullets, Section, render, section
from ..edit_reader import read_edit
from ..edits import Edit, apply_edit, stated_fields
from ..outcome import Outcome, Planned
from ..words import comparison_sections, plan_lines, read_section, request_changes, title_of
from .work import Work

# A sentence that begins like this and names model and hardware is a request of its own.
_WHOLE_REQUEST = re.compile(
    r"^(?:please\s|now\s|can\syou\s|i\s(?:want|need|would\slike)\sto\s|we\s(?:want|need)\sto\s)?"
    r"(?:serve|serving|deploy|plan|host|run|部署|规划|请部署|在)(?![a-z])",
    re.IGNORECASE,
)


def begin(work: Work, text: str, said: Sequence[Said] = ()) -> Outcome:
    """Plan for a request in words beside what briefs and options say (`said`); nothing of before holds.

    Raises:
        InputError: it names no model, or cannot be completed.
    """
    read = [read_words(text)] if text.strip() else []
    # A brief comes first and options last: later statements win.
    merged = merge_said([*said[:-1], *read, *said[-1:]] if said else read or [Said()])
    intent = work.intent([merged])
    planned = Planned(merged, intent, work.planner(intent, text))
    report = planned.result.report
    sections = [section("", *plan_lines(planned.result))]
    if report is not None:
        if planned.result.plan is not None:
            sections.append(section("Why this one", report.explanation))
        sections.append(assumption_section(report, dict(intent.words)))
    sections.append(section("", "A follow-up changes it (now with 16 GPUs); why? and what if … ask; /help lists more."))
    return Outcome(
        kind="plan",
        text=render(sections, width=work.width),
        planned=planned,
        readings=merged.readings,
        told=told_of(planned),
    )


def change(work: Work, text: str) -> Outcome | None:
    """Change the current request by what `text` says; `None` where it says no change.

    Raises:
        InputError: what it says cannot be.
    """
    before = work.state.now
    if before is None:
        return begin(work, text)
    edit = read_edit(text, work.state.spoken)
    if edit.questions:
        return Outcome("ask", "\n".join(edit.questions) + "\n", readings=edit.readings)
    if edit.is_empty:
        return None
    if _is_whole(text, edit):
        started = begin(work, text)
        note = "Read as a request of its own: nothing that was said before holds.\n\n"
        return Outcome("plan", note + started.text, started.planned, readings=started.readings, told=started.told)
    said = apply_edit(before.said, edit)
    intent = work.intent([said])
    changes = request_changes(before.intent, intent)
    if not changes:
        return Outcome("ask", _already(edit), readings=edit.readings)
    planned = Planned(said, intent, work.planner(intent, text))
    sections = changed_sections(work, planned, changes, edit, names=("before", "now"))
    if planned.result.plan is None:
        sections.append(section("", "The request stays as it is now; change it further, or /undo goes back."))
    return Outcome(
        kind="plan",
        text=render(sections, width=work.width),
        planned=planned,
        readings=edit.readings,
        changes=changes,
        told={"request": list(changes), **told_of(planned)},
    )


def _is_whole(text: str, edit: Edit) -> bool:
    fields = stated_fields(edit.said)
    hardware = {"accelerator", "accelerator_object", "gpus", "nodes", "gpus_open"}
    return "model" in fields and bool(fields & hardware) and _WHOLE_REQUEST.search(text.strip()) is not None


def _already(edit: Edit) -> str:
    said = ", ".join(dict.fromkeys(edit.said.words.values())) or "that"
    return f"That is so already ({said}): the request is as it was.\n"


def changed_sections(
    work: Work, planned: Planned, changes: tuple[str, ...], edit: Edit, names: tuple[str, str]
) -> list[Section]:
    """What changed in the request, in the layout and in the figures; the plan first."""
    sections = [
        section("", *plan_lines(planned.result)),
        section("The request", Bullets(changes)),
    ]
    before, plan = work.state.last_planned, planned.result.plan
    now = work.state.now
    if before is not None and now is not None and now.result.plan is None:
        names = ("last plan", names[1])
    if before is not None and before.result.plan is not None and plan is not None:
        found = compare(
            before.result.plan,
            plan,
            titles=names,
            calibration=planned.intent.calibration,
            usd_per_gpu_hour=planned.intent.usd_per_gpu_hour,
        )
        sections += comparison_sections(found, names)
    report = planned.result.report
    if plan is not None and report is not None:
        sections.append(section("Why this one", report.explanation))
    sections.append(_newly_assumed(work, planned))
    sections.append(read_section(edit.readings, edit.unread))
    return sections


def _newly_assumed(work: Work, planned: Planned) -> Section:
    """Assumptions that were not told before."""
    before = work.state.now
    told = set[str]() if before is None or before.result.report is None else {
        f"{one.field} {one.value} {one.reason}" for one in before.result.report.assumptions
    }  # fmt: skip
    report = planned.result.report
    made = () if report is None else report.assumptions
    new = tuple(f"{one.field}: {one.reason}" for one in made if f"{one.field} {one.value} {one.reason}" not in told)
    return section("Assumed", Bullets(new))


def told_of(planned: Planned) -> dict[str, object]:
    """A result in a few words, for a language model."""
    result = planned.result
    told: dict[str, object] = {"plan": title_of(result), "in_words": list(plan_lines(result))}
    if result.report is not None:
        told["explanation"] = result.report.explanation
    return told


def require_model(error: InputError) -> InputError:
    """A refusal for want of a model, with what to say instead; any other as it is."""
    if isinstance(error, RequestError) and "no model" in error.reason:
        return InputError(f'{error}; say it as in "Llama-3.1-70B on 8 H100, 2k in, 256 out"')
    return error
