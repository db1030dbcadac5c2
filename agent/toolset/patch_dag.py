"""`patch_dag`: makes a new document of one by its handle and a few edits; the old one stays."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from ...tools.errors import InputError
from .documents import kept, summary, validated
from .edit_language import Edit, Operation, edited, operated
from .tool import Answer, Arguments, Bench, Tool

_MOST_EDITS = 200
_MOST_LINES = 12
# A full schema of both edit languages costs more tokens than most edits: descriptions state the forms.
_IN_SHORT = WithJsonSchema({"type": "array", "items": {"type": "object"}})


class PatchArguments(Arguments):
    """What is changed: exactly one of `operations` and `edits`."""

    handle: str = Field(description="handle of a document")
    operations: Annotated[tuple[Operation, ...], Field(min_length=1, max_length=_MOST_EDITS), _IN_SHORT] | None = Field(
        default=None, description="JSON Patch (RFC 6902), in order"
    )
    edits: Annotated[tuple[Edit, ...], Field(min_length=1, max_length=_MOST_EDITS), _IN_SHORT] | None = Field(
        default=None,
        description="by id, all at once: {op: add|remove|replace, node (or source and target), field, value}",
    )


def _run(bench: Bench, arguments: PatchArguments) -> Answer:
    if (arguments.operations is None) == (arguments.edits is None):
        raise InputError("give exactly one of operations and edits")
    document = bench.desk.get(arguments.handle)
    if arguments.operations is not None:
        changed = operated(document, arguments.operations)
    else:
        changed = edited(document, arguments.edits or ())
    handle, patched, put_right = kept(bench, changed)
    content: dict[str, Any] = {"handle": handle, **summary(patched)}
    if handle == arguments.handle:
        content["message"] = "this changes nothing that a proposal decides"
    if put_right:
        content["put_right"] = list(put_right[:_MOST_LINES])
    return Answer({**content, **validated(patched, bench.level)})


PATCH_DAG = Tool(
    name="patch_dag",
    description=(
        "Change a document in a few places into one under a new handle, checked; all or nothing. A removed node takes "
        "with it what hangs below it."
    ),
    arguments=PatchArguments,
    run=_run,
    is_strict=False,
)
