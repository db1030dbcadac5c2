"""How plainly words state a field: of two statements that differ, or of one that cannot be, the plainer counts.

Three grades. A statement names what its figure is of, right beside it; or only the reader's table of words links the
two, over a distance or without the thing that is counted; or the figure is hardly one of the field at all ("draft 4" as
a length). Between equals nothing is decided here: they are asked back.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from ..gated import Gated
from .matching import gap_cost
from .quantities import find_quantities


class Grade(IntEnum):
    """How plainly words state a field; the more the better."""

    THIN, LINKED, PLAIN = 1, 2, 3


_FAR = 2.7  # three words of meaning between a figure and the word that it is read for
_LEAST_LENGTH = 16  # tokens; a smaller bare number beside the word for a text is a version, a step or a list's number
_NUMBER = Gated(r"\d[\d,]*(?:\.\d+)?\s?(?:k(?![a-z]))?")
_UNIT = Gated(r"\d\s?k(?![a-z])|tok|词元|字|words?|(?<![a-z])(?:in|out|(?:in|out)puts?|[io]sl)(?![a-z])|输[入出]")
_LENGTHS = ("input_tokens", "output_tokens", "input_tokens_range", "output_tokens_range")
_SENTENCE_BREAK = re.compile(r"[.!?;。]\s|。")
# What GPUs of a node are counted of: words without it, or a node, count something else ("one every other week").
_GPU = Gated(r"gpu|card|accelerator|chip|[张块颗卡]|(?<![a-z])[a-z]{1,3}\d{1,4}|[hd]gx|x\s?\d|\d\s?x")
_NODE = Gated(r"node|server|machine|box|host|[台机]")


def grade(name: str, value: Any, words: str) -> Grade:
    """How plainly `words` state `value` for the field `name`."""
    if name in _LENGTHS:
        if _UNIT.search(words):
            return Grade.PLAIN
        if isinstance(value, int | float) and value < _LEAST_LENGTH:
            return Grade.THIN
        return Grade.LINKED if gap_cost(_NUMBER.sub(" ", words)) >= _FAR else Grade.PLAIN
    if name == "concurrency" and _SENTENCE_BREAK.search(words):
        return Grade.THIN  # "2 going. Not everyone at once"
    if name != "gpus_per_node" or _GPU.search(words):
        return Grade.PLAIN
    if not _NODE.search(words):
        return Grade.THIN
    return (
        Grade.PLAIN if any(letter.isdigit() for letter in words) else Grade.LINKED
    )  # "one per server" may be of anything


def holds(words: str, number: int) -> bool:
    """Whether words state a number themselves, and do not only name a thing that has so many."""
    return (
        any(one.value == number for one in find_quantities(words))
        or re.search(rf"(?<![\w.]){number}", words) is not None
    )
