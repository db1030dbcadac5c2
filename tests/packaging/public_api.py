"""The public names as text for reviews: each with its kind, signature, fields and methods.

    python tests/packaging/public_api.py > tests/cases/public_api.txt

records them. A test compares the two, so that no signature changes unseen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import GenericAlias, NoneType, UnionType
from typing import Any, ForwardRef, Union, cast, get_args, get_origin, is_typeddict

from msgspec import Struct

import shardwright


def public_api() -> str:
    """All public names, a block each, in their order in `__all__`."""
    text = "\n".join("\n".join(_block(name, getattr(shardwright, name))) for name in shardwright.__all__) + "\n"
    # Pydantic's name of a bound differs between releases.
    return re.sub(r"_PydanticGeneralMetadata|AllowInfNan", "Bound", text)


def _block(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, type):
        if not callable(value):
            yield f"{type(value).__name__} {name}"
            return
        signature = inspect.signature(value)
        yield f"{_kind(value)} {name} -> {signature.return_annotation}"
        for parameter in signature.parameters.values():
            by_name = "" if parameter.kind is not parameter.KEYWORD_ONLY else "by name, "
            yield f"    {by_name}{_unquoted(str(parameter))}"
        return
    yield f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    seen: set[str] = set()
    for owner in value.__mro__:
        # Members inherited from libraries are not listed.
        if owner.__module__.startswith("shardwright.") and (is_typeddict(value) or owner.__name__ != "Protocol"):
            for line, member in _members(value, owner):
                if member not in seen:
                    seen.add(member)
                    yield f"    {line}"


def _members(public_class: type, owner: type) -> Iterator[tuple[str, str]]:
    for name, written in inspect.get_annotations(owner).items():
        if not name.startswith("_") and not str(written).startswith("ClassVar"):
            written = written.__forward_arg__ if isinstance(written, ForwardRef) else written
            yield f"{name}: {_annotation(written)}{'' if _is_required(public_class, name) else ' = …'}", name
    for name, member in vars(owner).items():
        if name.startswith("_") and (name != "__init__" or issubclass(public_class, Struct)):
            continue
        if isinstance(member, property):
            returned = inspect.signature(cast(Any, member.fget)).return_annotation
            yield f"{name}: {returned}, read only", name
        elif isinstance(member, classmethod | staticmethod):
            yield f"{type(member).__name__} {name}{_unquoted(str(inspect.signature(member.__func__)))}", name
        elif inspect.isfunction(member):
            yield f"{_kind(member)} {name}{_unquoted(str(inspect.signature(member)))}", name


def _annotation(written: object) -> str:
    """An annotation as text, unions with bars: before 3.14 Python writes `Optional` for resolved quoted ones."""
    if get_origin(written) not in (Union, UnionType):
        return str(written) if not isinstance(written, type) or isinstance(written, GenericAlias) else _name(written)
    return " | ".join("None" if part is NoneType else _annotation(part) for part in get_args(written))


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _kind(function: object) -> str:
    return "async def" if inspect.iscoroutinefunction(function) else "def"


def _unquoted(signature: str) -> str:
    """`signature` with its quoted annotations unquoted."""
    return re.sub(r"""(: |-> )(["'])(.*?)\2""", r"\1\3", signature)


def _is_required(public_class: Any, name: str) -> bool:
    if hasattr(public_class, "model_fields"):
        return name not in public_class.model_fields or public_class.model_fields[name].is_required()
    if issubclass(public_class, Struct):
        fields = public_class.__struct_fields__
        return name not in fields or fields.index(name) < len(fields) - len(public_class.__struct_defaults__)
    return not is_typeddict(public_class) or name in public_class.__required_keys__


if __name__ == "__main__":
    print(public_api(), end="")
