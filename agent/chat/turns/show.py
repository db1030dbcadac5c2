"""Turns that only show: the plan's report, its estimate, its validation, the request, the last difference."""

from __future__ import annotations

import re

from ....tools.compare import compare
from ....tools.errors import InputError
from ....tools.validate import validate
from ...languages.say import say
from ...report.compare import render_comparison
from ...report.cost import cost_lines
from ...report.estimate import Subject, render_estimate, render_part
from ...report.plan import render_plan
from ...report.text import Bullets, render, section
from ...report.validation import render_validation
from ..outcome import Outcome, Planned
from ..state import State
from ..words import request_changes, request_facts, title_of
from .work import Work

# What a question on the plan's figures is about.
_SUBJECTS: dict[Subject, re.Pattern[str]] = {
    "bottleneck": re.compile(r"bottleneck|critical\spath|瓶颈", re.I),
    "latency": re.compile(r"how\s(?:fast|slow)|ttft|tpot|latenc|快|慢|延迟", re.I),
    "memory": re.compile(r"memory|vram|(?<![a-z])kv(?![a-z])|显存|缓存", re.I),
    "throughput": re.compile(r"throughput|how\smany\stokens|吞吐", re.I),
}


def show_plan(work: Work) -> Outcome:
    """The whole report of the current request."""
    now = work.now
    return Outcome("show", render_plan(now.result, width=work.width))


def show_request(work: Work) -> Outcome:
    """What is asked for now."""
    facts = tuple(f"{title}: {value}" for title, value in request_facts(work.now.intent).items())
    return Outcome(
        "show", render([section(say("Asked for now"), Bullets(facts))], width=work.width), told={"request": facts}
    )


def show_estimate(work: Work, asked: str = "") -> Outcome:
    """The estimate of the current plan; of a question, the parts that it names."""
    estimated, title = work.figures(), title_of(work.now.result)
    told = {"ttft_ms": estimated.latency.ttft_ms, "tpot_ms": estimated.latency.tpot_ms}
    subjects: list[Subject] = [subject for subject, words in _SUBJECTS.items() if words.search(asked)]
    if subjects:
        text = render_part(estimated, subjects, title=title, width=work.width)
    else:
        text = render_estimate(estimated, title=title, width=work.width)
    return Outcome("estimate", text, told=told)


def show_cost(work: Work, planned: Planned) -> Outcome:
    """What a plan costs, per token and per hour, and from which price.

    Raises:
        InputError: the request has no plan.
    """
    estimated = work.figures(planned)
    lines = [] if estimated.cost is None else cost_lines(estimated.cost, len(estimated.memory.per_device))
    lines = lines or [say("No tokens are served, so none has a cost.")]
    text = render([section(title_of(planned.result), *lines)], width=work.width)
    return Outcome("estimate", text, told={"cost": lines})


def show_validation(work: Work) -> Outcome:
    """The rules on the current plan, checked now."""
    report = validate(work.plan)
    return Outcome(
        "validate",
        render_validation(report, title=title_of(work.now.result), width=work.width),
        told={"valid": report.valid},
    )


def show_difference(work: Work) -> Outcome:
    """The current plan beside the one before it.

    Raises:
        InputError: there are not two.
    """
    for version in reversed(work.state.versions[: work.state.at]):
        before = work.state.planned(version)
        if before.result.plan is not None:
            return difference_to(work, before)
    raise InputError(say("there is no plan before this one"))


def difference_to(work: Work, before: Planned) -> Outcome:
    """The current plan beside that of an earlier request.

    Raises:
        InputError: one of them has none.
    """
    plan, now = work.plan, work.now
    if before.result.plan is None:
        raise InputError(say("that request has no plan"))
    comparison = compare(
        before.result.plan,
        plan,
        titles=(say("before"), say("now")),
        calibration=now.intent.calibration,
        usd_per_gpu_hour=(before.intent.usd_per_gpu_hour, now.intent.usd_per_gpu_hour),
    )
    changes = request_changes(before.intent, now.intent)
    text = render([section(say("The request"), Bullets(changes))], width=work.width)
    shown = f"{text}\n{render_comparison(comparison, width=work.width)}"
    return Outcome("compare", shown, comparison=comparison, changes=changes)


def undo(work: Work, steps: int = 1) -> Outcome:
    """Go back by `steps` requests.

    Raises:
        InputError: there is none.
    """
    if not work.state.at > 0:
        raise InputError(say("nothing to undo: this is the first request"))
    few = say("requests before this one: {count}; /undo {count} goes back to the first", count=work.state.at)
    return moved(work.state, work.state.at - steps, few)


def redo(work: Work, steps: int = 1) -> Outcome:
    """Go forward again by `steps` requests that were undone.

    Raises:
        InputError: there is none.
    """
    undone = len(work.state.versions) - 1 - work.state.at
    if undone <= 0:
        raise InputError(say("nothing to redo: this is the last request"))
    few = say("requests after this one: {count}; /redo {count} goes to the last", count=undone)
    return moved(work.state, work.state.at + steps, few)


def moved(state: State, place: int, otherwise: str) -> Outcome:
    """Make the request at `place` the current one.

    Raises:
        InputError: there is none at it; the message is `otherwise`.
    """
    if not 0 <= place < len(state.versions):
        raise InputError(otherwise)
    version, now = state.versions[place], state.current
    changes = () if now is None else request_changes(now.intent, version.intent)
    lines = [say("Current again: {title}", title=version.title), *changes]
    return Outcome("moved", "\n".join(lines) + "\n", moved_to=place, changes=changes, told={"plan": version.title})


def history(work: Work) -> Outcome:
    """The requests of the chat, the current one marked."""
    state = work.state
    if not state.versions:
        return Outcome("show", say("Nothing was asked for yet.") + "\n")
    lines: list[str] = []
    for place, version in enumerate(state.versions):
        before = state.versions[place - 1].intent if place else None
        changed = "; ".join(request_changes(before, version.intent)) if before is not None else say("the first request")
        lines.append(f"{'→' if place == state.at else ' '} {place + 1:>3}  {version.title}  [{changed}]")
    return Outcome("show", "\n".join(lines) + "\n")


def take(work: Work) -> Outcome:
    """Make the plan that was looked at last the current one.

    Raises:
        InputError: there is none.
    """
    aside = work.state.aside
    if aside is None:
        raise InputError(say('nothing was looked at on the side: ask "what if …" first'))
    planned = work.state.planned(aside)
    changes = () if work.state.current is None else request_changes(work.state.current.intent, aside.intent)
    text = "\n".join((say("Current now: {title}", title=aside.title), *changes)) + "\n"
    return Outcome("plan", text, planned=planned, changes=changes, told={"plan": aside.title})
