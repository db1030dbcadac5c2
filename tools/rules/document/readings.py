"""The only meaning that a value can have as what the format has in its place.

Numbers written as text, names in another case or by another usual word, a single text for a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

_WORDS = {
    "sync": "synchronization", "synchronisation": "synchronization", "pp": "pipeline", "pipe": "pipeline",
    "dataflow": "data", "kv": "kv_cache", "kvcache": "kv_cache", "activation": "activations", "token": "tokens",
    "prefilling": "prefill", "decoding": "decode", "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
    "float32": "fp32", "float8": "fp8", "fp8e4m3": "fp8",
}  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}(?:\.0{1,6})?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?")
_DEVICE = re.compile(r"n(?:ode)?[ _-]?([0-9]{1,9})[ .:/_-]{0,2}g(?:pu)?[ _-]?([0-9]{1,9})")
MAX_WORD_CHARS = 60
# Stands for a value that has no other reading.
AS_IT_IS: Any = object()


def letters(text: str) -> str:
    """The letters and digits of a word, in lower case."""
    return "".join(sign for sign in text.lower() if sign.isalnum())


@cache
def field_kind(model: type[BaseModel], name: str) -> Any:
    """The kind of a field, with its bounds: the same object at every call."""
    return model.model_fields[name].rebuild_annotation()


# By identity, since kinds with bounds cannot be compared; the kinds are held by the models.
_ADAPTERS: dict[int, tuple[Any, TypeAdapter[Any]]] = {}


def fits(kind: Any, value: Any) -> bool:
    """Whether the format takes `value` as `kind`."""
    if id(kind) not in _ADAPTERS:
        _ADAPTERS[id(kind)] = kind, TypeAdapter(kind)
    try:
        _ADAPTERS[id(kind)][1].validate_python(value)
    except ValidationError:
        return False
    return True


def members_of(kind: Any) -> tuple[Any, ...]:
    """The members of a union; `kind` itself if it is none."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def item_of(kind: Any) -> Any:
    """The kind of the members of a list; `None` if `kind` is no list of one kind."""
    for member in members_of(kind):
        while get_origin(member) is Annotated:
            member = get_args(member)[0]
        if get_origin(member) is tuple and len(set(get_args(member)) - {...}) == 1:
            return get_args(member)[0]
    return None


def only_reading(value: Any, kind: Any, *, is_id: bool = False) -> Any:
    """The only meaning of `value` as `kind`; `AS_IT_IS` if it has none or several."""
    fitting = [reading for reading in _readings(value, kind, is_id=is_id) if fits(kind, reading)]
    return fitting[0] if fitting and all(read == fitting[0] for read in fitting) else AS_IT_IS


def _readings(value: Any, kind: Any, *, is_id: bool) -> Iterator[Any]:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        yield int(value)
    if isinstance(value, int) and not isinstance(value, bool) and is_id:
        yield str(value)
    if isinstance(value, str):
        yield from _texts(value.strip(), kind)
        if item_of(kind) is not None:
            yield [value.strip()]
            yield from ([read] for read in _texts(value.strip(), item_of(kind)))


def _texts(text: str, kind: Any) -> Iterator[Any]:
    if len(text) > MAX_WORD_CHARS:
        return
    if _INTEGER.fullmatch(text):
        yield int(float(text)) if "." in text else int(text)
    elif _NUMBER.fullmatch(text):
        yield float(text)
    elif text.isalpha():
        yield from _spelled(text)
    device = _DEVICE.fullmatch(text.lower())
    if device:
        yield f"n{int(device[1])}.g{int(device[2])}"
    word = letters(text.removeprefix("torch."))
    for member in members_of(kind):
        for name in get_args(member) if get_origin(member) is Literal else ():
            if isinstance(name, str) and (letters(name) == word or _WORDS.get(word) == name):
                yield name


def _spelled(word: str) -> Iterator[int]:
    """The whole number that a word spells out: "two"."""
    # Imported only for faulty values, since the reader of numbers takes long to load.
    from ...language.patterns.quantities import read_whole

    number = read_whole(word.lower())
    if number is not None:
        yield number
