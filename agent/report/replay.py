"""A replayed run or chat for people: whether it is the same, its course turn by turn, and the plan in which it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tools.plan.describe import describe
from ..loop.shorten import short_text
from .plan import model_section
from .text import NONE, Bullets, Column, Section, Table, count_text, render, section

if TYPE_CHECKING:
    from ..chat.replay import ChatReplay
    from ..loop.replay import Replay
    from ..loop.transcript import Transcript

_COURSE = (Column("turn", figures=True), Column("the model", wraps=True), Column("the tools", wraps=True))
_MOST_NAMED = 6
_SAID = {"mode": "asked on in another mode", "stopped": "the time was over"}


def render_replay(replayed: Replay, recorded: Transcript, *, title: str, width: int, bold: bool = False) -> str:
    """The report of the replay of `recorded`, which came from the file called `title`."""
    head = "The same as recorded" if replayed.same else "NOT the same as recorded"
    return render(
        [
            section("", f"{head}: {title}", f"Request: {short_text(recorded.setup.request)}"),
            section("What differs", Bullets(tuple(short_text(difference) for difference in replayed.differences))),
            section("Course", Table(_COURSE, tuple(_course(recorded)))),
            *_ending(replayed),
        ],
        width=width,
        bold=bold,
    )


def render_chat_replay(replayed: ChatReplay, *, title: str, width: int, bold: bool = False) -> str:
    """The report of the replay of a chat, which came from the file called `title`."""
    head = "The same as recorded" if replayed.same else "NOT the same as recorded"
    plan = f"It ends with a plan of {replayed.plan}" if replayed.plan is not None else "It ends without a plan"
    return render(
        [
            section("", f"{head}: {title}", f"{count_text(replayed.turns, 'turn')} played. {plan}."),
            section("What differs", Bullets(tuple(short_text(difference) for difference in replayed.differences))),
        ],
        width=width,
        bold=bold,
    )


def _course(recorded: Transcript) -> Iterator[tuple[str, str, str]]:
    """Turn by turn: what the model did, and the verdict of the tools. As in a budget, a fault is no turn."""
    count = 0
    for step in (step for reading in recorded.setup.readings for step in reading.steps):
        if step.kind == "reply":
            count += 1
            yield str(count), "reads the request", ""
        elif step.kind == "fault":
            yield NONE, _did(step.kind, step.data), ""
    turn, did, verdicts = "", "", list[str]()
    for step in recorded.steps:
        if step.kind in ("reply", "fault"):
            if turn:
                yield turn, did, "; ".join(verdicts)
            count += step.kind == "reply"
            turn, did, verdicts = str(count) if step.kind == "reply" else NONE, _did(step.kind, step.data), []
        elif step.kind == "judgement":
            verdicts.append(_judged(step.data))
        elif step.kind in _SAID:
            verdicts.append(_SAID[step.kind])
    if turn:
        yield turn, did, "; ".join(verdicts)


def _did(kind: str, data: dict[str, Any]) -> str:
    if kind == "fault":
        return f"no answer: {short_text(str(data.get('message', '')), 120)}"
    calls = data.get("tool_calls")
    names = [str(call.get("name")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if not names:
        return {"refusal": "refuses", "length": "is cut off"}.get(str(data.get("finish")), "answers in words")
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"calls {short_text(', '.join(names[:_MOST_NAMED]), 200)}{more}"


def _judged(data: dict[str, Any]) -> str:
    rules = data.get("rules")
    named = [str(rule) for rule in rules] if isinstance(rules, list) else []
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    broken = f" ({short_text(', '.join(named[:_MOST_NAMED]))}{more})" if named else ""
    behind = f", behind the reference {short_text(str(data['behind']), 100)}" if "behind" in data else ""
    return f"{short_text(str(data.get('verdict')), 20)}{broken}{behind}"


def _ending(replayed: Replay) -> Iterator[Section]:
    result = replayed.result
    report = result.report
    if report is not None and report.model_use is not None:
        yield model_section(report.model_use)
    if result.plan is not None and report is not None:
        strategy = result.plan.strategy
        plan = f"{describe(strategy)} on {count_text(strategy.gpu_count, 'GPU')}"
        yield section("Plan", plan, report.explanation)
