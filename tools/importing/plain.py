"""Lines of a script in the forms that all shells have: without arrays, lists in brackets, and settings of units.

`ARGS=(--a 1)` and `"${ARGS[@]}"` become the words themselves, `CMD ["vllm", "serve"]` of an image a command, and
`Environment=A=1` of a systemd unit or `ENV A=1` of an image an assignment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

_MOST_LINES = 200
_MOST_CHARS = 8_000
_ARRAY = re.compile(r"[ \t]*(?:(?:local|declare|readonly|export)[ \t]+(?:-a[ \t]+)?)?(\w{1,60})(\+?)=\((.*)", re.DOTALL)
_ALL_OF = re.compile(r"\"?\$\{(\w{1,60})\[[@*]\]\}\"?")
_COUNT_OF = re.compile(r"\$\{#(\w{1,60})\[[@*]\]\}")
_INDICES_OF = re.compile(r"\"?\$\{!(\w{1,60})\[[@*]\]\}\"?")
_ONE_OF = re.compile(r"\$\{(\w{1,60})\[(\d{1,3})\]\}")
_REMARK = re.compile(r"(?:^|[ \t])#.*")
_QUOTED = r"(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}')"
_LIST = re.compile(rf"\[[ \t]*{_QUOTED}(?:[ \t]*,[ \t]*{_QUOTED}){{1,400}}[ \t]*,?[ \t]*\]")
# What a unit or a supervisor runs.
_RUNS = re.compile(r"[ \t]*(?:ExecStart|command)=(?=[/\w])")
_SETTING = re.compile(r"[ \t]*(?:Environment=|ENV[ \t]+)[\"']?([A-Z][A-Z0-9_]{0,60})(?:=|[ \t]+)(.*)")


def plain(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a script in plain forms; those of an array are left out."""
    arrays: dict[str, str] = {}
    waiting = iter(lines)
    for line in waiting:
        if line.lstrip().startswith("#"):
            yield line
            continue
        array = _ARRAY.match(line) if "=(" in line else None
        if array is not None:
            words = _inside(array[3], waiting)
            before = arrays.get(array[1], "") if array[2] else ""
            arrays[array[1]] = f"{before} {_put(words, arrays)}".strip()[:_MOST_CHARS]
            continue
        setting = _SETTING.match(line)
        if line.startswith("FROM "):  # what an image is made from starts nothing
            continue
        if setting is not None:
            line = f"{setting[1]}={setting[2].rstrip().rstrip(chr(34))}"
        elif runs := _RUNS.match(line):
            line = line[runs.end() :]
        elif "[" in line:
            line = _put(_LIST.sub(_as_words, line), arrays)
        yield line


def _inside(first: str, following: Iterator[str]) -> str:
    """The words of an array up to its bracket, on one line."""
    parts: list[str] = []
    line = first
    for _ in range(_MOST_LINES):
        line = _REMARK.sub("", line).rstrip().removesuffix("\\").rstrip()
        # A bracket that is opened in the line is not the array's.
        if line.endswith(")") and line.count("(") < line.count(")"):
            return " ".join((*parts, line[:-1]))
        parts.append(line)
        after = next(following, None)
        if after is None:
            break
        line = after
    return " ".join(parts)


def _put(text: str, arrays: dict[str, str]) -> str:
    """`text` with the words of arrays, their number or their places in place of names; what is not known stays."""
    if "${" not in text:
        return text
    text = _ALL_OF.sub(lambda match: arrays.get(match[1], match[0]), text[:_MOST_CHARS])
    for pattern, said in ((_COUNT_OF, _count), (_INDICES_OF, _indices), (_ONE_OF, _one)):
        text = pattern.sub(lambda match, said=said: said(match, arrays.get(match[1], "").split()) or match[0], text)
    return text


def _count(match: re.Match[str], words: list[str]) -> str:
    return str(len(words)) if words else ""


def _indices(match: re.Match[str], words: list[str]) -> str:
    return " ".join(map(str, range(len(words))))


def _one(match: re.Match[str], words: list[str]) -> str:
    return words[int(match[2])] if int(match[2]) < len(words) else ""


def _as_words(match: re.Match[str]) -> str:
    return shlex.join(one[1:-1] for one in re.findall(_QUOTED, match[0]))
