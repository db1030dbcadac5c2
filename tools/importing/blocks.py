"""A text as its code and its files: fenced blocks, texts that a script writes, and parts below a file's name."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_MOST_LINES = 20_000
_FENCE = re.compile(r"[ \t>]{0,20}(?:```|~~~)")
_FILE_NAME = re.compile(r"[\w./-]{1,200}\.ya?ml")
_TITLE = re.compile(r"#+[ \t]*([\w./-]{1,200}\.\w{1,10})[ \t]*")
_OPENING = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1")
_TARGET = re.compile(r"(?:>{1,2}|\btee(?:[ \t]+-a)?)[ \t]*([\w./${}-]{1,200})")


@dataclass(slots=True)
class Code:
    """Lines of code, and the texts of files by their names without folders."""

    lines: list[str] = field(default_factory=list[str])
    files: dict[str, str] = field(default_factory=dict[str, str])

    def put(self, name: str, lines: list[str]) -> None:
        """Add a file."""
        self.files[name.rsplit("/", 1)[-1]] = "\n".join(lines)


def code_of(text: str, is_command: Callable[[str], bool]) -> Code:
    """The code of `text`: its fenced blocks where a line of them `is_command`, each below the line above it."""
    found = Code()
    lines = text.replace("\r\n", "\n").split("\n", _MOST_LINES)[:_MOST_LINES]
    blocks: list[tuple[str, list[str]]] = []
    for above, block in fenced(lines):
        name = _FILE_NAME.search(above)
        if name is not None and not any(map(is_command, block)):
            found.put(name[0], block)
        else:
            blocks.append((above, block))
    if any(is_command(line) for _, block in blocks for line in block):
        lines = [line for above, block in blocks for line in ("", f"# {above}", *block)]
    found.lines = list(_unfiled(_unwritten(lines, found), found, is_command))
    return found


def fenced(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Fenced blocks, each with the last line above it that is not empty."""
    above = ""
    block: list[str] | None = None
    for line in lines:
        if _FENCE.match(line) is not None:
            if block is not None:
                yield above, block
                above, block = "", None
            else:
                block = []
        elif block is not None:
            block.append(line)
        elif line.strip():
            above = line.strip()
    if block is not None:
        yield above, block


def _unwritten(lines: list[str], found: Code) -> list[str]:
    """`lines` without the texts that follow a command up to a word (`cat > FILE <<EOF`), which go to the files."""
    ends: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        ends.setdefault(line.strip(), []).append(place)
    kept: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        opening = None if line.lstrip().startswith("#") else _OPENING.search(line)
        closing = ends.get(opening[2], []) if opening is not None else []
        after = bisect_right(closing, place)
        if after == len(closing):
            kept.append(line)
            place += 1
            continue
        end = closing[after]
        target = _TARGET.search(_OPENING.sub(" ", line))
        if target is not None:
            found.put(target[1], lines[place + 1 : end])
        place = end + 1
    return kept


def _unfiled(lines: list[str], found: Code, is_command: Callable[[str], bool]) -> Iterator[str]:
    """`lines` without the parts below a remark that is the name of a YAML file, which go to the files."""
    part: list[str] = []
    title: str | None = None
    for line in [*lines, "# end.of"]:
        match = _TITLE.fullmatch(line)
        if match is None:
            part.append(line)
            continue
        if title is None or any(map(is_command, part)):
            yield from part
        else:
            found.put(title, part)
        title, part = (match[1] if _FILE_NAME.fullmatch(match[1]) else None), []
