"""Reads datasets: the one that ships, a folder, or a user's own file, down to lines of a request and a strategy.

Input is a stranger's: bounded in size and depth, and refused in one line that says what, where, and how to mend it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...tools.errors import InputError
from ...tools.files import read_bounded, shown_path, utf8_text
from ..model.strict_json import parse
from .case import Case

MAX_FILE_BYTES = 32 << 20
MAX_CASES = 10_000
SHIPPED = Path(__file__).parent / "cases"
_SUFFIXES = (".json", ".jsonl")
_LINE_END = re.compile(r"\r\n|\r|\n")
_IN_NAMES = "letters, digits, '.', '_' and '-' only"
_NOT_IN_NAMES = re.compile(r"[^\w.\-]+")

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
    name = "shipped" if path is None else shown_path(path)
    texts = ((shown_path(file), file.stem, _text_of(file)) for file in _files_of(path or SHIPPED, name))
    return _dataset(texts, name)


def dataset_of_text(text: str, name: str) -> Dataset:
    """The dataset that `text` is, which errors call `name`.

    Raises:
        InputError: as `read_dataset`.
    """
    return _dataset([(name, name, text)], name)


def _dataset(texts: Iterable[tuple[str, str, str]], name: str) -> Dataset:
    """The cases of texts, each with its place and with what its cases are called where they have no id."""
    notes: dict[str, None] = {}
    cases: list[Case] = []
    for place, stem, text in texts:
        for number, (where, raw) in enumerate(_objects(text, place), start=1):
            if len(cases) == MAX_CASES:
                raise InputError(f"{name}: more than {MAX_CASES:,} cases")
            cases.append(_case(raw, where, f"{_as_name(stem)[:80]}-{number}", notes))
    if not cases:
        raise InputError(f"{name}: no case in it; a case is an object with a `request` and a `strategy`")
    _check_ids(cases, name)
    return Dataset(name, tuple(cases), tuple(notes))


def _files_of(place: Path, name: str) -> list[Path]:
    try:
        if not place.is_dir():
            return [place]
        return sorted(one for one in place.iterdir() if one.suffix in _SUFFIXES)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None


def _check_ids(cases: list[Case], name: str) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise InputError(f"{name}: two cases are called {case.id!r}: give each an id of its own")
        seen.add(case.id)


def _text_of(file: Path) -> str:
    name = shown_path(file)
    return utf8_text(read_bounded(file, MAX_FILE_BYTES, name), name)


def _objects(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Each object of a file with its place: one JSON value with `cases`, a list, one case, or an object a line."""
    try:
        whole = parse(text)
    except ValueError as error:
        yield from _lines(text, name, error)
        return
    if isinstance(whole, dict) and "cases" in whole:
        whole = whole["cases"]
        if not isinstance(whole, list):
            raise InputError(f"{name}: `cases` is not a list")
    if isinstance(whole, list):
        yield from ((f"{name}: cases/{place}", one) for place, one in enumerate(whole))
    else:
        yield f"{name}:1", whole


def _lines(text: str, name: str, not_whole: ValueError) -> Iterator[tuple[str, Any]]:
    """The object of each line; where already the first line holds none the file is taken for one broken value."""
    # Not `splitlines`: strings of JSON may hold the separators of Unicode as they are.
    lines = ((number, line) for number, line in enumerate(_LINE_END.split(text), start=1) if line.strip())
    for place, (number, line) in enumerate(lines):
        try:
            yield f"{name}:{number}", parse(line)
        except ValueError as error:
            fault, at = (error, number) if place else (not_whole, getattr(not_whole, "lineno", number))
            raise InputError(
                f"{name}:{at}: not JSON: {getattr(fault, 'msg', fault)}; a dataset has one object a line, no comments"
            ) from None


def _case(raw: Any, where: str, default_id: str, notes: dict[str, None]) -> Case:
    """One case, of the full form or of a user's short one.

    Raises:
        InputError: it is neither.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: a case is an object with a `request` and a `strategy`")
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: it holds half a character (a lone surrogate), which no text can") from None
    fields = _completed(raw, where, default_id, notes)
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # A strategy may be an object or words: what is wrong with the words is the better line.
        first = next((one for one in found if one["type"] != "dict_type"), found[0])
        place = "/".join(str(part)[:60] for part in first["loc"]) or "the case"
        is_name = first["type"] == "string_pattern_mismatch" and first["loc"] in (("id",), ("family",))
        said = _IN_NAMES if is_name else first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {place}: {said}") from None


def _completed(raw: Mapping[Any, Any], where: str, default_id: str, notes: dict[str, None]) -> dict[str, Any]:
    """The fields of a case, those of a short line under their own names, what it leaves out filled in."""
    fields: dict[str, Any] = {}
    for given, value in raw.items():
        name = str(given) if given in Case.model_fields else _ALIASES.get(str(given).lower(), str(given).lower())
        if name in fields:
            raise InputError(f"{where}: {name} is given twice, once as {str(given)[:60]!r}; keep one")
        if name in Case.model_fields or name == "strategy":
            fields[name] = value
        else:
            notes[f"the field {str(given)[:60]!r} says nothing that is scored; it is left out"] = None
    strategy = fields.pop("strategy", None)
    if isinstance(strategy, str) and strategy.strip().lower() in _NO_PLAN:
        fields.setdefault("expect", _NO_PLAN[strategy.strip().lower()])
    elif strategy is not None and "goldens" not in fields:
        stated = strategy if isinstance(strategy, list) else [strategy]
        if not all(isinstance(one, str | Mapping) for one in stated):
            raise InputError(f'{where}: strategy: write it in words ("TP8") or as an object; variants as a list')
        fields["goldens"] = [{"strategy": one, "source": "the dataset"} for one in stated]
    # People number their cases, and name categories in words.
    fields["id"] = str(default_id if fields.get("id") is None else fields["id"])
    fields["family"] = fields["id"] if fields.get("family") is None else _as_name(str(fields["family"]))
    return fields


def _as_name(text: str) -> str:
    """`text` as a name may be written."""
    return _NOT_IN_NAMES.sub("-", text)
