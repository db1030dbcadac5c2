"""Reads a plan document from wherever it comes (a file, a text, an object, a `Plan`), with Python's cyclic collector
paused while it is read and checked.

The input is hostile: bounded in size and depth, strict JSON (no NaN, no key twice), nothing evaluated. A file that
cannot be opened is an `InputError`; anything that can is read as far as it goes, with its faults (rule ST001) listed.

Reading a plan makes millions of objects that all stay alive, and each full collection visits every one of them for
nothing: left alone, the collector takes more time than the work itself. It touches nothing but that one switch.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ..errors import InputError, expect
from ..input.files import read_bounded, shown_path, utf8_text
from ..input.strict_json import load
from ..input.strict_values import Fault, JsonError, cleaned, is_sound, may_hold_halves
from .compact import expand, is_compact
from .document import Plan
from .element_reader import SchemaFault
from .plan_size import excess_of
from .schema import explain_refusal
from .view import PlanView, as_list, as_mapping


@contextmanager
def collector_paused() -> Generator[None]:
    """No cyclic collection inside; memory that no circle holds is freed at once all the same.

    The switch is the process's: of two threads that pause at once, the one that began first switches it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


MAX_DOCUMENT_BYTES = 128 * 2**20
# More members than any object of a plan has, and more values than its header (all but nodes and edges) has.
MAX_MEMBERS = 10_000
MAX_HEADER_VALUES = 1_000_000
_BEGINS_JSON = re.compile(r"[\ufeff\s]*+[{\[]")


class ReadDocument(Struct, frozen=True, dict=True):
    """A document as read: prose stripped, compact form expanded.

    `raw` is the JSON object (`None` where the text holds none), `view` the indexed view of what was read. `mended` are
    those of the faults that `raw` has no more: what JSON cannot carry was replaced. Nor does it show `unexpanded`: what
    of the compact form stands for nothing, and is there as if it were written out.
    """

    raw: dict[str, Any] | None
    view: PlanView
    faults: tuple[SchemaFault, ...] = field(default=())
    mended: tuple[SchemaFault, ...] = field(default=())
    unexpanded: tuple[SchemaFault, ...] = field(default=())

    @cached_property
    def plan(self) -> Plan | None:
        """The typed plan where the document is one: made when it is asked for, since to check a plan needs none."""
        return None if self.faults or self.raw is None else Plan.model_validate(self.raw)


@collector_paused()
def read_document(source: Mapping[str, Any] | Plan | str | Path) -> ReadDocument:
    """Read `source`: a document, a JSON text (it starts with `{` or `[`), or the path of a file.

    Raises InputError: it is none of these; the file cannot be opened or is larger than `MAX_DOCUMENT_BYTES`.
    """
    if isinstance(source, Plan):
        return _read_object(_dumped(source), (), is_text=False)
    if isinstance(source, Mapping):
        return _read_object(source, (), is_text=False)
    if isinstance(source, str) and is_json_text(source):
        return read_text(source)
    return read_text(read_file(path_named(source)))


def is_json_text(text: str) -> bool:
    """Whether `text` begins as a JSON object or list does, and so is no path of a file."""
    return _BEGINS_JSON.match(text) is not None


def path_named(source: object) -> Path:
    """The path of a file that `source` is. Raises InputError: it is no text and no path, or an empty text."""
    if isinstance(source, str) and source.strip():
        return Path(source)
    if isinstance(source, str):
        raise InputError("the plan: the text is empty")
    expect(source, Path, "the plan", "an object, a text, a path or a Plan is expected")
    return cast("Path", source)


def _dumped(plan: Plan) -> dict[str, Any]:
    try:
        return plan.model_dump(mode="json")
    except (PydanticSerializationError, ValueError):
        # Its open places hold what JSON cannot carry.
        return plan.model_dump()


def read_file(path: Path) -> str:
    """The text of `path`. Raises InputError: it cannot be opened, is too large, is no file, or is not UTF-8."""
    name = shown_path(path)
    return utf8_text(read_bounded(path, MAX_DOCUMENT_BYTES, name), name)


