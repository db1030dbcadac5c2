"""What was worked out once and is kept, bounded by the bytes that it holds, so that a long process stays small."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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
