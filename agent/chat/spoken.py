"""Whole texts that say a command of the chat in words: "go back", "undo the last two", "take it"."""

from __future__ import annotations

import re

from ...tools.language.writing.normal_form import normalise
from .turns.earlier import BACK_BY_ONE, BACK_TO_FIRST

_SHOW = r"(?:show|print)(?:\sme)?\s(?:(?:the|my)\s)?(?:(?:current|whole)\s)?"
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "twice": 2, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5}
_COUNT = re.compile(rf"\d{{1,3}}|{'|'.join(_COUNTS)}", re.I)
_STEPS = rf"(?:\s(?:{_COUNT.pattern}))?(?:\s(?:steps?|changes?|turns?|edits?|requests?|ones?|times))?"
# The first word of each is what the commands are called.
_SPOKEN = {
    "undo": (
        rf"(?:undo|take\sback|revert)(?:\sthe)?(?:\s(?:last|previous))?{_STEPS}|(?:go|step)\sback{_STEPS}|{BACK_BY_ONE}"
        rf"|(?:撤销|撤回|回退)(?:(?:最后|前)?(?:{_COUNT.pattern})[步次个](?:改动|修改)?)?|上一步"
    ),
    "undo that": r"undo\s(?:it|that|this)",
    "first": BACK_TO_FIRST,
    "redo": r"redo(?:\s(?:it|that))?|重做|恢复撤销",
    "take": (
        r"(?:ok(?:ay)?,?\s|yes,?\s|please\s)?(?:take|apply|accept|adopt|do|use)\s(?:it|that|this)|"
        r"采用|就这样|就用这个|用这个"
    ),
    "plan": rf"{_SHOW}(?:plan|report)|the\splan|显示方案|方案",
    "request": rf"{_SHOW}request|what\sdid\si\sask(?:\sfor)?|我要求了什么",
    "help": r"help(?:\sme)?|what\scan\s(?:you|i)\s(?:do|say)|commands|帮助|你(?:能|会)(?:做|干)什么",
    "quit": r"quit|exit|bye|good\s?bye|退出|再见|结束",
    "again": r"again|(?:do|try)\s(?:it|that)\sagain|retry|再来一次|重试",
}
_SPOKEN_AS = {name: re.compile(rf"(?:{words})(?:,?\splease)?[\s.!?。!]*", re.I) for name, words in _SPOKEN.items()}


def spoken_command(text: str) -> str | None:
    """The command, with what stands after its name, that a whole text says in words ("go back"), if it says one."""
    plain = " ".join(normalise(text).split())
    name = next((name for name, pattern in _SPOKEN_AS.items() if pattern.fullmatch(plain)), None)
    count = _COUNT.search(plain) if name == "undo" else None
    return name if count is None else f"undo {_COUNTS.get(count.group().lower(), count.group())}"
