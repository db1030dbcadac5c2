"""Reads datasets: the shipped one, a folder, or a user's file, down to lines of a request and a strategy.

Input is untrusted: bounded in size and depth, and refused in one line that says what, where, and how to mend it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from ...tools.errors import InputError
from ...tools.input.files import read_bounded, shown_path, utf8_text
from .case import Case
from .dataset_objects import objects_of
from .refusals import refusal

MAX_FILE_BYTES = 32 << 20
MAX_CASES = 10_000
SHIPPED = Path(__file__).parent / "cases"
_SUFFIXES = (".json", ".jsonl")
_NOT_IN_NAMES = re.compile(r"[^\w.\-]+")

# Other names of fields in users' files.
_ALIASES = {
    **dict.fromkeys(("prompt", "question", "query", "input", "text"), "request"),
    **dict.fromkeys(("expected", "golden", "answer", "output", "target", "expected_strategy", "label"), "strategy"),
    "name": "id",
    "category": "family",
}
# Strategies that state that there is no plan.
_NO_PLAN = {
    **dict.fromkeys(("infeasible", "impossible", "no plan", "none", "无解", "不可行"), "infeasible"),
    **dict.fromkeys(("refused", "invalid request", "error"), "refused"),
}
# Fields whose misspelling is an error, each with the fields that may stand in for it.
_NEEDED = {"request": ("request",), "strategy": ("strategy", "goldens"), "goldens": ("goldens", "strategy")}
# How similar, from 0 to 1, a misspelling is to the name that it means.
_MISSPELT = 0.75
_WORD_END = re.compile(r"[\W_]+")


class Dataset(Struct, frozen=True, dict=True):
    """Cases in order. `unread` says which fields of the file nothing reads."""

    name: str
    cases: tuple[Case, ...]
    unread: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the file should know: fields that nothing reads, cases that say little."""
        bare = sum(map(_says_no_answer, self.cases))
        if not bare:
            return self.unread
        counted = f"{bare} of {len(self.cases)} cases {'has' if bare == 1 else 'have'} no golden"
        return (*self.unread, f"{counted}: only reading and legality are scored there")

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of what all cases say, whatever their order and whatever file they stand in."""
        return hashlib.sha256("".join(sorted(case.digest for case in self.cases)).encode()).hexdigest()

    def only(self, pattern: str) -> Dataset:
        """The cases whose id, family or tag has `pattern` in it.

        Raises:
            InputError: none has.
        """
        cases = tuple(
            case for case in self.cases if any(pattern in name for name in (case.id, case.family, *case.tags))
        )
        if not cases:
            raise InputError(f"{self.name}: no case has {pattern!r} in its id, family or tags")
        return Dataset(self.name, cases, self.unread)


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
    """The cases of texts, each text with its place and the prefix for cases without an id."""
    unread: dict[str, str] = {}
    cases: list[Case] = []
    places: dict[str, str] = {}
    for place, stem, text in texts:
        for number, (where, raw) in enumerate(objects_of(text, place), start=1):
            if len(cases) == MAX_CASES:
                raise InputError(f"{name}: more than {MAX_CASES:,} cases")
            case = _case(raw, where, f"{_as_name(stem)[:80]}-{number}", unread)
            if case.id in places:
                raise InputError(
                    f"{where}: the id {case.id!r} is that of the case at {places[case.id]} already: "
                    "give each an id of its own"
                )
            places[case.id] = where
            cases.append(case)
    if not cases:
        raise InputError(f"{name}: no case in it; a case is an object with a `request` and a `strategy`")
    return Dataset(name, tuple(cases), tuple(unread.values()))


def _says_no_answer(case: Case) -> bool:
    """Whether the case asks for a plan and states nothing that is right about it."""
    says = case.goldens or case.proposal or case.intent or case.decided_by
    return case.expect == "plan" and not says


def _files_of(place: Path, name: str) -> list[Path]:
    try:
        if not place.is_dir():
            return [place]
        return sorted(path for path in place.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None


def _text_of(file: Path) -> str:
    name = shown_path(file)
    return utf8_text(read_bounded(file, MAX_FILE_BYTES, name), name)


def _case(raw: Any, where: str, default_id: str, unread: dict[str, str]) -> Case:
    """One case, in the full form or in a user's short one.

    Raises:
        InputError: it is neither.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: a case is an object with a `request` and a `strategy`")
    fields = _completed(raw, where, default_id, unread)
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A strategy may be an object or words: what is wrong with the words is the better line.
        first = next((detail for detail in errors if detail["type"] != "dict_type"), errors[0])
        if not first["loc"] and fields.get("request") is None:
            raise InputError(f"{where}: a case needs a `request` (or a `base` plan)") from None
        place = "/".join(str(part)[:60] for part in first["loc"]) or "the case"
        raise InputError(f"{where}: {refusal(first, place)}") from None


