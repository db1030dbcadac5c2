"""Earlier plans of a chat: back to the first, what one was, and how it differs from the current one."""

from __future__ import annotations

import re

from ....tools.errors import InputError
from ...languages.say import say
from ...report.text import render, section
from ..outcome import Outcome
from ..state import Version
from ..words import asks_the_same, plan_lines, request_changes
from .show import difference_to
from .work import Work

_PLAN = r"(?:plan|one|layout|version)"
_FIRST = r"(?:the\s)?(?:very\s)?(?:first|original|initial)"
_BACK = (
    r"(?:(?:please|ok(?:ay)?|let'?s|now),?\s){0,2}"
    r"(?:(?:go|switch|return|step|get|revert)\s(?:back\s)?to|back\sto|restore)\s"
)
# Whole texts that go back: to the first request, and to the one before.
BACK_TO_FIRST = (
    rf"{_BACK}(?:{_FIRST}(?:\s(?:{_PLAN}|request))?|(?:what|where)\swe\s(?:had|were|began|started)(?:\swith)?"
    r"(?:\s(?:at|in)\sthe\s(?:start|beginning))?|the\s(?:start|beginning))"
    r"|(?:回到|恢复)(?:第一个|最初的?|原来的)(?:方案|计划|要求)"
)
BACK_BY_ONE = rf"{_BACK}(?:the\s)?(?:previous|last|earlier)\s(?:{_PLAN}|request)"
_NAMED = re.compile(
    rf"(?<![a-z])(?:of|in|for|with|to|against|and|vs\.?|versus|did|was|show(?:\sme)?)\s"
    rf"(?:(?P<first>{_FIRST})|(?:the\s)?(?:previous|earlier))\s{_PLAN}(?![a-z])"
    r"|(?P<first_in_chinese>第一个|最初的?|原来的)(?:方案|计划)|(?:上一个|之前的)(?:方案|计划)",
    re.I,
)
_ASKS = re.compile(r"^(?:and\s)?(?:what|how|which|show|tell|give)(?![a-z])|[?]\s?$|多少|怎么样", re.I)


def asks_of_earlier(work: Work, text: str, *, compares: bool) -> Outcome | None:
    """What an earlier plan was, or how it `compares` with the current one; `None` if `text` asks about none.

    Raises:
        InputError: there is none before the current one.
    """
    named = _NAMED.search(text)
    if named is None or not (compares or _ASKS.search(text)):
        return None
    version = _version(work, is_first=bool(named["first"] or named["first_in_chinese"]))
    if compares:
        return difference_to(work, work.state.planned(version))
    lead = say("Of {title}:", title=version.title)
    lines = plan_lines(work.state.planned(version).result)
    return Outcome("show", render([section("", lead, *lines)], width=work.width), told={"plan": list(lines)})


def _version(work: Work, *, is_first: bool) -> Version:
    earlier = work.state.versions[: work.state.at]
    if not earlier:
        raise InputError(say("there is no plan before this one"))
    return earlier[0 if is_first else -1]


def first_again(work: Work) -> Outcome:
    """The first request of the chat made the current one, as a turn of its own that undo takes back.

    Raises:
        InputError: it is the current one.
    """
    version = _version(work, is_first=True)
    if asks_the_same(work.now.intent, version.intent):
        raise InputError(say("nothing to undo: this is the first request"))
    changes = request_changes(work.now.intent, version.intent)
    text = "\n".join((say("Current now: {title}", title=version.title), *changes)) + "\n"
    planned = work.state.planned(version)
    return Outcome("plan", text, planned=planned, changes=changes, told={"plan": version.title})
