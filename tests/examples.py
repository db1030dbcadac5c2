"""How many examples a test draws: the share of its number that the profile sets (see `conftest.py`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")
# Fewer examples test a property hardly, and save little time.
FEW = 5


def examples(number: int, **more: Any) -> settings:
    """Settings for the profile's share of `number` examples; a nightly run draws all."""
    share = number * settings.default.max_examples // 100
    return settings(max_examples=max(share, min(number, FEW)), **more)


def draws_all() -> bool:
    """Whether all examples are drawn, as in a nightly run."""
    return settings.default.max_examples >= 100


def of_each_kind(items: Iterable[T], kind: Callable[[T], Hashable]) -> list[T]:
    """The first and the last of each kind; all if all examples are drawn."""
    listed = list(items)
    if draws_all():
        return listed
    first = {kind(item): place for place, item in reversed([*enumerate(listed)])}
    last = {kind(item): place for place, item in enumerate(listed)}
    return [listed[place] for place in sorted({*first.values(), *last.values()})]
