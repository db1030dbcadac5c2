"""A type of the plan document in words: `int`, `latency | throughput | cost`, `list of device`."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ...tools.catalog.dtypes import DType
from ...tools.plan import document

# Types that have a name of their own in the text; compared as written, so that the longest written form wins.
_NAMED: dict[Any, str] = {document.Device: "device", document.LayerRange: "[first, last]", DType: "number format"}
# An object of more fields is no line of a summary.
_FIELDS_SHOWN = 8
_WORDS: dict[Any, str] = {str: "text", int: "int", float: "number", bool: "true | false", Any: "any value"}


def type_text(annotation: Any) -> str:
    """`annotation` in words; what is absent where it is `None` is left out."""
    if annotation in _NAMED:
        return _NAMED[annotation]
    if annotation in _WORDS:
        return _WORDS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        return " | ".join(_written(argument) for argument in arguments)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(type_text(argument) for argument in arguments if argument is not NoneType))
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"list of {type_text(arguments[0])}"
        return f"[{', '.join(type_text(argument) for argument in arguments)}]"
    if origin in (dict, Mapping):
        return "object"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        names = list(annotation.model_fields)
        return f"{{{', '.join(names)}}}" if len(names) <= _FIELDS_SHOWN else "object"
    raise TypeError(f"no words for the type {annotation!r}")


def _written(value: object) -> str:
    """A value of a closed list; a text that looks like a number in quotes."""
    return f'"{value}"' if isinstance(value, str) and value.isdigit() else str(value)


def field_text(name: str, field: FieldInfo) -> str:
    """One field: its name, `?` where it may be left out, its type, its default."""
    if field.is_required():
        return f"`{name}`: {type_text(field.annotation)}"
    default = f" = {field.default}" if isinstance(field.default, str | int | float) else ""
    return f"`{name}`?: {type_text(field.annotation)}{default}"
