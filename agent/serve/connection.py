"""A connection that gives a client only so long to say what it wants, and to be done with saying it."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .settings import Limits

_HALF_SAID = (h11.IDLE, h11.SEND_BODY)


def timed_protocol(limits: Limits) -> type[H11Protocol]:
    """The protocol of connections under `limits`.

    Uvicorn closes a connection that is idle between two requests. One that never says its first, says a head letter by
    letter, or goes on sending a body that was refused, is closed here; so is one beyond the most that there may be.
    """

    class TimedProtocol(H11Protocol):
        """A connection with a limit on how long each request may take to arrive."""

        _clock: asyncio.TimerHandle | None = None
        _is_of_head = True

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the base class takes any transport
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            self._restart(limits.header_s)

        def handle_events(self) -> None:
            super().handle_events()
            state = self.conn.their_state
            if state is h11.SEND_BODY and (self._clock is None or self._is_of_head):
                self._restart(limits.header_s + limits.body_s, is_of_head=False)
            elif state not in _HALF_SAID:
                self._stop()

        def data_received(self, data: bytes) -> None:
            if self.conn.their_state is h11.IDLE and self._clock is None:
                self._restart(limits.header_s)
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _restart(self, seconds: float, *, is_of_head: bool = True) -> None:
            self._stop()
            self._is_of_head = is_of_head
            self._clock = self.loop.call_later(seconds, self._late)

        def _late(self) -> None:
            self._clock = None
            if not self.transport.is_closing():
                self.transport.close()

        def _stop(self) -> None:
            if self._clock is not None:
                self._clock.cancel()
                self._clock = None

    return TimedProtocol
