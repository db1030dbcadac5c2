"""Where every normative sentence of the design documents 000–004 is held: by rules, or by none for a stated reason.

A sentence is named by its section and its number there, never copied.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from .reader import KnowledgeError

TABLE = Path(__file__).resolve().parent / "traceability.yaml"


class Place(Struct, frozen=True, order=True):
    """A normative sentence: document and section (`002 §3.2`), and its number among those of the section, from 1."""

    source: str
    ordinal: int


class Entry(Struct, frozen=True):
    """A normative sentence and the rules that hold it; if none, `reason` says why."""

    place: Place
    rules: tuple[str, ...]
    reason: str


@cache
def read_traceability() -> tuple[Entry, ...]:
    """Every entry of the table, in order.

    Raises:
        KnowledgeError: an entry is malformed, or two are for one sentence.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = [_entry(raw) for raw in yaml.load(TABLE.read_text(encoding="utf-8"), Loader=loader)]
    seen: set[Place] = set()
    for entry in entries:
        if entry.place in seen:
            raise KnowledgeError(f"traceability.yaml: {entry.place.source} #{entry.place.ordinal} is listed twice")
        seen.add(entry.place)
    return tuple(entries)


def _entry(raw: Any) -> Entry:
    fields = cast("dict[str, Any]", raw)
    known = set(fields) in ({"source", "ordinal", "rules"}, {"source", "ordinal", "none"})
    if not known or not isinstance(fields["ordinal"], int) or not fields.get("rules", fields.get("none")):
        raise KnowledgeError(
            f"traceability.yaml: {raw!r} is not {{source, ordinal, rules: […]}} or {{…, none: reason}}"
        )
    place = Place(str(fields["source"]), fields["ordinal"])
    return Entry(place, tuple(str(rule) for rule in fields.get("rules", ())), str(fields.get("none", "")))
