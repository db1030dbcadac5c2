"""Answers of work: one JSON object, or events for whoever accepts `text/event-stream`; none for who has gone away.

Work is called with `tell`, which it may give events (a name and an object) as it goes on, and returns the JSON of its
answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...tools.errors import ShardwrightError
from ..runs.watching import told_now_and_then
from .jobs import Gate
from .refusals import RefusalError, broken, refusal_of

T = TypeVar("T")
Tell = Callable[[str, dict[str, Any]], None]
Work = Callable[[Tell], bytes]
# The bytes that are sent for an event of a name; the last events are `answer` or `error`.
Frame = Callable[[str, bytes], bytes]

NO_STORE = {"Cache-Control": "no-store"}
EVENTS = "text/event-stream"
# So often something is sent, so that nothing between us and the client takes the silence for the end.
_SIGN_OF_LIFE_S = 10.0
_CLIENT_GONE = 499


def _nothing() -> None:
    pass


def accepts_events(request: Request) -> bool:
    """Whether who asks wants events."""
    return EVENTS in request.headers.get("accept", "").lower()


def framed(name: str, data: bytes) -> bytes:
    """An event as it goes over the wire; `data` is JSON on one line."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def packed(value: Any) -> bytes:
    """`value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


async def answered(request: Request, gate: Gate, work: Work, then: Callable[[], None] = _nothing) -> Response:
    """The answer of `work` in the form that the request accepts; `then` is called once nothing of it runs any more.

    Raises:
        RefusalError: there is no answer.
    """
    if accepts_events(request):
        return EventResponse(gate, work, framed, then)
    return await in_one(request, gate, work, then)


async def in_one(request: Request, gate: Gate, work: Work, then: Callable[[], None] = _nothing) -> Response:
    """As `answered`, as one object.

    Raises:
        RefusalError: there is no answer.
    """
    handed = _Handed(then)

    async def run() -> bytes:
        return await gate.run(lambda: done(work, _unheard), handed.taken())

    try:
        body = await while_there(request.receive, run())
    finally:
        handed.unless_taken()
    return Response(body, headers=NO_STORE, media_type="application/json")


def done(work: Work, tell: Tell) -> bytes:
    """The answer of `work`, in its thread.

    Raises:
        RefusalError: the library refuses it.
    """
    try:
        with told_now_and_then(lambda step: tell("progress", {"doing": step})):
            return work(tell)
    except ShardwrightError as error:
        raise refusal_of(error) from error


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled if the client goes away first.

    Raises:
        RefusalError: the client has gone away, or what `work` raises.
    """
    doing, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise RefusalError(_CLIENT_GONE, "timeout", "the client went away")
        return doing.result()
    finally:
        doing.cancel()
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unheard(name: str, data: dict[str, Any]) -> None:
    del name, data


class EventResponse(Response):
    """Events of work; the last is its answer, or why there is none. A full line is refused before the first."""

    def __init__(self, gate: Gate, work: Work, frame: Frame, then: Callable[[], None] = _nothing) -> None:
        super().__init__(headers={**NO_STORE, "X-Accel-Buffering": "no"}, media_type=EVENTS)
        del self.headers["content-length"]
        self._gate, self._work, self._frame = gate, work, frame
        self._then = _Handed(then)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            self._gate.check()
            await while_there(receive, self._stream(send))
        finally:
            self._then.unless_taken()

    async def _stream(self, send: Send) -> None:
        events: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(name: str, data: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, self._frame(name, packed(data)))

        if self._gate.is_full:
            tell("progress", {"doing": f"waiting for a place, {self._gate.waiting} before this"})
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        end = asyncio.ensure_future(self._end(tell))
        try:
            while not (end.done() and events.empty()):
                await _send_piece(send, await _next(events, end))
            await _send_piece(send, end.result())
        finally:
            end.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _end(self, tell: Tell) -> bytes:
        """The last event."""
        try:
            return self._frame("answer", await self._gate.run(lambda: done(self._work, tell), self._then.taken()))
        except RefusalError as refusal:
            return self._frame("error", packed({"message": refusal.message, "kind": refusal.kind}))
        except Exception as fault:  # noqa: BLE001 - the stream has begun: it is told there, and in the log
            return self._frame("error", packed({"message": broken_message(fault), "kind": "service"}))


class _Handed:
    """A callback for the end of work: the gate that takes it calls it, or, if none does, this class."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then, self._is_taken = then, False

    def taken(self) -> Callable[[], None]:
        """Give it to a gate."""
        self._is_taken = True
        return self._then

    def unless_taken(self) -> None:
        """Call it, unless a gate has it."""
        if not self._is_taken:
            self._then()


def broken_message(fault: BaseException) -> str:
    """Log a fault of ours, and return what the client reads of it."""
    from .observed import log_fault

    log_fault(fault)
    return broken().message


async def _next(events: asyncio.Queue[bytes], end: asyncio.Future[bytes]) -> bytes:
    """The next event; empty if the end came first, a comment after a long silence."""
    coming = asyncio.ensure_future(events.get())
    await asyncio.wait({coming, end}, timeout=_SIGN_OF_LIFE_S, return_when=asyncio.FIRST_COMPLETED)
    if coming.done():
        return coming.result()
    coming.cancel()
    return b"" if end.done() else b": working\n\n"


async def _send_piece(send: Send, piece: bytes) -> None:
    if piece:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
