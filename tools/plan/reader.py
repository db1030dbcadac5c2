"""Reads a plan document from wherever it comes: a file, a text, an object, a `Plan`.

The input is hostile: bounded in size and depth, strict JSON (no NaN, no key twice), nothing evaluated. A file that
cannot be opened is an `InputError`; anything that can is read as far as it goes, with its faults (rule ST001) listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..errors import InputError
from ..files import utf8_text
from .collector import collector_paused
from .compact import expand
from .document import Plan
from .faults import SchemaFault
from .plan_size import excess_of
from .schema import explain_refusal, shown
from .view import PlanView, as_list, as_mapping

MAX_DOCUMENT_BYTES = 128 * 2**20
# More members than any object of a plan has, and more values than its header (all but nodes and edges) has.
MAX_MEMBERS = 10_000
MAX_HEADER_VALUES = 1_000_000
_MAX_FAULTS = 100


@dataclass(frozen=True)
class ReadDocument:
    """A document as read: prose stripped, compact form expanded.

    `raw` is the JSON object (`None` where the text holds none), `view` the indexed view of what was read.
    """

    raw: dict[str, Any] | None
    view: PlanView
    faults: tuple[SchemaFault, ...] = field(default=())

    @cached_property
    def plan(self) -> Plan | None:
        """The typed plan where the document is one: made when it is asked for, since to check a plan needs none."""
        return None if self.faults or self.raw is None else Plan.model_validate(self.raw)


@collector_paused()
def read_document(source: Mapping[str, Any] | Plan | str | Path) -> ReadDocument:
    """Read `source`: a document, a JSON text (it starts with `{` or `[`), or the path of a file.

    Raises:
        InputError: the file cannot be opened or is larger than `MAX_DOCUMENT_BYTES`.
    """
    if isinstance(source, Plan):
        return _read_object(source.model_dump(mode="json"), ())
    if isinstance(source, Mapping):
        return _read_object(source, ())
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return read_text(source)
    return read_text(read_file(Path(source)))


def read_file(path: Path) -> str:
    """The text of `path`.

    Raises:
        InputError: it cannot be opened, is too large, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{shown(str(path))}: {reason}") from None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{path}: larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
    return utf8_text(data, str(path))


def read_text(text: str) -> ReadDocument:
    """Read a JSON text; never raises."""
    faults: list[SchemaFault] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        # This is called for every object of the document: what is as it should be is told in one comparison.
        if len(members) == len(pairs) <= MAX_MEMBERS:
            return members
        if len(pairs) > MAX_MEMBERS:
            raise _TooLargeError(f"an object of {len(pairs):,} members, more than {MAX_MEMBERS:,}")
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen and len(faults) < _MAX_FAULTS:
                faults.append(SchemaFault("", f"key {shown(key)} stands twice in one object", key))
            seen.add(key)
        return members

    def no_constant(name: str) -> float:
        if len(faults) < _MAX_FAULTS:
            faults.append(SchemaFault("", f"{name} is not JSON", name))
        return 0.0

    try:
        document = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except RecursionError:
        return _unreadable(_TOO_DEEP)
    except _TooLargeError as error:
        return _unreadable(SchemaFault("", f"too large to be a plan: {error}"))
    except ValueError as error:
        return _unreadable(SchemaFault("", f"not JSON: {error}"))
    if not isinstance(document, dict):
        return _unreadable(SchemaFault("", "not a JSON object", type(document).__name__, "object"))
    return _read_object(cast("dict[str, Any]", document), tuple(faults))


class _TooLargeError(Exception):
    """The document holds more than any plan does."""


_TOO_DEEP = SchemaFault("", "nested too deeply to be a plan")


def _unreadable(fault: SchemaFault) -> ReadDocument:
    return ReadDocument(None, PlanView({}), (fault,))


def _excess(document: Mapping[str, Any]) -> SchemaFault | None:
    """What makes `document` too large to be looked at element by element."""
    excess = excess_of(document)
    if excess is not None:
        return SchemaFault(f"/{excess.part}", f"too large to be a plan: {excess}", excess.count, excess.most)
    values: list[object] = [value for key, value in document.items() if key not in ("nodes", "edges")]
    for value in values:
        values.extend(as_mapping(value).values())
        values.extend(as_list(value))
        if len(values) > MAX_HEADER_VALUES:
            return SchemaFault("", f"too large to be a plan: more than {MAX_HEADER_VALUES:,} values beside the graph")
    return None


def _read_object(document: Mapping[str, Any], faults: tuple[SchemaFault, ...]) -> ReadDocument:
    excess = _excess(document)
    if excess is not None:
        return ReadDocument(None, PlanView({}), (*faults, excess))
    raw, unexpanded = expand(document)
    view = PlanView(raw)
    faults = (*faults, *unexpanded)
    try:
        if not _is_plan(raw, view):
            Plan.model_validate(raw)
    except ValidationError as refusal:
        faults = (*faults, *_explained(raw, refusal))
    except RecursionError:
        faults = (*faults, _TOO_DEEP)
    return ReadDocument(raw, view, faults)


def _explained(raw: Mapping[str, Any], refusal: ValidationError) -> tuple[SchemaFault, ...]:
    try:
        return explain_refusal(raw, refusal)
    except RecursionError:
        return (_TOO_DEEP,)


def _is_plan(raw: Mapping[str, Any], view: PlanView) -> bool:
    """Whether `raw` is certainly of the format, as its header and one of each kind of its elements are."""
    examples = view.elements.examples()
    if examples is None or not isinstance(raw.get("nodes"), list) or not isinstance(raw.get("edges"), list):
        return False
    try:
        Plan.model_validate({**raw, "nodes": examples[0], "edges": examples[1]})
    except (ValidationError, RecursionError):
        return False
    return True
