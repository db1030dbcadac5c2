"""Compiles changes to an RFC 6902 JSON Patch against a document, and applies patches.

Every operation that replaces or removes is preceded by a `test` of the value that it expects, and every change of a
node by a test of its id: a patch made for one document does not apply to another. The input is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsonpatch  # pyright: ignore[reportMissingTypeStubs] - it has none

from ..checkpoint import checked
from ..input.strict_values import parts_of
from ..plan.schema import pointer
from ..rules.findings import Change, Step, same, value_at

Operation = dict[str, Any]
Patch = tuple[Operation, ...]


def compile_patch(document: Mapping[str, Any], changes: Iterable[Change]) -> Patch:
    """The patch that makes `changes`: first what is set, then what is removed (last places first), then what is added.

    Only the first change of a place counts; changes inside something that is removed are left out.
    """
    once: dict[object, Change] = {}
    for place, change in enumerate(changes):
        once.setdefault(place if change.action == "append" else change.path, change)
    gone = {change.path for change in once.values() if change.action == "remove"}
    remaining = [
        change
        for change in once.values()
        if not any(change.path[:depth] in gone for depth in range(1, len(change.path)))
    ]
    guarded: set[int] = set()
    patch: list[Operation] = []
    for change in checked([change for change in remaining if change.action == "set"]):
        patch += _set(document, change, guarded)
    for change in checked(sorted((change for change in remaining if change.action == "remove"), key=_from_the_end)):
        patch += _remove(document, change)
    appended = [change for change in remaining if change.action == "append"]
    for path in dict.fromkeys(change.path for change in appended):
        # Begin a list that the document lacks and that no change sets.
        if not _is_list(document, path) and path not in {change.path for change in remaining if change.action == "set"}:
            patch.append({"op": "add", "path": pointer(path), "value": []})
    patch += ({"op": "add", "path": f"{pointer(change.path)}/-", "value": change.value} for change in appended)
    return tuple(patch)


def _is_list(document: Mapping[str, Any], path: tuple[Step, ...]) -> bool:
    try:
        return isinstance(value_at(document, path), list)
    except LookupError:
        return False


def _from_the_end(change: Change) -> tuple[Any, ...]:
    """Sort key: later places of a list first."""
    return tuple([(0, -step, "") if isinstance(step, int) else (1, 0, step) for step in change.path])


def _set(document: Mapping[str, Any], change: Change, guarded: set[int]) -> list[Operation]:
    """Operations that set a member, after a test of the id of the node around it unless it is in `guarded`."""
    at, path = pointer(change.path), change.path
    guard: list[Operation] = []
    if len(path) > 2 and path[0] == "nodes" and isinstance(path[1], int) and path[1] not in guarded:
        guarded.add(path[1])
        node = value_at(document, path[:2])
        if isinstance(node, dict) and "id" in node:
            guard = [{"op": "test", "path": pointer((*path[:2], "id")), "value": node["id"]}]
    try:
        old = value_at(document, path)
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
    """A test that `old` stands at a place; none if it is not equal to itself, as NaN."""
    old = copied(old)
    return [{"op": "test", "path": at, "value": old}] if same(old, old) else []


def apply_patch(document: Mapping[str, Any], patch: Sequence[Operation]) -> dict[str, Any]:
    """`document` after `patch`; the input is not changed, and parts that the patch leaves alone are shared.

    Raises jsonpatch.JsonPatchException: the patch was not made for this document.
    """
    patched = Patched(document)
    patched.apply(patch)
    return patched.document


class Patched:
    """A document to which patches of this module are applied in turn; the original is never changed.

    A list or object is copied when it is first changed; all others are shared with the original.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        # Kept alive, so that no copy can get the id of a shared object.
        self._first = document
        self.document: dict[str, Any] = dict(document)
        self._copied_ids = {id(self.document)}

    def apply(self, patch: Sequence[Operation]) -> None:
        """Make the changes of `patch`; the document may be half changed if it does not fit.

        Raises jsonpatch.JsonPatchException: the patch was not made for this document.
        """
        for operation in checked(patch):
            try:
                self._do(operation)
            except (LookupError, TypeError, ValueError) as error:
                raise jsonpatch.JsonPatchConflict(f"nothing is at {operation['path']!r}") from error

    def _do(self, operation: Operation) -> None:
        action = operation["op"]
        steps = parts_of(operation["path"])
        inside: Any = self.document
        for step in steps[:-1]:
            inside = inside[_key(inside, step)] if action == "test" else self._copied_member(inside, _key(inside, step))
        last = steps[-1]
        if action == "add" and isinstance(inside, list):
            inside.insert(len(inside) if last == "-" else int(last), copied(operation["value"]))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - raw JSON
            return
        key = _key(inside, last)
        if action == "add":
            inside[key] = copied(operation["value"])
            return
        current = inside[key]
        if action == "remove":
            del inside[key]
        elif action == "replace":
            inside[key] = copied(operation["value"])
        elif not same(current, operation["value"]):
            raise jsonpatch.JsonPatchTestFailed(f"what is at {operation['path']!r} is not what the patch was made for")

    def _copied_member(self, inside: Any, key: Step) -> Any:
        """The member at `key`, safe to change: a list or object is replaced by a shallow copy, made once."""
        member = inside[key]
        if isinstance(member, list | dict) and id(member) not in self._copied_ids:  # pyright: ignore[reportUnknownArgumentType] - raw JSON
            member = inside[key] = member.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - raw JSON
            self._copied_ids.add(id(member))  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return member  # pyright: ignore[reportUnknownVariableType] - raw JSON


def _key(inside: Any, step: str) -> Step:
    return int(step) if isinstance(inside, list) else step


def copied(value: Any) -> Any:
    """A deep copy of a JSON value, so that a patch and the patched documents share nothing."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType] - raw JSON
    return [copied(member) for member in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType] - raw JSON
