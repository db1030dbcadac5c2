"""Runs a server on a socket until a signal ends it: what runs is finished for a few seconds, then stopped."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from ...tools.errors import InputError
from .connection import timed_protocol
from .parts import Parts

_BACKLOG = 512
# After what was stopped has been told so, nobody is waited for longer than this.
_LAST_WORDS_S = 2.0
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port`, any free one where that is 0.

    Raises:
        InputError: there is no such host on this machine, or the port is in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, IndexError) as error:
        raise InputError(f"--host {host}: no address of this machine: {_reason(error)}") from None
    found = socket.socket(family, kind, protocol)
    try:
        if hasattr(socket, "SO_REUSEADDR"):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        hint = "; name another with --port, or --port 0 for any that is free" if port else ""
        raise InputError(f"port {port} at {host}: {_reason(error)}{hint}") from None
    return found


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def is_loopback(found: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ipaddress.ip_address(found.getsockname()[0].partition("%")[0]).is_loopback


def url_of(found: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    host, port = found.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


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
        limit_concurrency=limits.connections,
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
        clock = asyncio.get_running_loop().call_later(self._parts.settings.limits.stop_s, self._parts.stop)
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