def read_text(text: str) -> ReadDocument:
    """Read a JSON text; never raises."""
    try:
        document, found = load(text, "", most_members=MAX_MEMBERS, doubts_numbers=True)
    except JsonError as error:
        at = f", line {error.line}" if error.line is not None else ""
        return _unreadable(SchemaFault("", f"{error.reason}{at}"))
    faults = tuple(map(_schema_fault, found))
    if not isinstance(document, dict):
        return _unreadable(*faults, SchemaFault("", "not a JSON object", type(document).__name__, "object"))
    return _read_object(cast("dict[str, Any]", document), faults, is_text=not may_hold_halves(text))


def read_sound(document: dict[str, Any]) -> ReadDocument:
    """Read an object that is known to be of JSON's types, whole characters and bounded depth, as what was read is."""
    return _read_object(document, (), is_text=True)


def _schema_fault(fault: Fault) -> SchemaFault:
    return SchemaFault(fault.pointer, fault.reason, fault.value)


def _unreadable(*faults: SchemaFault) -> ReadDocument:
    return ReadDocument(None, PlanView({}), faults)


def _excess(document: Mapping[str, Any]) -> SchemaFault | None:
    """What makes `document` too large to be looked at element by element."""
    excess = excess_of(document)
    if excess is not None:
        return SchemaFault(f"/{excess.part}", f"too large to be a plan: {excess}", excess.count, excess.most)
    values: list[object] = [*_header(document).values()]
    for value in values:
        values.extend(as_mapping(value).values())
        values.extend(as_list(value))
        if len(values) > MAX_HEADER_VALUES:
            return SchemaFault("", f"too large to be a plan: more than {MAX_HEADER_VALUES:,} values beside the graph")
    return None


def _read_object(document: Mapping[str, Any], mended: tuple[SchemaFault, ...], *, is_text: bool) -> ReadDocument:
    """`document` as read; `is_text`: its texts and types are those of JSON, and its depth alone is not known."""
    excess = _excess(document)
    if excess is not None:
        return _unreadable(*mended, excess)
    is_checked = not is_text or is_compact(document) or _has_doubles(document)
    if not is_sound(document if is_checked else _header(document)):
        return _read_cleaned(document, mended)
    raw, unexpanded = expand(document)
    faults = (*mended, *unexpanded)
    view = PlanView(raw)
    if not _is_plan(raw, view):
        if not is_checked and not is_sound(raw):
            return _read_cleaned(raw, mended)
        try:
            Plan.model_validate(raw)
        except ValidationError as refusal:
            # Where something was replaced the replacement is no fault of its own.
            known = {fault.path for fault in mended if fault.path}
            faults += tuple(fault for fault in explain_refusal(raw, refusal) if fault.path not in known)
    return ReadDocument(raw, view, faults, mended, unexpanded)


def _read_cleaned(document: Mapping[str, Any], mended: tuple[SchemaFault, ...]) -> ReadDocument:
    """`document` without what no JSON can carry, each such place a fault."""
    sound, found = cleaned(document)
    mended = (*mended, *map(_schema_fault, found))
    return _unreadable(*mended) if sound is None else _read_object(sound, mended, is_text=True)


def _header(document: Mapping[str, Any]) -> dict[str, Any]:
    """All but the graph, which the models judge."""
    return {key: value for key, value in document.items() if key not in ("nodes", "edges")}


def _has_doubles(document: Mapping[str, Any]) -> bool:
    """Whether two nodes have one id: they are compared whole, at any depth."""
    names = [as_mapping(node).get("id") for node in as_list(document.get("nodes"))]
    return len({name for name in names if isinstance(name, str)}) < len(names)


def _is_plan(raw: Mapping[str, Any], view: PlanView) -> bool:
    """Whether `raw` is certainly of the format, as its header and one of each kind of its elements are."""
    examples = view.elements.examples()
    if examples is None or not isinstance(raw.get("nodes"), list) or not isinstance(raw.get("edges"), list):
        return False
    try:
        Plan.model_validate({**raw, "nodes": examples[0], "edges": examples[1]})
    except ValidationError:
        return False
    return True
