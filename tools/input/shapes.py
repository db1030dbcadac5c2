"""Type guards of parsed values: an object, a list, or either."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is an object: members by name."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a list."""
    return isinstance(value, list)


def is_nested(value: object) -> TypeGuard[dict[str, Any] | list[Any]]:
    """Whether `value` holds others."""
    return isinstance(value, dict | list)
