"""Edges as foreign proposals write them: "a -> b -> {c d}", [a, b], {"from": a, "to": b}, {"a": ["b", "c"]}.

Names only; which nodes they are, and whether the format has a place for such an edge, is decided where nodes are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...shapes import is_list, is_object
from .notes import Notes, shortened
from .scope import Scope

MOST_EDGES = 200_000
_ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|>>)\s*")
_STATEMENTS = re.compile(r"[;\n]")
_NAMES = re.compile(r"[^\s,|{}\[\]]+")
_SOURCE = ("source", "from", "src", "tail", "start", "u", "producer", "起点", "源")
_TARGET = ("target", "to", "dst", "dest", "destination", "head", "end", "v", "consumer", "终点", "目标")


@dataclass(frozen=True, slots=True)
class NamedEdge:
    """One edge by the names of its ends, with the phase that it was written in."""

    source: str
    target: str
    phase: str | None
    where: str
    carries: str | None = None


def edges_of(value: object, scope: Scope, notes: Notes) -> list[NamedEdge]:
    """The edges that `value` states; what of it states none is noted."""
    edges: list[NamedEdge] = []
    if isinstance(value, str):
        parts: list[Any] = [part for part in _STATEMENTS.split(value) if part.strip()]
    elif is_object(value):
        parts = [[source, targets] for source, targets in value.items()]
    else:
        parts = value if is_list(value) else []
    for place, part in enumerate(parts):
        where = scope.inside(place).where
        pairs = _pairs(part)
        if not pairs or len(edges) + len(pairs) > MOST_EDGES:
            notes.unclear(f"{shortened(part)!r} is no edge that can be read", where)
            if len(edges) >= MOST_EDGES - 1:
                break
            continue
        carries = part.get("carries") if is_object(part) else None
        carries = carries if isinstance(carries, str) else None
        edges.extend(NamedEdge(source, target, scope.phase, where, carries) for source, target in pairs)
    return edges


def _pairs(part: Any) -> list[tuple[str, str]]:
    """Every edge of a chain of names or groups of names; nothing where it is none, or the edges would be too many."""
    groups: list[list[str]] = []
    if isinstance(part, str):
        groups = [_names_in(words) for words in _ARROW.split(part[:20_000])]
    elif is_list(part) and len(part) in (2, 3):
        groups = [_names(item) for item in part[:2]]
    elif is_object(part):
        ends = [next((part[name] for name in names if name in part), None) for names in (_SOURCE, _TARGET)]
        groups = [_names(end) for end in ends]
    if not all(groups) or sum(len(a) * len(b) for a, b in pairwise(groups)) > MOST_EDGES:
        return []
    return [(a, b) for sources, targets in pairwise(groups) for a in sources for b in targets]


def _names(value: Any) -> list[str]:
    """A node's name, or several."""
    names = value if is_list(value) else [] if isinstance(value, bool) else [value]
    return [str(name).strip() for name in names if isinstance(name, str | int)]


def _names_in(words: str) -> list[str]:
    """ "{c d}", "[c, d]" or "c, d" as names; without brackets or commas the words are one name."""
    words = words.strip().strip('"')
    if words[:1] in ("{", "[", "(") or "," in words:
        return [name.strip("\"'()") for name in _NAMES.findall(words)]
    return [words] if words else []
