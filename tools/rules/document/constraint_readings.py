"""What a constraint that breaks the format can only mean: numbers as text, a slip in its kind, fields beside `value`.

One that is a text, or states no value but its words, is read as a request is. What is left has no sure meaning: it
stays as it is, since a demand that was not understood must not get lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from ...input.shapes import is_list, is_object
from ...plan.constraints import MOST_WORDS_CHARS, Constraint
from ...plan.elements import as_mapping, as_str
from .readings import AS_IT_IS, MAX_WORD_CHARS, field_kind, fits, letters, members_of, only_reading

# How alike two names must be for one to be a slip in the other; "reserve_gpus" and "reserved_gpus" are 0.96.
_ALIKE = 0.85


def written_constraints(stated: object) -> object:
    """`stated` with each constraint that has only one meaning as the format writes it, and one alone as a list."""
    if is_list(stated):
        return [one if fits(Constraint, one) else _meant(one) or one for one in stated]
    meant = _meant(stated)
    return stated if meant is None else [meant]


def _meant(stated: object) -> dict[str, Any] | None:
    """The one constraint that `stated` can mean; `None` if there is none, or more."""
    if isinstance(stated, str):
        kind, equals, value = stated.partition("=")
        return _in_words(stated) or (_meant({"kind": kind, "value": value, "words": stated}) if equals else None)
    fields = dict(as_mapping(stated))
    kind = _kind_meant(fields.get("kind"))
    if kind is not None:
        fields["kind"] = kind
        meant = _with_value(fields, _models()[kind])
        if fits(Constraint, meant):
            return meant
    return _by_words(fields)


def _kind_meant(written: object) -> str | None:
    """The kind of constraint that a word means: the same in other letters, or the only one that is nearly the same."""
    if not isinstance(written, str) or len(written) > MAX_WORD_CHARS:
        return None
    names = {letters(name): name for name in _models()}
    near = get_close_matches(letters(written), names, n=2, cutoff=_ALIKE)
    return names[near[0]] if len(near) == 1 or (near and near[0] == letters(written)) else None


@cache
def _models() -> Mapping[str, type[BaseModel]]:
    models = members_of(Constraint)
    return {kind: model for model in models for kind in get_args(model.model_fields["kind"].annotation)}


def _with_value(fields: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """`fields` with each value read as `model` has it; fields of the value that stand beside it are put into it."""
    own = {name: value for name, value in fields.items() if name in model.model_fields}
    beside = {name: value for name, value in fields.items() if name not in own}
    if "value" not in own:
        own["value"] = beside
    elif beside:
        return fields
    read = {name: _as_kind(value, field_kind(model, name)) for name, value in own.items()}
    return {**read, "words": own.get("words") or _plainly(read)}


def _as_kind(value: Any, kind: Any) -> Any:
    """`value` by its only meaning as `kind`, as it is if it has none; an object member by member."""
    if fits(kind, value):
        return value
    if is_object(value):
        objects = [
            {name: _as_kind(of_name, field_kind(model, name)) for name, of_name in value.items()}
            for model in members_of(kind)
            if isinstance(model, type) and issubclass(model, BaseModel) and model.model_fields.keys() == value.keys()
        ]
        return next(filter(lambda read: fits(kind, read), objects), value)
    read = only_reading(value, kind)
    return value if read is AS_IT_IS else read


def _plainly(constraint: Mapping[str, Any]) -> str:
    """A constraint of which no words are left, in words."""
    value = as_mapping(constraint["value"])
    said = [constraint.get("phase"), *(map(value.get, ("name", "relation", "degree")) if value else ())]
    said += [] if value else [constraint["kind"], constraint.get("relation"), constraint["value"]]
    return " ".join(f"{part}" for part in said if part is not None)[:MOST_WORDS_CHARS]


def _by_words(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a value in words says, or the words where there is no value; nothing else may be stated otherwise."""
    value, words = fields.get("value"), as_str(fields.get("words"))
    text = words if value is None else as_str(value)
    read = None if text is None else _in_words(text)
    said_otherwise = read is None or any(
        stated not in (None, read.get(name)) for name, stated in fields.items() if name not in ("value", "words")
    )
    return None if read is None or said_otherwise else {**read, "words": words or text}


def _in_words(text: str) -> dict[str, Any] | None:
    """The constraint that `text` states, alone and without anything that is not understood."""
    if len(text) > MOST_WORDS_CHARS:
        return None
    # Imported only for faulty values, since the reader of words takes long to load.
    from ...language.errors import RequestError
    from ...language.request import read_words

    try:
        said = read_words(text)
    except RequestError:
        return None
    if len(said.constraints) != 1 or said.unread or said.words.keys() - {"constraints"}:
        return None
    return {**said.constraints[0].model_dump(mode="json"), "words": text}
