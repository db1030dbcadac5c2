"""Changes compiled to an RFC 6902 JSON Patch against the document as it stands, and patches applied.

Every operation that replaces or removes is preceded by a `test` of what it takes to be there, and every change of a
node by a test of its id: a patch made for one document does not apply to another. The input is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsonpatch  # pyright: ignore[reportMissingTypeStubs] - it has none

from ..checkpoint import checked
from ..rules.edits import Change, Step, value_at
from .fields import same

Operation = dict[str, Any]
Patch = tuple[Operation, ...]
# Operations that are applied between two checkpoints.
_APPLIED_AT_ONCE = 256


def pointer(path: Sequence[Step]) -> str:
    """JSON Pointer (RFC 6901) of `path`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def compile_patch(document: Mapping[str, Any], changes: Iterable[Change]) -> Patch:
    """The patch that makes `changes`: first what is set, then what is removed from the end on, then what is added.

    Of changes of one place the first counts; what lies inside of something that is removed is left out.
    """
    once: dict[object, Change] = {}
    for place, change in enumerate(changes):
        once.setdefault(place if change.action == "append" else change.path, change)
    gone = {change.path for change in once.values() if change.action == "remove"}
    kept = [
        change
        for change in once.values()
        if not any(change.path[:depth] in gone for depth in range(1, len(change.path)))
    ]
    guarded: set[int] = set()
    patch: list[Operation] = []
    for change in checked(kept):
        if change.action == "set":
            patch += _set(document, change, guarded)
    for change in checked(sorted((one for one in kept if one.action == "remove"), key=_from_the_end)):
        patch += _remove(document, change)
    for change in kept:
        if change.action == "append":
            patch.append({"op": "add", "path": f"{pointer(change.path)}/-", "value": change.value})
    return tuple(patch)


def _from_the_end(change: Change) -> tuple[Any, ...]:
    """Sort key: later places of a list before earlier ones."""
    return tuple([(0, -step, "") if isinstance(step, int) else (1, 0, step) for step in change.path])


def _guard(document: Mapping[str, Any], path: Sequence[Step], guarded: set[int]) -> list[Operation]:
    """A test that the node at `path` is the one that is meant."""
    if len(path) < 3 or path[0] != "nodes" or not isinstance(path[1], int) or path[1] in guarded:
        return []
    node = value_at(document, path[:2])
    guarded.add(path[1])
    if not isinstance(node, dict) or "id" not in node:
        return []
    return [{"op": "test", "path": pointer((*path[:2], "id")), "value": node["id"]}]


def _set(document: Mapping[str, Any], change: Change, guarded: set[int]) -> list[Operation]:
    at = pointer(change.path)
    guard = _guard(document, change.path, guarded)
    try:
        old = value_at(document, change.path)
    except LookupError:
        return [*guard, {"op": "add", "path": at, "value": change.value}]
    return [*guard, *_test(at, old), {"op": "replace", "path": at, "value": change.value}]


def _remove(document: Mapping[str, Any], change: Change) -> list[Operation]:
    at = pointer(change.path)
    old = value_at(document, change.path)
    if len(change.path) == 2 and change.path[0] == "nodes" and isinstance(old, dict) and "id" in old:
        return [{"op": "test", "path": f"{at}/id", "value": old["id"]}, {"op": "remove", "path": at}]
    return [*_test(at, old), {"op": "remove", "path": at}]


def _test(at: str, old: Any) -> list[Operation]:
    """A test that `old` stands at a place; none for what is not equal to itself, as NaN."""
    return [{"op": "test", "path": at, "value": old}] if same(old, copy.deepcopy(old)) else []


def apply_patch(document: Mapping[str, Any], patch: Sequence[Operation]) -> dict[str, Any]:
    """`document` after `patch`; the input is not changed, and what the patch leaves alone is shared with it.

    Raises:
        jsonpatch.JsonPatchException: the patch was not made for this document.
    """
    result: dict[str, Any] = dict(document)
    own: set[object] = set()
    for operation in checked(patch):
        _make_own(result, operation["path"], own)
    for start in checked(range(0, len(patch), _APPLIED_AT_ONCE), 1):
        # The operations' values become parts of the document: each document gets its own.
        made: Any = jsonpatch.JsonPatch(copy.deepcopy(list(patch[start : start + _APPLIED_AT_ONCE])))
        result = made.apply(result, in_place=True)
    return result


def _make_own(document: dict[str, Any], at: str, own: set[object]) -> None:
    """Copy what an operation at the pointer `at` would change, once."""
    parts = at.split("/")
    top = parts[1].replace("~1", "/").replace("~0", "~") if len(parts) > 1 else ""
    if top not in document:
        return
    if top not in ("nodes", "edges") or not isinstance(document[top], list):
        if top not in own:
            document[top] = copy.deepcopy(document[top])
        own.add(top)
        return
    if top not in own:
        document[top] = list(document[top])
        own.add(top)
    items: list[Any] = document[top]
    # An operation inside an element; positions before removals are those of the input, and removals come after.
    if len(parts) > 3 and parts[2].isdecimal() and int(parts[2]) < len(items) and (top, parts[2]) not in own:
        items[int(parts[2])] = copy.deepcopy(items[int(parts[2])])
        own.add((top, parts[2]))
