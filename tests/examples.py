"""How many examples a test draws: a share of its number, which the profile says (see `conftest.py`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")
# Below this a share says little of a property, and saves little.
FEW = 5


def examples(number: int, **more: Any) -> settings:
    """Settings for `number` examples where all are drawn, as each night, and for the profile's share elsewhere."""
    share = number * settings.default.max_examples // 100
    return settings(max_examples=max(share, min(number, FEW)), **more)


def draws_all() -> bool:
    """Whether all examples are drawn, as each night."""
    return settings.default.max_examples >= 100


def of_each_kind(items: Iterable[T], kind: Callable[[T], Hashable]) -> list[T]:
    """The first and the last of each kind; all of them where all examples are drawn."""
    every = list(items)
    if draws_all():
        return every
    first = {kind(item): place for place, item in reversed([*enumerate(every)])}
    last = {kind(item): place for place, item in enumerate(every)}
    return [every[place] for place in sorted({*first.values(), *last.values()})]
