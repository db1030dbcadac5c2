"""Loops of shells, as how often their bodies are run."""

from __future__ import annotations

import re

_LOOP = re.compile(r"for[ \t]+(\w{1,40})[ \t]+in[ \t]+(.{1,2000}?)[ \t]*(?:;|$)")
_COUNTED_LOOP = re.compile(
    r"for[ \t]*\(\([ \t]*(\w{1,40})[ \t]*=[ \t]*(\d{1,6})[ \t]*;[ \t]*\w{1,40}[ \t]*(<=?)[ \t]*(\d{1,6})[ \t]*;"
)
_RUN = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}|\$\(seq[ \t]+(\d{1,6})[ \t]+(\d{1,6})\)|\$\(seq[ \t]+(\d{1,6})\)")


def loop_in(line: str) -> tuple[str, int] | None:
    """The variable of the loop that a line begins, and how often its body is run, as far as the line says."""
    if counted := _COUNTED_LOOP.match(line):
        return counted[1], max(1, int(counted[4]) - int(counted[2]) + (counted[3] == "<="))
    loop = _LOOP.match(line)
    if loop is None:
        return None
    if run := _RUN.fullmatch(loop[2].strip()):
        first, last = (int(one) for one in (run[1] or run[3] or "1", run[2] or run[4] or run[5]))
        return loop[1], max(1, last - first + 1)
    return loop[1], 1 if "$" in loop[2] else len(loop[2].split())
