"""Edits of a document in two languages: RFC 6902 operations, and edits that name nodes and edges by id.

Both are all or nothing, on a copy: a failed edit is named with the reason. Edits by id all refer to the document as it
is, so that none shifts another's place; operations are applied one after another.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import jsonpatch
import jsonpointer
from pydantic import Field

from ...tools.autofix.edits import apply_patch, compile_patch
from ...tools.errors import InputError
from ...tools.input.strict_values import check_value
from ...tools.plan.plan_size import size_of
from ...tools.plan.view import as_list, as_mapping
from ...tools.rules.findings import Change, Step
from ..loop.shorten import short_text
from .tool import Arguments

# Most values that the `copy` operations of one call may write.
_MOST_COPIED = 200_000
_LONGEST_PATH = 1_000


class Operation(Arguments):
    """One operation of JSON Patch (RFC 6902)."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str = Field(description="JSON Pointer")
    source: str | None = Field(default=None, alias="from", description="JSON Pointer, of move and copy")
    value: Any = Field(default=None, description="of add, replace and test")


class Edit(Arguments):
    """One edit of a node (`node`), or of an edge (`source` and `target`)."""

    op: Literal["add", "remove", "replace"]
    node: str | None = Field(default=None, description="id of a node")
    source: str | None = Field(default=None, description="id of the node where an edge begins")
    target: str | None = Field(default=None, description="id of the node where it ends")
    field: str | None = Field(default=None, description="a field of it; null: the whole node or edge")
    value: Any = Field(default=None, description="of add and replace: the field's value, or the other fields")


