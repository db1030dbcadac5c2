"""A request, or a change of it: read, planned, and set beside what was planned before."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ....tools.errors import InputError
from ....tools.language.errors import RequestError
from ....tools.language.merge import merge_said
from ....tools.language.said import Said
from ...languages.say import say
from ...reading.merge import AmbiguousError
from ...report.request import assumption_section
from ...report.text import render, section
from ...report.weighed import compared_sections
from ..edit_reader import read_edit
from ..edits import Edit, apply_edit, stated_fields
from ..outcome import Outcome, Planned
from ..words import asks_the_same, plan_lines, request_changes, title_of
from .changed import Changed, changed_outcome, told_of
from .work import Work

# A sentence that begins like this and names model and hardware is a request of its own.
_WHOLE_REQUEST = re.compile(
    r"^(?:please\s|now\s|can\syou\s|i\s(?:want|need|would\slike)\sto\s|we\s(?:want|need)\sto\s)?"
    r"(?:serve|serving|deploy|plan|host|run|部署|规划|请部署|在)(?![a-z])",
    re.IGNORECASE,
)


def begin(work: Work, text: str, said: Sequence[Said] = (), read: Callable[[], Said] | None = None) -> Outcome:
    """Plan for a request in words beside what briefs and options say (`said`); nothing of before holds.

    `read` gives what the words say, where they were read already. Where two readings of them differ it is a question.

    Raises:
        InputError: it names no model, or cannot be completed.
    """
    try:
        words = [work.read(text) if read is None else read()] if text.strip() else []
    except AmbiguousError as error:
        return Outcome("ask", say("{reason}; write the request with that one.", reason=error.reason) + "\n")
    # A brief comes first and options last: later statements win.
    merged = merge_said([*said[:-1], *words, *said[-1:]] if said else words or [Said()])
    intent = work.intent([merged])
    planned = Planned(merged, intent, work.planner(intent, text))
    report = planned.result.report
    sections = [section("", *plan_lines(planned.result)), *compared_sections(report)]
    if report is not None:
        if planned.result.plan is not None:
            sections.append(section(say("Why this one"), report.explanation))
        sections.append(assumption_section(report, dict(intent.words)))
    sections.append(section("", say("A follow-up in words changes it; why? and what if … ask; /help lists more.")))
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
        note = say("Read as a request of its own: nothing that was said before holds.")
        return Outcome(
            "plan", f"{note}\n\n{started.text}", started.planned, readings=started.readings, told=started.told
        )
    return edited(work, text, edit)


def edited(work: Work, text: str, edit: Edit, base: Planned | None = None, called: str = "") -> Outcome:
    """The current request with `edit` done to it, planned; `text` is what says so.

    With `base` it is done to that request of before, which the text goes back to in the words `called`.

    Raises:
        InputError: nothing was asked for yet, or what it says cannot be.
    """
    before = work.now
    if base is not None:
        reading = say(
            "{said!r} read as {meant}", said=called, meant=say("the request of {title}", title=title_of(base.result))
        )
        edit = replace(edit, readings=(reading, *edit.readings))
    said = apply_edit((base or before).said, edit)
    intent = work.intent([said])
    changes = request_changes(before.intent, intent)
    # A plan that breaks rules was opened as it stands: no answer to the request yet.
    is_answered = before.result.plan is None or before.result.valid
    if asks_the_same(before.intent, intent) and is_answered:
        return Outcome("ask", _already(edit), readings=edit.readings)
    return changed_outcome(work, Changed(Planned(said, intent, work.planner(intent, text)), changes, edit))


def _is_whole(text: str, edit: Edit) -> bool:
    fields = stated_fields(edit.said)
    hardware = {"accelerator", "accelerator_object", "gpus", "nodes", "gpus_open"}
    return "model" in fields and bool(fields & hardware) and _WHOLE_REQUEST.search(text.strip()) is not None


def _already(edit: Edit) -> str:
    words = ", ".join(dict.fromkeys(edit.said.words.values())) or say("that")
    return say("That is so already ({said}): the request is as it was.", said=words) + "\n"


def require_model(error: InputError) -> InputError:
    """A refusal for want of a model, with what to say instead; any other as it is."""
    if isinstance(error, RequestError) and "no model" in error.reason:
        return InputError(say('{error}; say it as in "Llama-3.1-70B on 8 H100, 2k in, 256 out"', error=error))
    return error
