"""Caches of what was worked out: one owner's for as long as it lives, or everyone's within a bound in bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """A table of answers by key, one in each owner's `Caches`; `holds` describes them.

    A module that derives something from a `Setting` or a `Layout` defines one, which gives its answers types; the owner
    keeps them, and drops them when it is replaced by one with other answers.
    """

    def __init__(self, holds: str) -> None:
        self.holds = holds

    def table(self, caches: Caches) -> dict[K, V]:
        """The answers cached for one owner so far."""
        table = caches.get(self)
        return caches.setdefault(self, {}) if table is None else table

    def get(self, caches: Caches, key: K, work_out: Callable[[], V]) -> V:
        """The cached answer for `key`, worked out on the first call."""
        table = self.table(caches)
        if key not in table:
            table[key] = work_out()
        return table[key]


# The tables of one owner.
Caches = dict[Cache[Any, Any], dict[Any, Any]]


class SharedCache(Generic[K, V]):
    """A cache of at most `most_bytes`, by each entry's estimate `size_bytes`; emptied when it would overflow.

    Threads may share one: at worst two of them work out the same value.
    """

    def __init__(self, most_bytes: int, size_bytes: Callable[[K, V], int]) -> None:
        self._most_bytes = most_bytes
        self._size_bytes = size_bytes
        self._held_bytes = 0
        self._values: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The cached value of `key`; `None` if absent."""
        return self._values.get(key)

    def keep(self, key: K, value: V) -> V:
        """Cache `value`, unless it alone is too large, and return it."""
        size = self._size_bytes(key, value)
        with self._lock:
            if self._held_bytes + size > self._most_bytes:
                self._values, self._held_bytes = {}, 0
            if size <= self._most_bytes and key not in self._values:
                self._values[key] = value
                self._held_bytes += size
        return value

    @property
    def held_bytes(self) -> int:
        """The estimated size of all cached values, in bytes."""
        return self._held_bytes


def entries(caches: Caches) -> int:
    """How many answers one owner's tables hold together."""
    return sum(len(table) for table in [*caches.values()])


class Recent(Generic[V]):
    """The most recently used values: at most `most`, whose sizes together stay within `most_size`.

    The latest alone may be larger. Threads may share one.
    """

    def __init__(self, most: int, most_size: int, size: Callable[[V], int]) -> None:
        self._most, self._most_size, self._size = most, most_size, size
        self._values: tuple[V, ...] = ()
        self._lock = threading.RLock()

    def find(self, is_meant: Callable[[V], bool]) -> V | None:
        """The cached value for which `is_meant` holds, now the most recent; `None` if absent."""
        match = next((value for value in self._values if is_meant(value)), None)
        return None if match is None else self.keep(match, is_meant)

    def keep(self, value: V, is_meant: Callable[[V], bool]) -> V:
        """Cache `value` as the most recent, in place of those for which `is_meant` holds, and return it."""
        with self._lock:
            others = (other for other in self._values if not is_meant(other))
            self._values = tuple(self._that_fit((value, *others)))
        return value

    def like(self, value: V, is_like: Callable[[V, V], bool]) -> V:
        """The cached value that is like `value`; without one, `value`, which is then cached."""

        def is_meant(candidate: V) -> bool:
            return is_like(candidate, value)

        with self._lock:
            match = self.find(is_meant)
            return self.keep(value, is_meant) if match is None else match

    def _that_fit(self, values: tuple[V, ...]) -> Iterator[V]:
        together = 0
        for place, value in enumerate(values[: self._most]):
            together += self._size(value)
            if place and together > self._most_size:
                return
            yield value
