"""Reads a plan document from any source (a file, a text, an object, a `Plan`), with Python's cyclic collector paused.

Input may be hostile: bounded in size and depth, strict JSON (no NaN, no duplicate key), nothing evaluated. A file that
cannot be opened is an `InputError`; anything else is read as far as possible, with its faults (rule ST001) listed.

Reading a plan makes millions of objects that stay alive, and each full collection visits all of them in vain: it would
take more time than the work itself.
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
from msgspec.structs import replace
from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError

from ..errors import InputError, expect
from ..input.files import read_bounded, shown_path, utf8_text
from ..input.strict_json import load
from ..input.strict_values import Fault, JsonError, cleaned, is_sound, may_hold_halves
from .compact import expand, is_compact
from .document import Plan
from .element_reader import SchemaFault
from .plan_size import excess_of
from .schema import MAX_FAULTS, explain_refusal
from .view import PlanView, as_list, as_mapping


@contextmanager
def collector_paused() -> Generator[None]:
    """Pause cyclic collection; memory that is in no reference cycle is still freed at once.

    The switch is global: of two threads that pause at once, the one that began first switches it on again.
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
# Bounds on the members of an object, and on the values of the header (all but nodes and edges).
MAX_MEMBERS = 10_000
MAX_HEADER_VALUES = 1_000_000
_BEGINS_JSON = re.compile(r"[\ufeff\s]*+[{\[]")


class ReadDocument(Struct, frozen=True, dict=True):
    """A document as read, with its compact form expanded.

    `raw` is the JSON object (`None` if the text holds none), `view` its indexed view. `mended` are the faults that are
    gone from `raw`, since values that JSON cannot carry were replaced. `unexpanded` are faults of the compact form,
    which `raw` does not show either. `refusals` counts all that the format refuses where `faults` cannot list it all.
    """

    raw: dict[str, Any] | None
    view: PlanView
    faults: tuple[SchemaFault, ...] = field(default=())
    mended: tuple[SchemaFault, ...] = field(default=())
    unexpanded: tuple[SchemaFault, ...] = field(default=())
    refusals: int = 0

    @cached_property
    def plan(self) -> Plan | None:
        """The typed plan; `None` if the document has faults. Made on demand, since checks do not need it."""
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
    """Whether `text` begins like a JSON object or list, and so is no path of a file."""
    return _BEGINS_JSON.match(text) is not None


def path_named(source: object) -> Path:
    """`source` as the path of a file. Raises InputError: it is no text and no path, or an empty text."""
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
        # Its open fields hold values that JSON cannot carry.
        return plan.model_dump()


def read_file(path: Path) -> str:
    """The text of `path`. Raises InputError: it cannot be opened, is too large, is no file, or is not UTF-8."""
    name = shown_path(path)
    return utf8_text(read_bounded(path, MAX_DOCUMENT_BYTES, name), name)


def read_text(text: str) -> ReadDocument:
    """Read a JSON text; never raises."""
    try:
        document, replaced = load(text, "", most_members=MAX_MEMBERS, doubts_numbers=True)
    except JsonError as error:
        at = f", line {error.line}" if error.line is not None else ""
        return _unreadable(SchemaFault("", f"{error.reason}{at}"))
    faults = tuple(map(_schema_fault, replaced))
    if not isinstance(document, dict):
        return _unreadable(*faults, SchemaFault("", "not a JSON object", type(document).__name__, "object"))
    return _read_object(cast("dict[str, Any]", document), faults, is_text=not may_hold_halves(text))


def read_sound(document: dict[str, Any]) -> ReadDocument:
    """Read an object that is known to have JSON types, whole characters and bounded depth, as read documents have."""
    return _read_object(document, (), is_text=True)


def _schema_fault(fault: Fault) -> SchemaFault:
    return SchemaFault(fault.pointer, fault.reason, fault.value)


def _unreadable(*faults: SchemaFault) -> ReadDocument:
    return ReadDocument(None, PlanView({}), faults)


