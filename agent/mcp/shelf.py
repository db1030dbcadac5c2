"""Plan documents and long texts that clients name by a handle instead of sending them: the newest, so many bytes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from typing import Any, Literal

from msgspec import Struct

from ...tools.errors import InputError

Kind = Literal["plan", "text"]
SCHEME = "shardwright"
# So many digits of the hash of a content name it.
_DIGITS = 24
HANDLE_FORM = f"{SCHEME}://plan/HASH"
MOST_KEPT_BYTES = 64 << 20


class Item(Struct, frozen=True):
    """A content that is kept, and its handle, which is the address of a resource too."""

    handle: str
    text: str
    size_bytes: int


class Shelf:
    """Keeps contents by a hash of them. When it is full, what was not asked for longest goes. Threads may share one."""

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, kind: Kind, content: dict[str, Any] | str) -> str | None:
        """The handle of a document or a text from now on; `None` where it is too large, or no text of Unicode."""
        try:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            data = text.encode()
        except (ValueError, RecursionError):
            return None
        if len(data) > self._most_bytes:
            return None
        handle = f"{SCHEME}://{kind}/{hashlib.sha256(data).hexdigest()[:_DIGITS]}"
        with self._lock:
            if handle not in self._items:
                self._items[handle] = Item(handle, text, len(data))
                self._held_bytes += len(data)
            self._items.move_to_end(handle)
            while self._held_bytes > self._most_bytes:
                self._held_bytes -= self._items.popitem(last=False)[1].size_bytes
        return handle

    def text(self, handle: str) -> str:
        """The text under `handle`.

        Raises:
            InputError: nothing is, or not any more.
        """
        with self._lock:
            item = self._items.get(handle)
            if item is None:
                raise InputError(f"{handle[:100]}: nothing is kept here (any more); send the document, or plan again")
            self._items.move_to_end(handle)
            return item.text

    def plans(self) -> tuple[Item, ...]:
        """The plan documents that are kept, the newest first."""
        with self._lock:
            return tuple(item for item in reversed(self._items.values()) if is_plan_handle(item.handle))


def is_plan_handle(value: object) -> bool:
    """Whether `value` is written as the handle of a plan document."""
    return isinstance(value, str) and value.startswith(f"{SCHEME}://plan/")
