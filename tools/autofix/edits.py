"""Changes compiled to an RFC 6902 JSON Patch against the document as it stands, and patches applied.

Every operation that replaces or removes is preceded by a `test` of what it takes to be there, and every change of a
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
    for change in checked([change for change in kept if change.action == "set"]):
        patch += _set(document, change, guarded)
    for change in checked(sorted((change for change in kept if change.action == "remove"), key=_from_the_end)):
        patch += _remove(document, change)
    appended = [change for change in kept if change.action == "append"]
    for path in dict.fromkeys(change.path for change in appended):
        # A list that the document does not have, and that is not set here, is begun.
        if not _is_list(document, path) and path not in {change.path for change in kept if change.action == "set"}:
            patch.append({"op": "add", "path": pointer(path), "value": []})
    patch += ({"op": "add", "path": f"{pointer(one.path)}/-", "value": one.value} for one in appended)
    return tuple(patch)


def _is_list(document: Mapping[str, Any], path: tuple[Step, ...]) -> bool:
    try:
        return isinstance(value_at(document, path), list)
    except LookupError:
        return False


def _from_the_end(change: Change) -> tuple[Any, ...]:
    """Sort key: later places of a list before earlier ones."""
    return tuple([(0, -step, "") if isinstance(step, int) else (1, 0, step) for step in change.path])


def _set(document: Mapping[str, Any], change: Change, guarded: set[int]) -> list[Operation]:
    """What sets a member, after a test that the node around it is the one that is meant, where none was made yet."""
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
    """A test that `old` stands at a place; none for what is not equal to itself, as NaN."""
    old = copied(old)
    return [{"op": "test", "path": at, "value": old}] if same(old, old) else []


def apply_patch(document: Mapping[str, Any], patch: Sequence[Operation]) -> dict[str, Any]:
    """`document` after `patch`; the input is not changed, and what the patch leaves alone is shared with it.

    Raises jsonpatch.JsonPatchException: the patch was not made for this document.
    """
    patched = Patched(document)
    patched.apply(patch)
    return patched.document


class Patched:
    """A document to which patches of this module are applied one after another; the first one is never changed.

    What no patch changes is shared with the first document: a list or object is copied when a change is made in it.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        # Kept, so that nothing that is copied can come to have the identity of what is shared.
        self._first = document
        self.document: dict[str, Any] = dict(document)
        self._own = {id(self.document)}

    def apply(self, patch: Sequence[Operation]) -> None:
        """Make the changes of `patch`; the document may be half changed where it does not fit.

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
            inside = inside[_key(inside, step)] if action == "test" else self._owned(inside, _key(inside, step))
        last = steps[-1]
        if action == "add" and isinstance(inside, list):
            inside.insert(len(inside) if last == "-" else int(last), copied(operation["value"]))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - raw JSON
            return
        key = _key(inside, last)
        if action == "add":
            inside[key] = copied(operation["value"])
            return
        found = inside[key]
        if action == "remove":
            del inside[key]
        elif action == "replace":
            inside[key] = copied(operation["value"])
        elif not same(found, operation["value"]):
            raise jsonpatch.JsonPatchTestFailed(f"what is at {operation['path']!r} is not what the patch was made for")

    def _owned(self, inside: Any, key: Step) -> Any:
        """What is at `key`, where it may be changed: a copy of one level, made once."""
        found = inside[key]
        if isinstance(found, list | dict) and id(found) not in self._own:  # pyright: ignore[reportUnknownArgumentType] - raw JSON
            found = inside[key] = found.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - raw JSON
            self._own.add(id(found))  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return found  # pyright: ignore[reportUnknownVariableType] - raw JSON


def _key(inside: Any, step: str) -> Step:
    return int(step) if isinstance(inside, list) else step


def copied(value: Any) -> Any:
    """A copy of a JSON value, so that a patch and the documents that come of it share nothing."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType] - raw JSON
    return [copied(member) for member in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType] - raw JSON
