"""Runs a server on a socket until a signal ends it: what runs is finished for a few seconds, then stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from .connection import timed_protocol
from .parts import Parts

# After stopped work has been told so, nobody is waited for longer than this.
_LAST_WORDS_S = 2.0
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


def server_of(app: ASGIApp, parts: Parts, on_start: Callable[[], None]) -> uvicorn.Server:
    """A server of `app`; its `run` serves on sockets until a signal comes, or `should_exit` is set.

    Signals are heard in the main thread alone. `force_exit` is set where a second one ended it at once.
    """
    limits = parts.settings.limits
    config = uvicorn.Config(
        app=app,
        http=timed_protocol(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_graceful_shutdown=int(limits.stop_s + _LAST_WORDS_S),
    )
    return _Server(config, parts, on_start)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, parts: Parts, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._parts, self._on_start = parts, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        clock = asyncio.get_running_loop().call_later(self._parts.settings.limits.stop_s, self._parts.gates.stop)
        try:
            await super().shutdown(sockets)
        finally:
            clock.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals end the server and nothing else; the first in order, a second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        del sig, frame
        self.force_exit = self.should_exit
        self.should_exit = True
