"""Reads datasets: the one that ships, a folder, or a user's own file, down to lines of a request and a strategy.

Input is a stranger's: bounded in size and depth, and refused in one line that says what, where, and how to mend it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...tools.errors import InputError
from ...tools.files import read_bounded, utf8_text
from .case import Case

MAX_FILE_BYTES = 32 << 20
MAX_CASES = 10_000
MAX_DEPTH = 40
SHIPPED = Path(__file__).parent / "cases"
_SUFFIXES = (".json", ".jsonl")

# What people call a field in files of their own.
_ALIASES = {
    **dict.fromkeys(("prompt", "question", "query", "input", "text"), "request"),
    **dict.fromkeys(("expected", "golden", "answer", "output", "target", "expected_strategy", "label"), "strategy"),
    "name": "id",
    "category": "family",
}
# Answers that are no strategy.
_NO_PLAN = {
    **dict.fromkeys(("infeasible", "impossible", "no plan", "none", "无解", "不可行"), "infeasible"),
    **dict.fromkeys(("refused", "invalid request", "error"), "refused"),
}


@dataclass(frozen=True)
class Dataset:
    """Cases in order. `notes` are what a reader of a file should know: fields of it that nothing reads."""

    name: str
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of what all cases say, whatever their order and whatever file they stand in."""
        return hashlib.sha256("".join(sorted(case.digest for case in self.cases)).encode()).hexdigest()

    def only(self, pattern: str) -> Dataset:
        """The cases whose id, family or tag has `pattern` in it.

        Raises:
            InputError: none has.
        """
        kept = tuple(one for one in self.cases if any(pattern in name for name in (one.id, one.family, *one.tags)))
        if not kept:
            raise InputError(f"{self.name}: no case has {pattern!r} in its id, family or tags")
        return Dataset(self.name, kept, self.notes)


def read_dataset(path: Path | None = None) -> Dataset:
    """The dataset at `path`, a file or a folder of files; without one the dataset that ships.

    Raises:
        InputError: it cannot be read, holds no case, or one that is not of the form.
    """
    place = path or SHIPPED
    name = "shipped" if path is None else str(path)
    files = sorted(one for one in place.iterdir() if one.suffix in _SUFFIXES) if place.is_dir() else [place]
    notes: dict[str, None] = {}
    cases: list[Case] = []
    for file in files:
        cases += _cases_of(file, notes)
        if len(cases) > MAX_CASES:
            raise InputError(f"{name}: more than {MAX_CASES:,} cases")
    if not cases:
        raise InputError(f"{name}: no case in it; a case is an object with a `request` and a `strategy`")
    _check_ids(cases, name)
    return Dataset(name, tuple(cases), tuple(notes))


def _check_ids(cases: list[Case], name: str) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise InputError(f"{name}: two cases are called {case.id!r}: give each an id of its own")
        seen.add(case.id)


def _cases_of(file: Path, notes: dict[str, None]) -> Iterator[Case]:
    name = str(file)
    text = utf8_text(read_bounded(file, MAX_FILE_BYTES, name), name)
    for number, (where, raw) in enumerate(_objects(text, name), start=1):
        yield _case(raw, where, f"{file.stem}-{number}", notes)


def _objects(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Each object of a file with its place: one JSON value with `cases`, a list, or an object a line."""
    start = text.lstrip()[:1]
    try:
        whole = _parse(text) if start in ("{", "[") else None
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and "cases" in whole:
        whole = whole["cases"]
        if not isinstance(whole, list):
            raise InputError(f"{name}: `cases` is not a list")
    if isinstance(whole, list):
        yield from ((f"{name}: cases/{place}", one) for place, one in enumerate(whole))
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield f"{name}:{number}", _parse(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{name}:{number}: not a JSON object: {error}; a dataset has one a line") from None


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _case(raw: Any, where: str, default_id: str, notes: dict[str, None]) -> Case:
    """One case, of the full form or of a user's short one.

    Raises:
        InputError: it is neither.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: a case is an object with a `request` and a `strategy`")
    _check_depth(raw, where)
    fields = _completed(raw, where, default_id, notes)
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"]) or "the case"
        raise InputError(f"{where}: {place}: {first['msg'].removeprefix('Value error, ')}") from None


def _completed(raw: Mapping[Any, Any], where: str, default_id: str, notes: dict[str, None]) -> dict[str, Any]:
    """The fields of a case, those of a short line under their own names, what it leaves out filled in."""
    fields: dict[str, Any] = {}
    for given, value in raw.items():
        name = str(given) if given in Case.model_fields else _ALIASES.get(str(given).lower(), str(given).lower())
        if name in fields:
            raise InputError(f"{where}: {name} is given twice, once as {given!r}; keep one")
        if name in Case.model_fields or name == "strategy":
            fields[name] = value
        else:
            notes[f"the field {str(given)[:60]!r} says nothing that is scored; it is left out"] = None
    strategy = fields.pop("strategy", None)
    if isinstance(strategy, str) and strategy.strip().lower() in _NO_PLAN:
        fields.setdefault("expect", _NO_PLAN[strategy.strip().lower()])
    elif strategy is not None and "goldens" not in fields:
        stated = strategy if isinstance(strategy, list) else [strategy]
        fields["goldens"] = [{"strategy": one, "source": "the dataset"} for one in stated]
    own_id = fields.get("id", default_id)
    fields["id"] = own_id if isinstance(own_id, str) else str(own_id)
    fields.setdefault("family", fields["id"])
    return fields


def _check_depth(value: Any, where: str) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise InputError(f"{where}: nested deeper than {MAX_DEPTH} levels; write it flatter")