def operated(document: Mapping[str, Any], operations: Sequence[Operation]) -> dict[str, Any]:
    """`document` after `operations` in order; the input is not changed.

    Raises:
        InputError: one of them fails; the message says which, and why.
    """
    result: Any = copy.deepcopy(dict(document))
    budget = _MOST_COPIED
    for place, operation in enumerate(operations):
        try:
            plain = _plain(operation)
            if operation.op == "copy":
                budget -= size_of(jsonpointer.resolve_pointer(result, operation.source or ""))
                if budget < 0:
                    raise InputError("the copies are too large")
            result = jsonpatch.JsonPatch([plain]).apply(result, in_place=True)
        # A patch on a number or a text makes the library raise various errors.
        except (
            jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, InputError, TypeError, ValueError,
            LookupError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            where = f"operation {place} ({operation.op} {short_text(operation.path, 80)})"
            raise InputError(f"{where}: {short_text(_reason(error), 200)}; nothing was changed") from None
    check_value(result, "the result (nothing was changed)")
    return result


def _plain(operation: Operation) -> dict[str, Any]:
    """The operation in the library's form.

    Raises:
        InputError: it lacks a part, or is of the whole document.
    """
    if len(operation.path) > _LONGEST_PATH or len(operation.source or "") > _LONGEST_PATH:
        raise InputError("the pointer is too long")
    if operation.path == "" and operation.op != "test":
        raise InputError("the whole document cannot be patched: submit another")
    plain: dict[str, Any] = {"op": operation.op, "path": operation.path}
    if operation.op in ("move", "copy"):
        if not operation.source:
            raise InputError("'from' is missing")
        plain["from"] = operation.source
    if operation.op in ("add", "replace", "test"):
        if "value" not in operation.model_fields_set:
            raise InputError("'value' is missing")
        plain["value"] = copy.deepcopy(operation.value)
    return plain


def _reason(error: Exception) -> str:
    if isinstance(error, jsonpatch.JsonPatchTestFailed):
        return f"the test failed: {error}"
    return str(error) or type(error).__name__


def edited(document: Mapping[str, Any], edits: Sequence[Edit]) -> dict[str, Any]:
    """`document` after `edits`, all at once; the input is not changed.

    Raises:
        InputError: one of them fails; the message says which, and why.
    """
    if not all(isinstance(document.get(name), list) for name in ("nodes", "edges")):
        raise InputError("the document has no lists of nodes and edges: patch it with operations")
    changes: list[Change] = []
    seen: set[tuple[Step, ...]] = set()
    for place, edit in enumerate(edits):
        try:
            made = list(_EdgeEditor(document, edit).changes() if edit.node is None else _node_changes(document, edit))
            if any(change.action != "append" and change.path in seen for change in made):
                raise InputError("an edit before it changes the same place")
        except InputError as error:
            raise InputError(f"edit {place} ({edit.op}): {error}; nothing was changed") from None
        seen.update(change.path for change in made if change.action != "append")
        changes += made
    result = apply_patch(document, compile_patch(document, changes))
    check_value(result, "the result (nothing was changed)")
    return result


def _node_changes(document: Mapping[str, Any], edit: Edit) -> Iterator[Change]:
    if edit.source is not None or edit.target is not None:
        raise InputError("it names a node and an edge: give one of them")
    name = edit.node or ""
    places = [at for at, node in enumerate(as_list(document["nodes"])) if as_mapping(node).get("id") == name]
    shown = repr(short_text(name, 80))
    if edit.op == "add" and edit.field is None:
        if places:
            raise InputError(f"there is a node {shown} already")
        yield Change("append", ("nodes",), {**_fields(edit), "id": name})
    elif len(places) != 1:
        raise InputError(f"there is no node {shown}" if not places else f"{len(places)} nodes have the id {shown}")
    elif edit.field is not None:
        yield _field_change(edit, ("nodes", places[0]), as_mapping(document["nodes"][places[0]]))
    elif edit.op == "remove":
        yield from _without(document, name)
    else:
        yield Change("set", ("nodes", places[0]), {**_fields(edit), "id": name})


def _without(document: Mapping[str, Any], name: str) -> Iterator[Change]:
    """Remove a node, all nodes below it, and their edges."""
    nodes, edges = as_list(document["nodes"]), as_list(document["edges"])
    children: dict[Any, list[Any]] = {}
    for node in nodes:
        fields = as_mapping(node)
        parent = fields.get("parent")
        if isinstance(parent, str) and isinstance(fields.get("id"), str):
            children.setdefault(parent, []).append(fields["id"])
    removed, ahead = {name}, [name]
    while ahead:
        below = [child for child in children.get(ahead.pop(), ()) if child not in removed]
        removed.update(below)
        ahead += below
    for at, node in enumerate(nodes):
        if _is_in(as_mapping(node).get("id"), removed):
            yield Change("remove", ("nodes", at))
    for at, edge in enumerate(edges):
        if any(_is_in(as_mapping(edge).get(end), removed) for end in ("source", "target")):
            yield Change("remove", ("edges", at))


def _is_in(name: Any, names: set[str]) -> bool:
    return isinstance(name, str) and name in names


class _EdgeEditor:
    """One edit of an edge."""

    def __init__(self, document: Mapping[str, Any], edit: Edit) -> None:
        if edit.source is None or edit.target is None:
            raise InputError("it names neither a node nor an edge (source and target)")
        self.edit = edit
        self.ends = {"source": edit.source, "target": edit.target}
        self.edges = as_list(document["edges"])

    def changes(self) -> Iterator[Change]:
        """Its changes; they apply to all edges with the same ends."""
        edit = self.edit
        places = [at for at, edge in enumerate(self.edges) if self.ends.items() <= as_mapping(edge).items()]
        if edit.op == "add" and edit.field is None:
            yield Change("append", ("edges",), {**_fields(edit), **self.ends})
            return
        if not places:
            ends = " -> ".join(repr(short_text(end, 60)) for end in self.ends.values())
            raise InputError(f"there is no edge {ends}")
        for at in places:
            if edit.field is not None:
                yield _field_change(edit, ("edges", at), as_mapping(self.edges[at]))
            elif edit.op == "remove":
                yield Change("remove", ("edges", at))
            else:
                yield Change("set", ("edges", at), {**_fields(edit), **self.ends})


def _fields(edit: Edit) -> dict[str, Any]:
    if not isinstance(edit.value, Mapping):
        raise InputError("'value' must be an object with the fields of the node or edge")
    return copy.deepcopy(dict(edit.value))


def _field_change(edit: Edit, at: tuple[Step, ...], fields: Mapping[str, Any]) -> Change:
    name = edit.field or ""
    if edit.op != "add" and name not in fields:
        raise InputError(
            f"it has no field {short_text(name, 60)!r}; its fields are {', '.join(map(str, fields))[:200]}"
        )
    if edit.op == "remove":
        return Change("remove", (*at, name))
    if "value" not in edit.model_fields_set:
        raise InputError("'value' is missing")
    return Change("set", (*at, name), copy.deepcopy(edit.value))
