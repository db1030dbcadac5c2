"""Edges as foreign proposals write them: "a -> b -> {c d}", [a, b], {"from": a, "to": b}, {"a": ["b", "c"]}.

Names only; which nodes they are, and whether the format has a place for such an edge, is decided where nodes are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .notes import Notes, shortened
from .scope import Scope
from .shapes import is_list, is_object

MOST_EDGES = 200_000
_ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|>>)\s*")
_STATEMENTS = re.compile(r"[;\n]")
_NAMES = re.compile(r"[^\s,|{}\[\]]+")
_SOURCE = ("source", "from", "src", "tail", "start", "u", "producer", "起点", "源")
_TARGET = ("target", "to", "dst", "dest", "destination", "head", "end", "v", "consumer", "终点", "目标")


@dataclass(frozen=True, slots=True)
class Joint:
    """One edge by the names of its ends, with the phase that it was written in."""

    source: str
    target: str
    phase: str | None
    where: str
    carries: str | None = None


def joints_of(value: object, scope: Scope, notes: Notes) -> list[Joint]:
    """The edges that `value` states; what of it states none is noted."""
    found: list[Joint] = []
    if isinstance(value, str):
        parts: list[Any] = [part for part in _STATEMENTS.split(value) if part.strip()]
    elif is_object(value):
        parts = [[source, targets] for source, targets in value.items()]
    else:
        parts = value if is_list(value) else []
    for place, part in enumerate(parts):
        where = scope.inside(place).where
        pairs = _pairs(part)
        if not pairs or len(found) + len(pairs) > MOST_EDGES:
            notes.unclear(f"{shortened(part)!r} is no edge that can be read", where)
            if len(found) >= MOST_EDGES - 1:
                break
            continue
        carries = part.get("carries") if is_object(part) else None
        found.extend(Joint(a, b, scope.phase, where, carries if isinstance(carries, str) else None) for a, b in pairs)
    return found


def _pairs(part: Any) -> list[tuple[str, str]]:
    if isinstance(part, str):
        return _chain([_group(words) for words in _ARROW.split(part[:20_000])])
    if is_list(part):
        items = part
        return _chain([_ends(item) for item in items[:2]]) if len(items) in (2, 3) else []
    if is_object(part):
        edge = part
        return _chain([_ends(_first(edge, _SOURCE)), _ends(_first(edge, _TARGET))])
    return []


def _first(edge: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((edge[name] for name in names if name in edge), None)


def _ends(value: Any) -> list[str]:
    """A node's name, or several."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return [str(value).strip()]
    if is_list(value):
        return [str(item).strip() for item in value if isinstance(item, str | int)]
    return []


def _group(words: str) -> list[str]:
    """ "{c d}", "[c, d]" or "c, d" as names; without brackets or commas the words are one name."""
    words = words.strip().strip('"')
    if words[:1] in ("{", "[", "(") or "," in words:
        return [name.strip("\"'()") for name in _NAMES.findall(words)]
    return [words] if words else []


def _chain(groups: list[list[str]]) -> list[tuple[str, str]]:
    """Every edge of a chain of groups; nothing where a group is empty or the edges would be too many."""
    if len(groups) < 2 or not all(groups):
        return []
    count = sum(len(a) * len(b) for a, b in pairwise(groups))
    if count > MOST_EDGES:
        return []
    return [(a, b) for first, second in pairwise(groups) for a in first for b in second]
