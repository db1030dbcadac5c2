"""The objects in the text of a dataset, each with its file and line; what is no JSON is refused in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...tools.errors import InputError
from ...tools.input.strict_json import after_space, parse
from ...tools.input.strict_values import JsonError
from ...tools.plan.pointer_lines import members

_LINE_END = re.compile(r"\r\n|\r|\n")


def objects_of(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Each object of a file with its place: a JSON value with `cases`, a list, one case, or an object per line.

    Raises:
        InputError: it is neither JSON nor lines of JSON, or an object has a key twice.
    """
    try:
        content = parse(text, name)
    except JsonError as error:
        yield from _lines(text, name, error)
        return
    if isinstance(content, dict) and "cases" in content:
        content = content["cases"]
        if not isinstance(content, list):
            raise InputError(f"{name}: `cases` is not a list")
    if isinstance(content, list):
        for place, (line, case) in enumerate(zip(_item_lines(text), content, strict=True)):
            yield f"{name}:{line}: cases/{place}", case
    else:
        yield f"{name}:{_line_at(text, after_space(text, 0))}", content


def _lines(text: str, name: str, not_whole: JsonError) -> Iterator[tuple[str, Any]]:
    """The object of each line; if the first line holds none, the file is taken for one broken value."""
    # Not `splitlines`: JSON strings may contain Unicode line separators.
    lines = ((number, line) for number, line in enumerate(_LINE_END.split(text), start=1) if line.strip())
    for place, (number, line) in enumerate(lines):
        try:
            yield f"{name}:{number}", parse(line, name)
        except JsonError as error:
            # A refused line that is sound JSON is reported itself; one that is none may be part of a broken whole.
            fault, at = (error, number) if place or error.is_json else (not_whole, not_whole.line)
            hint = "" if fault.is_json else "; a dataset has one object a line, no comments"
            raise InputError(f"{name}{f':{at}' if at else ''}: {fault.reason}{hint}") from None


def _item_lines(text: str) -> Iterator[int]:
    """The line of each item of the list that a sound `text` is, or has as `cases`."""
    line, counted = 1, 0
    for start in _item_starts(text):
        line += len(_LINE_END.findall(text, counted, start))
        counted = start
        yield line


def _item_starts(text: str) -> Iterator[int]:
    at = after_space(text, 0)
    if text[at] == "{":
        at = next(begin for name, begin in members(text, at) if name == "cases")
    return (begin for _, begin in members(text, at))


def _line_at(text: str, at: int) -> int:
    return 1 + len(_LINE_END.findall(text, 0, at))
