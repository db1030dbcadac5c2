"""Functions of a script as the lines that their calls run, with what each call gives them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

_MOST_LINES = 20_000
# Characters of bodies that calls run, all together.
_MOST_RUN = 100_000
_MOST_DEPTH = 3
_MOST_BODY = 200
_MOST_CHARS = 8_000
_MOST_GIVEN = 100
_OPENS = re.compile(r"([ \t]*)(?:function[ \t]+)?([A-Za-z_][\w-]{0,60})[ \t]*\(\)[ \t]*\{?[ \t]*")
_GIVEN = re.compile(r"\"?\$(?:[@*]|\{[@*]\})\"?|\$(\d)|\$\{(\d)(?::?-([^{}]{0,200}))?\}")


def called(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a script with bodies in place of calls; a function that nothing calls stands as it is."""
    rest, bodies = _parted(list(lines)[:_MOST_LINES])
    used = {_first(line) for line in (*rest, *(line for body in bodies.values() for line in body))}
    for name in bodies.keys() - used:
        rest += [line for line in bodies[name] if _GIVEN.search(line) is None]
    left = [_MOST_RUN]
    for line in rest:
        yield from _run(line, bodies, left, _MOST_DEPTH)


def _parted(lines: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Lines outside of functions, and the bodies of functions, each up to its bracket."""
    rest: list[str] = []
    bodies: dict[str, list[str]] = {}
    place = 0
    while place < len(lines):
        opens = _OPENS.fullmatch(lines[place]) if "()" in lines[place] else None
        end = None if opens is None else _end(lines, place + 1, opens[1])
        if opens is None or end is None:
            rest.append(lines[place])
            place += 1
        else:
            bodies[opens[2]] = list(lines[place + 1 : end])
            place = end + 1
    return rest, bodies


def _end(lines: Sequence[str], start: int, margin: str) -> int | None:
    """Where a function ends: at a bracket as far in as its name."""
    last = min(len(lines), start + _MOST_BODY)
    return next((place for place in range(start, last) if lines[place].rstrip() == f"{margin}}}"), None)


def _first(line: str) -> str:
    return line.split(None, 1)[0] if line.strip() else ""


def _run(line: str, bodies: dict[str, list[str]], left: list[int], depth: int) -> Iterator[str]:
    """A line, or what the function that it calls runs."""
    body = bodies.get(_first(line))
    if body is None or depth <= 0 or left[0] <= 0:
        yield line
        return
    try:
        given = shlex.split(line[:_MOST_CHARS].rstrip().removesuffix("&"))[1:_MOST_GIVEN]
    except ValueError:
        given = line[:_MOST_CHARS].split()[1:_MOST_GIVEN]
    for one in body:
        plain = one.rstrip()
        shifts = plain.strip() == "shift" or plain.endswith("; shift")
        line = _put(plain.removesuffix("shift").rstrip("; \t") if shifts else one, given)
        left[0] -= len(line) + 1
        yield from _run(line, bodies, left, depth - 1)
        given = given[1:] if shifts else given


def _put(line: str, given: Sequence[str]) -> str:
    """`line` with what a call gives: all of it, or one of its words."""

    def value(match: re.Match[str]) -> str:
        place = match[1] or match[2]
        if place is None:
            return " ".join(one if one.startswith("$") else shlex.quote(one) for one in given)
        if place == "0" or int(place) > len(given):
            return match[3] if match[3] is not None else match[0]
        return given[int(place) - 1]

    if "$" not in line:
        return line
    found = _GIVEN.search(line)
    parts: list[str] = []
    size = end = 0
    while found is not None and size < _MOST_CHARS:
        parts += [line[end : found.start()], value(found)]
        size += len(parts[-2]) + len(parts[-1])
        end = found.end()
        found = _GIVEN.search(line, end)
    return "".join((*parts, line[end:]))[:_MOST_CHARS]