def _completed(raw: Mapping[Any, Any], where: str, default_id: str, unread: dict[str, str]) -> dict[str, Any]:
    """The fields of a case: short names replaced by full ones, and defaults filled in."""
    fields: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in raw.items():
        name = str(key) if key in Case.model_fields else _ALIASES.get(str(key).lower(), str(key).lower())
        if name in fields:
            raise InputError(f"{where}: {name} is given twice, once as {str(key)[:60]!r}; keep one")
        if name in Case.model_fields or name == "strategy":
            fields[name] = value
        else:
            unknown.append(str(key))
    for unknown_key in unknown:
        note = _unread(unknown_key, fields, where)
        unread.setdefault(unknown_key, note)
    _read_strategy(fields, where)
    # Ids may be numbers, and families phrases.
    fields["id"] = str(default_id if fields.get("id") is None else fields["id"])
    fields["family"] = fields["id"] if fields.get("family") is None else _as_name(str(fields["family"]))
    return fields


def _unread(key: str, fields: Mapping[str, Any], where: str) -> str:
    """The note that a field is not read.

    Raises:
        InputError: it is a misspelling of a needed field: the case would seem to ask nothing.
    """
    low = key.lower()[:60]
    near = next(iter(get_close_matches(low, (*Case.model_fields, "strategy", *_ALIASES), 1)), None)
    meant = f"; did you mean {near!r}?" if near else ""
    name = _ALIASES.get(near or "", near)
    if near and name in _NEEDED and SequenceMatcher(None, low, near).ratio() >= _MISSPELT:
        is_stated = any(fields.get(needed) is not None for needed in _NEEDED[name])
        # "request_id" is about the request; "reqest" is a misspelling of it.
        is_about = near in _WORD_END.split(low)
        if not is_stated or (near in _NEEDED and not is_about):
            raise InputError(f"{where}: there is no field {key[:60]!r}{meant} Rename it, or leave it out")
    hint = "" if name in fields else meant
    return f"the field {key[:60]!r} says nothing that is scored; it is left out (first at {where}){hint}"


def _read_strategy(fields: dict[str, Any], where: str) -> None:
    """Put a `strategy` where it belongs: into `goldens`, or into `expect` if it states that there is no plan.

    Raises:
        InputError: it is no strategy, or states both.
    """
    strategy = fields.pop("strategy", None)
    if strategy is None:
        return
    if fields.get("goldens"):
        raise InputError(f"{where}: strategy: it stands beside `goldens`; write it there as one more")
    stated = strategy if isinstance(strategy, list) else [strategy]
    if not stated:
        raise InputError(
            f'{where}: strategy: an empty list; write "infeasible" where there is no plan, or leave it out'
        )
    if not all(isinstance(variant, str | Mapping) for variant in stated):
        raise InputError(f'{where}: strategy: write it in words ("TP8") or as an object; variants as a list')
    without_plan = [variant for variant in stated if isinstance(variant, str) and _no_plan(variant)]
    meant = {_no_plan(variant) for variant in without_plan}
    expected = fields.get("expect")
    if len(without_plan) < len(stated):
        if without_plan or expected in _NO_PLAN.values():
            says = without_plan[0] if without_plan else expected
            raise InputError(
                f"{where}: strategy: {says!r} says that there is no plan, and another one is stated; keep one"
            )
        fields["goldens"] = [{"strategy": variant, "source": "the dataset"} for variant in stated]
    elif len(meant) > 1 or expected not in (None, *meant):
        raise InputError(
            f"{where}: strategy: {without_plan[0]!r} beside "
            f"{(without_plan[-1] if expected is None else expected)!r}; keep one"
        )
    else:
        fields["expect"] = meant.pop()


def _no_plan(text: str) -> str | None:
    """The value of `expect` if `text` states that there is no plan."""
    return _NO_PLAN.get(text.strip().lower())


def _as_name(text: str) -> str:
    """`text` in the form of a name."""
    return _NOT_IN_NAMES.sub("-", text)
