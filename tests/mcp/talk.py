"""The official client of the protocol for tests that are no coroutines, and a raw connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

PROGRAM = str(Path(sys.executable).parent / "shardwright")
# How a client of the older protocol version begins.
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def launch(*arguments: str) -> StdioServerParameters:
    """The server's command, as a client starts it."""
    return StdioServerParameters(command=PROGRAM, args=["mcp", *arguments], env=dict(os.environ))


class Talk:
    """A connected client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self.client = portal, client

    def ask(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """The result of a method of the client."""

        async def ask() -> Any:
            return await method(*arguments, **keywords)

        return self._portal.call(ask)

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        """The result of a tool call."""
        result = self.ask(self.client.call_tool, name, arguments)
        assert isinstance(result, CallToolResult)
        return result

    def answered(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool; the call must succeed."""
        result = self.call(name, **arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    def refused(self, name: str, /, **arguments: Any) -> str:
        """The message of a tool call that must be refused."""
        result = self.call(name, **arguments)
        assert result.is_error and result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    (block,) = result.content
    assert block.type == "text"
    return block.text


@contextmanager
def connected(server: Any, mode: str = "auto") -> Generator[Talk]:
    """A client connected to `server`, which may be anything that the official client takes."""
    with start_blocking_portal() as portal:
        client = Client(server, mode=mode)  # pyright: ignore[reportArgumentType]
        with portal.wrap_async_context_manager(client):
            yield Talk(portal, client)


class Line:
    """A server process and the lines to and from it, for messages that no client would send."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, **message: Any) -> None:
        """Send one message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Send raw bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def begin(self) -> None:
        """Shake hands."""
        self.send(id=1, method="initialize", params=INITIALIZE)
        assert self.receive()["id"] == 1
        self.send(method="notifications/initialized")

    def is_alive(self, number: int) -> None:
        """Assert that the next message answers a ping."""
        self.send(id=number, method="ping")
        assert self.receive() == {"jsonrpc": "2.0", "id": number, "result": {}}


@contextmanager
def line(*command: str) -> Iterator[Line]:
    """A server after the handshake, started by `command` or by the usual one."""
    process = subprocess.Popen(
        command or (PROGRAM, "mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    too_long = threading.Timer(60, process.kill)
    too_long.start()
    try:
        server = Line(process)
        server.begin()
        yield server
    finally:
        too_long.cancel()
        process.kill()
        process.communicate()
