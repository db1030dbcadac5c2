"""Changes become RFC 6902 patches that make just these changes, and apply to no other document."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest

from shardwright.tools.autofix.edits import Patched, apply_patch, compile_patch
from shardwright.tools.rules.findings import Change

DOCUMENT: dict[str, Any] = {
    "nodes": [{"id": name, "devices": [name]} for name in "abcde"],
    "edges": [{"source": "a", "target": name} for name in "bcde"],
    "a/b~c": {"x": 1},
}
CHANGES = (
    Change("remove", ("nodes", 1)),
    Change("append", ("nodes",), {"id": "f"}),
    Change("set", ("nodes", 3, "devices"), ["z"]),
    Change("remove", ("nodes", 3, "kind")),
    Change("remove", ("edges", 0)),
    Change("remove", ("nodes", 2)),
    Change("set", ("a/b~c", "x"), 2),
    Change("set", ("new",), {}),
)


def test_changes_are_told_of_the_document_before_any_of_them() -> None:
    document = copy.deepcopy(DOCUMENT)
    document["nodes"][3]["kind"] = "full"
    before = copy.deepcopy(document)
    patch = compile_patch(document, CHANGES)
    after = apply_patch(document, patch)
    assert document == before
    assert after == jsonpatch.apply_patch(document, list(patch))
    assert [node["id"] for node in after["nodes"]] == ["a", "d", "e", "f"]
    assert after["nodes"][1] == {"id": "d", "devices": ["z"]}
    assert (after["a/b~c"], after["new"], len(after["edges"])) == ({"x": 2}, {}, 3)


def test_a_patch_does_not_apply_to_another_document() -> None:
    patch = compile_patch(DOCUMENT, [Change("set", ("nodes", 3, "devices"), ["z"]), Change("remove", ("edges", 0))])
    for other in ({**DOCUMENT, "nodes": DOCUMENT["nodes"][::-1]}, {**DOCUMENT, "edges": DOCUMENT["edges"][::-1]}):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            apply_patch(other, patch)


def test_what_lies_in_something_that_goes_is_not_touched_first() -> None:
    patch = compile_patch(DOCUMENT, [Change("set", ("nodes", 1, "devices"), []), Change("remove", ("nodes", 1))])
    assert [operation["op"] for operation in patch] == ["test", "remove"]


def test_patches_in_a_row_leave_the_document_and_one_another_as_they_were() -> None:
    before, patched, plain = copy.deepcopy(DOCUMENT), Patched(DOCUMENT), copy.deepcopy(DOCUMENT)
    patches = []
    for value in (["z"], ["y"], []):
        changes = (
            Change("set", ("nodes", 1, "devices"), value),
            Change("set", ("new",), {"deep": [{"x": 1}]}),
            Change("remove", ("nodes", 0)),
            Change("append", ("edges",), {"source": "e", "target": "f"}),
        )
        patch = compile_patch(patched.document, changes)
        patches.append((patch, copy.deepcopy(patch)))
        patched.apply(patch)
        plain = jsonpatch.apply_patch(plain, list(patch))
        inner = {"op": "replace", "path": "/new/deep/0/x", "value": len(value)}
        patched.apply([inner])
        plain = jsonpatch.apply_patch(plain, [inner])
        assert patched.document == plain
    assert before == DOCUMENT
    assert all(patch == copied for patch, copied in patches)
