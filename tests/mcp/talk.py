"""The official client of the protocol, for tests that are no coroutines; and a connection without one."""

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
# How a client of the older protocol begins.
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def launch(*arguments: str) -> StdioServerParameters:
    """The command, as a client starts it."""
    return StdioServerParameters(command=PROGRAM, args=["mcp", *arguments], env=dict(os.environ))


class Talk:
    """A client that is connected."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self.client = portal, client

    def ask(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What a method of the client returns."""

        async def ask() -> Any:
            return await method(*arguments, **named)

        return self._portal.call(ask)

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        """The answer of a tool."""
        found = self.ask(self.client.call_tool, name, arguments)
        assert isinstance(found, CallToolResult)
        return found

    def answered(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool that has one."""
        found = self.call(name, **arguments)
        assert not found.is_error, text_of(found)
        return found.structured_content

    def refused(self, name: str, /, **arguments: Any) -> str:
        """The line that says why a tool has no answer."""
        found = self.call(name, **arguments)
        assert found.is_error and found.structured_content is None
        return text_of(found)


def text_of(found: CallToolResult) -> str:
    """The text of an answer."""
    (block,) = found.content
    assert block.type == "text"
    return block.text


@contextmanager
def connected(server: Any, mode: str = "auto") -> Generator[Talk]:
    """A client of `server`, which may be anything that the official client takes."""
    with start_blocking_portal() as portal:
        client = Client(server, mode=mode)  # pyright: ignore[reportArgumentType]
        with portal.wrap_async_context_manager(client):
            yield Talk(portal, client)


class Line:
    """A server and the lines between it and whoever writes what no client would."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, **message: Any) -> None:
        """Send one message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Send these bytes."""
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
        """See that the next request is answered, by what comes next."""
        self.send(id=number, method="ping")
        assert self.receive() == {"jsonrpc": "2.0", "id": number, "result": {}}


@contextmanager
def line(*command: str) -> Iterator[Line]:
    """A server that has shaken hands: the command, or another one."""
    process = subprocess.Popen(
        command or (PROGRAM, "mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    too_long = threading.Timer(60, process.kill)
    too_long.start()
    try:
        found = Line(process)
        found.begin()
        yield found
    finally:
        too_long.cancel()
        process.kill()
        process.communicate()
