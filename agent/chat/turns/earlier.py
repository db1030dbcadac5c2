"""Earlier plans of a chat: back to one with its request, what one was, and how it differs from the current one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....tools.errors import InputError
from ....tools.language.said import Said
from ...languages.say import say
from ...planning.keeping import keeps
from ...report.text import render, section
from ..edit_reader import read_edit
from ..edits import Edit, apply_edit, stated_fields
from ..outcome import Outcome, Planned
from ..state import Version
from ..words import asks_the_same, plan_lines, request_changes
from .change import edited
from .show import difference_to
from .work import Work

_THING = r"(?:plan|one|layout|version|request|set-?up|deployment|config(?:uration)?|question)"
_BY_US = r"(?:i|we)\s(?:had|were|was|began|started|asked|said|wanted)(?:\s(?:with|for))?"
_AT_FIRST = r"(?:at\sfirst|(?:at|in)\sthe\s(?:very\s)?(?:start|beginning)|initially|originally|first)"
_FIRST = (
    rf"(?:(?:(?:the|my|our)\s)?(?:very\s)?(?:first|original|initial)(?:\s{_THING})?|(?:the\s)?(?:start|beginning)"
    rf"|(?:what|where)\s(?:{_BY_US}\s{_AT_FIRST}|(?:we|i)\s(?:began|started)(?:\swith)?"
    r"|(?:i|we)\s(?:first|originally|initially)\s\w{2,9}(?:\sfor)?))"
)
_PREVIOUS = rf"(?:the\s)?(?:previous|last|earlier)\s{_THING}"
_SHOWN_BEFORE = (
    r"(?:\s(?:that\s)?(?:i|we|you)\s(?:gave|had|made|showed|used|proposed|suggested|planned|asked\sfor)(?:\sme)?"
    r"(?:\s(?:before|earlier|first))?|\s(?:from\s)?(?:before|earlier)(?:\son)?)"
)
# "the H200 plan", "the bf16 one you gave before"
_WORDS = r"(?:(?!(?:of|the|to|in|for|was|than|but)\s)[^\s,;!?]{1,40}\s){1,6}?"
_DESCRIBED = rf"(?:the|that|our|my)\s(?P<what>{_WORDS}){_THING}(?P<given>{_SHOWN_BEFORE})?"
_BACK = (
    r"(?:(?:no|please|ok(?:ay)?|let'?s|now|actually|well|can\syou|could\syou),?\s){0,3}"
    r"(?:(?:go|switch|return|step|get|revert|roll)\s(?:back\s)?to|(?:put|set|bring|take|change)\s(?:it|that|this|everything)\sback\sto|"
    r"back\sto|restore)\s"
)
# Whole texts that go back: to the first request, and to the one before.
BACK_TO_FIRST = rf"{_BACK}{_FIRST}|(?:回到|恢复)(?:第一个|最初的?|原来的)(?:方案|计划|要求)"
BACK_BY_ONE = rf"{_BACK}{_PREVIOUS}"
_GOES_BACK = re.compile(
    rf"(?P<to>{_BACK}(?:(?P<first>{_FIRST})|(?P<previous>{_PREVIOUS})|{_DESCRIBED})"
    r"|(?:回到|恢复|[换改退]回)(?:到)?(?:(?P<zh_first>第一个|最初的?|原来的)|(?P<zh_previous>上一个)|\s?(?P<zh_what>[^,;。]{1,30}?)\s?的?)(?:方案|计划|要求))"
    r"(?:,?\splease)?[\s.!。]*"
    r"(?:[,;]?\s?(?:(?:but|and|except|only|with|then)(?:\sthis\stime)?|但是?|不过|只是)\s?,?\s?(?P<rest>\S.*))?",
    re.I | re.S,
)
_BACK_TO_FACT = re.compile(rf"{_BACK}(?P<what>[^,;]{{1,60}}?)[\s.!]*", re.I)
_NAMED = re.compile(
    rf"(?<![a-z])(?:of|in|for|with|to|against|and|vs\.?|versus|did|was|show(?:\sme)?)\s"
    rf"(?:(?P<first>(?:the\s)?(?:very\s)?(?:first|original|initial)\s{_THING})|(?P<previous>{_PREVIOUS})|{_DESCRIBED})(?![a-z])"
    rf"|(?P<asked_first>^(?:and\s)?what\sdid\s(?:i|we)\s(?:ask|want|say|start|begin)(?:\s(?:for|with))?\s{_AT_FIRST})"
    r"|(?P<zh_first>第一个|最初的?|原来的)(?:方案|计划)|(?P<zh_previous>上一个|之前的)(?:方案|计划)",
    re.I,
)
_ASKS = re.compile(r"^(?:and\s)?(?:what|how|which|show|tell|give)(?![a-z])|[?]\s?$|多少|怎么样", re.I)


def asks_of_earlier(work: Work, text: str, *, compares: bool) -> Outcome | None:
    """What an earlier plan was, or how it `compares` with the current one; `None` if `text` asks about none.

    Raises:
        InputError: there is none before the current one, or none such.
    """
    named = _NAMED.search(text)
    if named is None or not (compares or _ASKS.search(text)):
        return None
    version = _version(work, named)
    if version is None:
        return None
    if compares:
        return difference_to(work, work.state.planned(version))
    lead = say("Of {title}:", title=version.title)
    lines = plan_lines(work.state.planned(version).result)
    return Outcome("show", render([section("", lead, *lines)], width=work.width), told={"plan": list(lines)})


def goes_back(work: Work, text: str) -> Outcome | None:
    """An earlier request made the current one, with the change that is said beside it; `None` if `text` names none.

    Raises:
        InputError: there is none before the current one, or none such.
    """
    named = _GOES_BACK.fullmatch(text)
    version = None if named is None else _version(work, named)
    if named is None or version is None:
        return None
    earlier, rest = work.state.planned(version), named["rest"]
    if rest is None:
        return _again(work, version, earlier)
    edit = read_edit(rest, [earlier.spoken])
    if edit.questions:
        return Outcome("ask", "\n".join(edit.questions) + "\n", readings=edit.readings)
    if edit.is_empty:
        raise InputError(say("{rest!r} was not understood, so nothing changed", rest=rest[:80]))
    return edited(work, text, edit, base=earlier, called=named["to"])


def note_on_whole(work: Work, text: str, planned: Planned) -> str:
    """A note on a way back that `planned` took for one fact, where an earlier request with it has others too."""
    named = _BACK_TO_FACT.fullmatch(text)
    version = None if named is None else next(_such(work, named["what"]), None)
    if named is None or version is None or asks_the_same(version.intent, planned.intent):
        return ""
    note = 'Only that changed; "go back to the {what} plan" takes back its whole request.'
    return f"\n{say(note, what=named['what'])}\n"


def first_again(work: Work) -> Outcome:
    """The first request of the chat made the current one, as a turn of its own that undo takes back.

    Raises:
        InputError: it is the current one.
    """
    version = _earlier(work)[0]
    return _again(work, version, work.state.planned(version))


def _again(work: Work, version: Version, planned: Planned) -> Outcome:
    if asks_the_same(work.now.intent, version.intent):
        raise InputError(say("that is the current request already"))
    changes = request_changes(work.now.intent, version.intent)
    text = "\n".join((say("Current now: {title}", title=version.title), *changes)) + "\n"
    return Outcome("plan", text, planned=planned, changes=changes, told={"plan": version.title})


def _earlier(work: Work) -> list[Version]:
    earlier = work.state.versions[: work.state.at]
    if not earlier:
        raise InputError(say("there is no plan before this one"))
    return earlier


def _version(work: Work, named: re.Match[str]) -> Version | None:
    """The request that is named by its place, or the last other one that is as described; `None` if none is.

    Raises:
        InputError: none is, although it is said to have been there.
    """
    groups = named.groupdict()
    if groups["first"] or groups["zh_first"] or groups.get("asked_first"):
        return _earlier(work)[0]
    if groups["previous"] or groups["zh_previous"]:
        return _earlier(work)[-1]
    what = (groups["what"] or groups.get("zh_what") or "").strip()
    version = next(_such(work, what), None)
    if version is None and groups["given"]:
        raise InputError(say("no plan of this chat before the current one is {what!r}: /history lists them", what=what))
    return version


def _such(work: Work, what: str) -> Iterator[Version]:
    """The other requests of which `what` is true already, the last first: to state it would change nothing."""
    try:
        edit = read_edit(what, ())
    except InputError:
        return
    stated, strategy = edit.said.model_copy(update={"strategy": None, "unread": ()}), edit.said.strategy
    if edit.unread or (strategy is None and not stated_fields(stated)):
        return
    aside = () if work.state.aside is None else (work.state.aside,)
    for version in (*aside, *reversed(work.state.versions)):
        if version is not work.state.current and _is_so(work, version, stated) and not _same(work, version):
            plan = None if strategy is None else work.state.planned(version).result.plan
            if strategy is None or (plan is not None and keeps(plan.strategy, strategy)):
                yield version


def _same(work: Work, version: Version) -> bool:
    return asks_the_same(work.now.intent, version.intent)


def _is_so(work: Work, version: Version, stated: Said) -> bool:
    try:
        return asks_the_same(work.intent([apply_edit(version.said, Edit(said=stated))]), version.intent)
    except InputError:
        return False
