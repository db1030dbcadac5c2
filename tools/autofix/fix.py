"""A fix: what the findings of a rule call for, as changes, and what it means for the author's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..rules.edits import Change

Safety = Literal["safe", "strategy", "display"]
# Blocks that say what was asked and decided; `gpu_count` is counted off the graph.
_DECIDED = frozenset({"model", "hardware", "workload", "precision", "policy", "serving", "strategy"})
_SHOWN = frozenset({"reasoning", "construction", "performance"})
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Fix:
    """What mends findings of a rule."""

    rule: str
    changes: tuple[Change, ...]

    @property
    def safety(self) -> Safety:
        """`safe` keeps the meaning, `strategy` changes what the author decided, `display` what is only shown."""
        if any(_is_decision(change) for change in self.changes):
            return "strategy"
        if all(change.path[0] in _SHOWN for change in self.changes):
            return "display"
        return "safe"

    @property
    def description(self) -> str:
        """What the fix does, in one line."""
        return describe(self.changes)


def joined(fixes: Iterable[Fix]) -> list[Fix]:
    """`fixes` with those of one rule and one kind as one."""
    alike: dict[tuple[str, Safety], list[Change]] = {}
    for fix in fixes:
        alike.setdefault((fix.rule, fix.safety), []).extend(fix.changes)
    return [Fix(rule, tuple(changes)) for (rule, _), changes in alike.items()]


def _is_decision(change: Change) -> bool:
    if change.path[0] in _DECIDED:
        return change.path != ("strategy", "gpu_count")
    return len(change.path) == 3 and change.path[0] == "nodes" and change.path[2] == "layers"


def describe(changes: Sequence[Change]) -> str:
    """What `changes` do, in one line: fields of the header by name, nodes and edges by number and some by name."""
    parts: list[str] = []
    header = [change for change in changes if change.path[0] not in ("nodes", "edges")]
    for change in header[:_MAX_NAMED]:
        name = ".".join(map(str, change.path))
        parts.append(f"drops {name}" if change.action == "remove" else f"sets {name}{_shown(change.value)}")
    if len(header) > _MAX_NAMED:
        parts.append(f"sets {len(header) - _MAX_NAMED} more fields")
    parts += _counted(changes, "append", 1, "adds")
    parts += _counted(changes, "remove", 2, "drops")
    inner = Counter(
        (str(change.path[0])[:-1], str(change.path[2]))
        for change in changes
        if len(change.path) > 2 and change.path[0] in ("nodes", "edges")
    )
    parts += [f"mends {field} of {times} {kind}{'s' * (times > 1)}" for (kind, field), times in inner.items()]
    return ", ".join(parts)


def _counted(changes: Sequence[Change], action: str, depth: int, verb: str) -> list[str]:
    """How many nodes and edges are added or dropped, the first few by name."""
    parts: list[str] = []
    for kind in ("nodes", "edges"):
        found = [one for one in changes if one.action == action and one.path[0] == kind and len(one.path) == depth]
        if not found:
            continue
        names = [_name(change) for change in found[:_MAX_NAMED]]
        more = ", …" if len(found) > _MAX_NAMED else ""
        parts.append(f"{verb} {len(found)} {kind[:-1]}{'s' * (len(found) > 1)} ({', '.join(names)}{more})")
    return parts


def _name(change: Change) -> str:
    if change.edges:
        return " → ".join(map(_short, change.edges[0]))
    return _short(change.nodes[0]) if change.nodes else f"at {change.path[-1]}"


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:59]}…"


def _shown(value: Any) -> str:
    return f" to {value!r}" if isinstance(value, int | float | str) and len(str(value)) <= 60 else ""
