"""What was worked out once and is kept: for one owner as long as it lives, or for all within a bound on its bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """A table of answers by key, one in each owner's `Caches`: `holds` says of what.

    A module that works something out of a `Setting` or a `Layout` has a cache for it, which gives it types; the owner
    has the answers, and drops them where it is replaced by one that would answer otherwise.
    """

    def __init__(self, holds: str) -> None:
        self.holds = holds

    def table(self, caches: Caches) -> dict[K, V]:
        """The answers that one owner has so far."""
        found = caches.get(self)
        return caches.setdefault(self, {}) if found is None else found

    def get(self, caches: Caches, key: K, work_out: Callable[[], V]) -> V:
        """The answer for `key`, worked out where the owner has none."""
        table = self.table(caches)
        if key not in table:
            table[key] = work_out()
        return table[key]


# The tables of one owner.
Caches = dict[Cache[Any, Any], dict[Any, Any]]


class Kept(Generic[K, V]):
    """Values by key, at most `most_bytes` of them by the estimate `size_bytes`; all go when one more is too many.

    Threads may share one: at worst two of them work out the same.
    """

    def __init__(self, most_bytes: int, size_bytes: Callable[[K, V], int]) -> None:
        self._most_bytes = most_bytes
        self._size_bytes = size_bytes
        self._held_bytes = 0
        self._values: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """What is kept under `key`."""
        return self._values.get(key)

    def keep(self, key: K, value: V) -> V:
        """`value`, kept from now on unless it alone is too large."""
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
        """The estimate of what is held."""
        return self._held_bytes


def entries(caches: Caches) -> int:
    """How many answers one owner's tables hold together."""
    return sum(len(table) for table in [*caches.values()])


class Recent(Generic[V]):
    """The values that were asked for last: at most `most`, and as few of the last as `size` makes `most_size` together.

    The last alone may be larger. Threads may share one.
    """

    def __init__(self, most: int, most_size: int, size: Callable[[V], int]) -> None:
        self._most, self._most_size, self._size = most, most_size, size
        self._values: tuple[V, ...] = ()
        self._lock = threading.RLock()

    def find(self, is_meant: Callable[[V], bool]) -> V | None:
        """The kept one that is meant, which is then the last that was asked for."""
        found = next((one for one in self._values if is_meant(one)), None)
        return None if found is None else self.keep(found, is_meant)

    def keep(self, value: V, is_meant: Callable[[V], bool]) -> V:
        """`value`, kept from now on in the place of what is meant by the same."""
        with self._lock:
            others = (one for one in self._values if not is_meant(one))
            self._values = tuple(self._that_fit((value, *others)))
        return value

    def like(self, value: V, is_like: Callable[[V, V], bool]) -> V:
        """The kept one that is like `value`, else `value`, which is kept from now on."""

        def is_meant(one: V) -> bool:
            return is_like(one, value)

        with self._lock:
            found = self.find(is_meant)
            return self.keep(value, is_meant) if found is None else found

    def _that_fit(self, values: tuple[V, ...]) -> Iterator[V]:
        together = 0
        for place, value in enumerate(values[: self._most]):
            together += self._size(value)
            if place and together > self._most_size:
                return
            yield value
