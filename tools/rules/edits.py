"""Changes of a document as data: what a rule says is to be mended, and what a fix is made of.

A change names its place by a JSON Pointer into the document as it stands before any change of the same fix is made, so
that changes can be listed one by one and applied together. Nothing here changes a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..plan.view import as_list, as_mapping

Step = str | int


@dataclass(frozen=True, slots=True)
class Change:
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
    parts = pointer.split("/")[1:]
    for place, part in enumerate(parts):
        key = part.replace("~1", "/").replace("~0", "~")
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
    """What stands at `path`.

    Raises:
        LookupError: nothing does.
    """
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
