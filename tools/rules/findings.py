"""What a rule reports: a finding as it yields it, the violation that a report lists, and the changes of a document that
would mend it.

A change names its place by a JSON Pointer into the document as it stands before any change of the same fix is made, so
that changes can be listed one by one and applied together. Nothing here changes a document.
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

    `nodes` are ids of nodes, `edges` the ends of edges that the change is about, as a finding would name them.
    """

    action: Literal["set", "remove", "append"]
    path: tuple[Step, ...]
    value: Any = None
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


def steps_of(pointer: str, document: Any) -> tuple[Step, ...] | None:
    """The steps of a JSON Pointer, places in lists as numbers; `None` where the document has nothing on the way."""
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
    """What stands at `path`. Raises LookupError: nothing does."""
    for step in path:
        if isinstance(document, list | tuple) != isinstance(step, int) or not isinstance(document, list | tuple | dict):
            raise LookupError(step)
        document = document[step]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType] - raw JSON
    return document  # pyright: ignore[reportUnknownVariableType] - raw JSON


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal and of one type: 1, 1.0 and true are three."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        mine, theirs = as_list(one), as_list(other)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(one, dict) and isinstance(other, dict):
        own, wanted = as_mapping(one), as_mapping(other)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return own.keys() == wanted.keys() and all(same(own[key], wanted[key]) for key in own)
    return type(one) is type(other) and one == other  # pyright: ignore[reportUnknownArgumentType] - raw JSON


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
    """What a check yields: a violation less what the rule itself knows. `where` gives the JSON Pointer.

    What `where` is, is named before the `nodes`; of several nodes that are alike it is the first, and all are named.
    `message_id` names the offence within the rule, so that programs can tell findings apart without reading `message`.
    `severity` is that of the rule, but where a rule's gravity depends on the plan (the engine that it names); `fix` is
    that of the rule, but where no repair may change what this finding is of (the request itself).
    `lacks` are the types of node whose absence is found, `unlinked` the edges: where such a node hangs in a wrong
    place, or such an edge leads elsewhere, that is the fault, and this finding only follows from it.
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
