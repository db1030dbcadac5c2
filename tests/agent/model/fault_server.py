"""An HTTP server on loopback that answers chat completions by script, and misbehaves on purpose.

Each request takes the next step of the script; the last step repeats. The server records every request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

Json = Mapping[str, Any]


class Received(Struct, frozen=True):
    """A received request, with header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Exchange:
    """A request and the socket for its answer."""

    def __init__(self, handler: BaseHTTPRequestHandler, received: Received, is_over: threading.Event) -> None:
        self.received = received
        self._handler = handler
        self._is_over = is_over

    def raw(self, data: bytes) -> None:
        """Send bytes as they are; a client that has gone away is no error."""
        try:
            self._handler.wfile.write(data)
            self._handler.wfile.flush()
        except OSError:
            self._is_over.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait; `True` while the server still runs."""
        return not self._is_over.wait(seconds)


Step = Callable[[Exchange], None]


def head(status: int, length: int | None, kind: str = "application/json", headers: Mapping[str, str] = {}) -> bytes:
    """The status line and the headers of an answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def sends(data: bytes | str | Json, status: int = 200, kind: str = "application/json", **headers: str) -> Step:
    """A whole answer; underscores in header names become hyphens."""
    body = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.raw(head(status, len(body), kind, named) + body)


def refuses(status: int, message: str = "no", **headers: str) -> Step:
    """An error in OpenAI's form."""
    return sends({"error": {"message": message, "type": "x", "code": None}}, status, **headers)


def answer(message: Json, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": usage, **more}


def text(content: Any = "hello", finish: str | None = "stop", **more: Any) -> Step:
    """An answer in words."""
    return sends(answer({"content": content}, finish, **more))


def call(name: str = "look", arguments: Any = "{}", own_id: Any = "c1") -> dict[str, Any]:
    """A tool call as servers write it."""
    return {"id": own_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def delta(content: Json, finish: str | None = None) -> dict[str, Any]:
    """A piece of a stream."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": content, "finish_reason": finish}]}


def streams(pieces: Iterable[Json | bytes], *, done: bool = True, every_s: float = 0.0) -> Step:
    """Server-sent events, and the end of the stream if `done`."""
    listed = list(pieces)

    def step(exchange: Exchange) -> None:
        exchange.raw(head(200, None, "text/event-stream"))
        for piece in listed:
            exchange.raw(piece if isinstance(piece, bytes) else b"data: " + json.dumps(piece).encode() + b"\n\n")
            if every_s and not exchange.wait(every_s):
                return
        if done:
            exchange.raw(b"data: [DONE]\n\n")

    return step


def hangs(exchange: Exchange) -> None:
    """Never answer."""
    exchange.wait(60)


def drips(data: bytes, every_s: float = 0.02) -> Step:
    """One byte at a time, forever: each comes before any timeout between two bytes."""

    def step(exchange: Exchange) -> None:
        exchange.raw(data)
        while exchange.wait(every_s):
            exchange.raw(b" ")

    return step


def drips_headers(exchange: Exchange) -> None:
    """Send headers that never end."""
    exchange.raw(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while exchange.wait(0.02):
        exchange.raw(b"a")


def cuts(data: bytes, promised: int = 10_000) -> Step:
    """A plain answer that is shorter than its promised length in bytes."""
    return lambda exchange: exchange.raw(head(200, promised) + data)


class FaultServer:
    """A context manager that runs the server."""

    def __init__(self, *steps: Step, models: Step | None = None) -> None:
        self.requests: list[Received] = []
        self._steps, self._models = steps, models or refuses(404)
        self._is_over, self._lock = threading.Event(), threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: Any) -> None:
                """Log nothing."""

            def do_GET(self) -> None:
                outer._answer(self, None)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                outer._answer(self, json.loads(self.rfile.read(length)))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The posted bodies."""
        return [request.body for request in self.requests if request.method == "POST"]

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        received = Received(
            handler.command, handler.path, {name.lower(): value for name, value in handler.headers.items()}, body
        )
        handler.close_connection = True
        with self._lock:
            self.requests.append(received)
            step = self._models
            if handler.command == "POST":
                step = self._steps[min(len(self.bodies), len(self._steps)) - 1]
        step(Exchange(handler, received, self._is_over))

    def __enter__(self) -> FaultServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._server.shutdown()
        self._server.server_close()
