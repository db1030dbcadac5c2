"""Bodies are bounded while they are read: in bytes, in time, and all that are held at once together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError
from .settings import MIB, Limits

_AGAIN_AFTER_S = 5
# A body that is too large: the bytes of it that are read and dropped, and the longest pause in them.
_MOST_DROPPED_BYTES = 256 * MIB
_PAUSE_S = 1.0


class BodyBounds:
    """Lets no body through that is larger than `most_bytes` of its path, slower than the limits or one too many."""

    def __init__(self, app: ASGIApp, limits: Limits, most_bytes: Callable[[str], int]) -> None:
        self._app, self._limits, self._most_bytes = app, limits, most_bytes
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on.

        Raises:
            RefusalError: its body says itself that it is too large; later it is raised out of `receive`.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(self, receive, self._most_bytes(scope["path"]))
        body.check_stated(dict(scope["headers"]))
        try:
            await self._app(scope, body.receive, self._in_time(send))
        finally:
            self._held -= body.bytes

    def hold(self, count: int) -> None:
        """Count `count` more bytes as held.

        Raises:
            RefusalError: that is more than all bodies may hold together.
        """
        if self._held + count > self._limits.held_bytes:
            raise RefusalError(503, "busy", "too many large requests at once", retry_after_s=_AGAIN_AFTER_S)
        self._held += count

    @property
    def body_s(self) -> float:
        """Seconds that a body may take."""
        return self._limits.body_s

    def _in_time(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            # A client that does not read makes us hold what is sent in memory.
            await asyncio.wait_for(send(message), self._limits.send_s)

        return sent


class _Body:
    def __init__(self, bounds: BodyBounds, receive: Receive, most_bytes: int) -> None:
        self._bounds, self._receive, self._most_bytes = bounds, receive, most_bytes
        self._end = time.monotonic() + bounds.body_s
        self._is_whole = False
        self.bytes = 0

    def check_stated(self, headers: dict[bytes, bytes]) -> None:
        stated = headers.get(b"content-length", b"0")
        if not stated.isdigit() or int(stated[:20]) > self._most_bytes:
            raise self._too_large()

    def _too_large(self) -> RefusalError:
        size = f"{self._most_bytes // MIB} MiB" if self._most_bytes >= MIB else f"{self._most_bytes:,} bytes"
        return RefusalError(413, "too_large", f"the body is larger than {size}, the most that this path takes")

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._end - time.monotonic()))
        except TimeoutError:
            message = f"the body did not arrive within {self._bounds.body_s:g} seconds"
            raise RefusalError(408, "timeout", message) from None
        count = len(message.get("body", b""))
        if self.bytes + count > self._most_bytes:
            await self._drop_rest(message)
            raise self._too_large()
        self._bounds.hold(count)
        self.bytes += count
        self._is_whole = not _goes_on(message)
        return message

    async def _drop_rest(self, message: Message) -> None:
        """Read on for a while, and keep nothing: who is sending reads no answer before, and none if it is cut off."""
        bytes_left = _MOST_DROPPED_BYTES
        while bytes_left > 0 and _goes_on(message):
            try:
                message = await asyncio.wait_for(self._receive(), _PAUSE_S)
            except TimeoutError:
                return
            bytes_left -= len(message.get("body", b""))


def _goes_on(message: Message) -> bool:
    return message["type"] == "http.request" and message.get("more_body", False)