def _excess(document: Mapping[str, Any]) -> SchemaFault | None:
    """The fault of a `document` that is too large to be checked element by element; `None` if it is not."""
    excess = excess_of(document)
    if excess is not None:
        return replace(excess, message=f"too large to be a plan: {excess.message}")
    values: list[object] = [*_header(document).values()]
    for value in values:
        values.extend(as_mapping(value).values())
        values.extend(as_list(value))
        if len(values) > MAX_HEADER_VALUES:
            return SchemaFault("", f"too large to be a plan: more than {MAX_HEADER_VALUES:,} values beside the graph")
    return None


def _read_object(document: Mapping[str, Any], mended: tuple[SchemaFault, ...], *, is_text: bool) -> ReadDocument:
    """Read `document`; `is_text`: it has JSON types and texts, and only its depth is unknown."""
    excess = _excess(document)
    if excess is not None:
        return _unreadable(*mended, excess)
    is_checked = not is_text or is_compact(document) or _has_doubles(document)
    if not is_sound(document if is_checked else _header(document)):
        return _read_cleaned(document, mended)
    raw, unexpanded = expand(document)
    view = PlanView(raw)
    if _is_plan(raw, view):
        return ReadDocument(raw, view, (*mended, *unexpanded), mended, unexpanded)
    if not is_checked and not is_sound(raw):
        return _read_cleaned(raw, mended)
    refusal = _refusal(raw)
    if refusal is not None and any(map(_is_of_whole_float, refusal.errors(include_url=False, include_context=False))):
        raw = _with_integers(raw)
        view, refusal = PlanView(raw), _refusal(raw)
    listed = () if refusal is None else explain_refusal(raw, refusal)
    # The replacement of a mended value is no additional fault.
    known = {fault.path for fault in mended if fault.path}
    faults = (*mended, *unexpanded, *(fault for fault in listed if fault.path not in known))
    refusals = refusal.error_count() if refusal is not None and len(listed) >= MAX_FAULTS else 0
    return ReadDocument(raw, view, faults, mended, unexpanded, refusals)


def _refusal(raw: Mapping[str, Any]) -> ValidationError | None:
    try:
        Plan.model_validate(raw)
    except ValidationError as refusal:
        return refusal
    return None


def _is_of_whole_float(error: ErrorDetails) -> bool:
    """Whether a number such as 4.0, which JSON Schema takes for an integer, is refused for its type."""
    value = error["input"]
    return error["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def _with_integers(document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with its whole numbers as integers, but for `model`, which stands as it was written."""
    return {key: value if key == "model" else _integers(value) for key, value in document.items()}


def _integers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _integers(member) for key, member in cast("dict[str, Any]", value).items()}
    return [_integers(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _read_cleaned(document: Mapping[str, Any], mended: tuple[SchemaFault, ...]) -> ReadDocument:
    """Read `document` without values that JSON cannot carry, each of them a fault."""
    sound, replaced = cleaned(document)
    mended = (*mended, *map(_schema_fault, replaced))
    return _unreadable(*mended) if sound is None else _read_object(sound, mended, is_text=True)


def _header(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without its graph; the models validate it."""
    return {key: value for key, value in document.items() if key not in ("nodes", "edges")}


def _has_doubles(document: Mapping[str, Any]) -> bool:
    """Whether two nodes share an id; such nodes are compared as a whole, at any depth."""
    names = [as_mapping(node).get("id") for node in as_list(document.get("nodes"))]
    return len({name for name in names if isinstance(name, str)}) < len(names)


def _is_plan(raw: Mapping[str, Any], view: PlanView) -> bool:
    """Whether `raw` certainly follows the format, as its header and one example of each kind of element do."""
    examples = view.elements.examples()
    if examples is None or not isinstance(raw.get("nodes"), list) or not isinstance(raw.get("edges"), list):
        return False
    try:
        Plan.model_validate({**raw, "nodes": examples[0], "edges": examples[1]})
    except ValidationError:
        return False
    return True
