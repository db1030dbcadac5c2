"""Findings as rules yield them, violations as reports list them, and changes of a document that mend them.

A change names its place by a path into the document before any change of the same fix, so that changes can be listed
separately and applied together. Nothing here changes a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from ..frozen import Frozen
from ..input.strict_values import parts_of
from ..plan.view import EdgeView, NodeView, as_list, as_mapping

Step = str | int


class Change(Struct, frozen=True):
    """`set` the member at `path` (there already or not), `remove` it, or `append` to the list at `path`.

    `nodes` are the ids of nodes, and `edges` the ends of edges, that the change is about.
    """

    action: Literal["set", "remove", "append"]
    path: tuple[Step, ...]
    value: Any = None
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


def steps_of(pointer: str, document: Any) -> tuple[Step, ...] | None:
    """The steps of a JSON Pointer, list places as numbers; `None` if the document does not have the path."""
    steps: list[Step] = []
    parts = parts_of(pointer)
    for place, key in enumerate(parts):
        if isinstance(document, list):
            if not (key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(document)):  # pyright: ignore[reportUnknownArgumentType] - raw JSON
                return None
            steps.append(int(key))
            document = document[int(key)]  # pyright: ignore[reportUnknownVariableType] - raw JSON
        elif isinstance(document, dict) and (key in document or place == len(parts) - 1):
            steps.append(key)
            document = document.get(key)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - raw JSON
        else:
            return None
    return tuple(steps)


def value_at(document: Any, path: Sequence[Step]) -> Any:
    """The value at `path`. Raises LookupError: there is none."""
    for step in path:
        if isinstance(document, list | tuple) != isinstance(step, int) or not isinstance(document, list | tuple | dict):
            raise LookupError(step)
        document = document[step]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType] - raw JSON
    return document  # pyright: ignore[reportUnknownVariableType] - raw JSON


def same(first: Any, second: Any) -> bool:
    """Whether two JSON values have equal types and values: 1, 1.0 and true differ."""
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        items, second_items = as_list(first), as_list(second)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return len(items) == len(second_items) and all(map(same, items, second_items))
    if isinstance(first, dict) and isinstance(second, dict):
        members, second_members = as_mapping(first), as_mapping(second)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return members.keys() == second_members.keys() and all(
            same(members[key], second_members[key]) for key in members
        )
    return type(first) is type(second) and first == second  # pyright: ignore[reportUnknownArgumentType] - raw JSON


# Nodes that a finding names at most, and names that its message lists.
MAX_NODES = 64
MAX_NAMES = 16
Severity = Literal["error", "warning"]
FixKind = Literal["local", "re-plan", "report", "none"]


class Violation(Frozen):
    """One finding: which rule and which of its messages, where, what stands there, what would pass, how to mend it."""

    rule: str
    message_id: str = ""
    severity: Severity
    message: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    path: str = ""
    fix: FixKind = "none"
    source: str = ""
    value: Any = None
    expected: Any = None
    remedy: str = ""


class Finding(Struct, frozen=True):
    """A finding as a check yields it: a violation without the fields of its rule. `where` gives the JSON Pointer.

    `where` is named before the `nodes`; a sequence of like nodes points to the first and names all.
    `message_id` names the offence within the rule, so that programs can tell findings apart without reading `message`.
    `severity` overrides that of the rule if it depends on the plan (the engine that it names); `fix` overrides that of
    the rule if no repair may change the place (the request itself).
    `lacks` are the node types, and `unlinked` the edges, whose absence is found: if such a node is misplaced, or such
    an edge leads elsewhere, that is the fault, and this finding is only its consequence.
    """

    message_id: str
    message: str
    where: NodeView | EdgeView | Sequence[NodeView] | str = ""
    nodes: Sequence[NodeView | str] = ()
    edges: Sequence[EdgeView] = ()
    value: Any = None
    expected: Any = None
    remedy: str = ""
    severity: Severity | None = None
    fix: FixKind | None = None
    lacks: Sequence[str] = ()
    unlinked: Sequence[tuple[NodeView, NodeView]] = ()

    @property
    def node_ids(self) -> list[str]:
        """The ids of the `nodes`."""
        return [node if isinstance(node, str) else node.id for node in self.nodes]
