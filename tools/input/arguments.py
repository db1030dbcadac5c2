"""Public functions refuse an argument of another type than their signature says, in a line, before they begin."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import Struct

from ..errors import InputError, UnknownArgumentError

P = ParamSpec("P")
R = TypeVar("R")

_WORDS: dict[type, str] = {
    str: "a text",
    Path: "a path",
    bool: "True or False",
    Integral: "a whole number",
    Real: "a number",
    Mapping: "a mapping",
    Sequence: "a list",
    Iterable: "a list",
    tuple: "a tuple",
    types.NoneType: "None",
}
# Numbers may be of any library; a whole number is a number too.
_ABSTRACT: dict[type, type] = {int: Integral, float: Real}


class _Kinds(Struct, frozen=True):
    """The types that an argument may have; any where `kinds` is `None`."""

    kinds: tuple[type[Any], ...] | None

    def holds(self, value: object) -> bool:
        """Whether `value` has such a type; True and False are no numbers."""
        if self.kinds is None:
            return True
        if isinstance(value, bool) and bool not in self.kinds:
            return False
        return isinstance(value, self.kinds)

    @property
    def words(self) -> str:
        """The expected types in words: "a text, a path or a mapping"."""
        named = [_WORDS.get(kind, f"a {kind.__name__}") for kind in self.kinds or ()]
        named = sorted(dict.fromkeys(named), key=lambda name: name == "None")
        return " or ".join((", ".join(named[:-1]), named[-1])) if len(named) > 1 else named[0]


def checks_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which raises `InputError` where an argument is of another type than its annotation.

    Types are looked at from outside: that a list holds texts is for the function to see. `**fields: Unpack[T]` takes
    the keys of T, and each as T says.
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in _bound(function, args, kwargs).items():
            _check(function, name, value)
        return function(*args, **kwargs)

    return checked


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name.

    Raises TypeError: an argument is missing or unknown, or there are too many; the message names the function.
    """
    try:
        return _signature(function).bind(*args, **kwargs).arguments
    except TypeError as error:
        unknown = [name for name in kwargs if name not in _named(function)]
        if unknown and not any(param.kind is param.VAR_KEYWORD for param in _signature(function).parameters.values()):
            raise UnknownArgumentError(unknown[0], _named(function)) from None
        raise TypeError(f"{function.__name__}(): {error}; it takes {', '.join(_named(function))}") from None


def _named(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters that a call can name."""
    parameters = _signature(function).parameters.values()
    return tuple(param.name for param in parameters if param.kind not in (param.VAR_KEYWORD, param.VAR_POSITIONAL))


def _check(function: Callable[..., Any], name: str, value: Any) -> None:
    expected = _kinds_of(function).get(name)
    if isinstance(expected, _Kinds):
        if not expected.holds(value):
            raise InputError(f"{name}: {expected.words} is expected, not {type(value).__name__}")
    elif expected is not None:
        for key, argument in cast("dict[str, Any]", value).items():
            if key not in expected:
                raise UnknownArgumentError(key, (*_named(function), *expected))
            if not expected[key].holds(argument):
                raise InputError(f"{key}: {expected[key].words} is expected, not {type(argument).__name__}")


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _kinds_of(function: Callable[..., Any]) -> dict[str, _Kinds | dict[str, _Kinds]]:
    """The kinds of each parameter by its name; of `**` those of each key."""
    # Without the return type, which may be imported for type checkers alone.
    written = types.SimpleNamespace(
        __annotations__={name: hint for name, hint in function.__annotations__.items() if name != "return"}
    )
    kinds: dict[str, _Kinds | dict[str, _Kinds]] = {}
    for name, hint in get_type_hints(written, globalns=function.__globals__).items():
        if get_origin(hint) is Unpack:
            # An absent key counts as `None`.
            fields = get_type_hints(get_args(hint)[0])
            kinds[name] = {key: _Kinds(_classes(field | None)) for key, field in fields.items()}
        else:
            kinds[name] = _Kinds(_classes(hint))
    return kinds


def _classes(hint: Any) -> tuple[type[Any], ...] | None:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        parts = [_classes(option) for option in get_args(hint)]
        return None if None in parts else tuple(kind for part in parts for kind in part or ())
    if origin is Literal:
        return tuple({cast("type[Any]", type(value)) for value in get_args(hint)})
    if hint is None:
        return (types.NoneType,)
    if is_typeddict(hint):
        return (Mapping,)
    kind = origin or hint
    if not isinstance(kind, type) or kind is object or not _can_be_asked(kind):
        return None
    return (_ABSTRACT.get(kind, kind),)


def _can_be_asked(kind: type) -> bool:
    """Whether `isinstance` takes `kind`: of protocols it takes only runtime-checkable ones."""
    return not getattr(kind, "_is_protocol", False) or getattr(kind, "_is_runtime_protocol", False)
