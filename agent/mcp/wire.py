"""Messages over two open files, a line each: bounded, in threads that never hold up the end of the process."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ..serve.jobs import in_thread

MOST_MESSAGE_BYTES = 32 << 20
_PIECE_BYTES = 1 << 16
# After the input ends, answers that are still due are waited for so long.
_LAST_ANSWERS_S, _LOOKED_UP_AFTER_S = 3.0, 0.01
# The id of a refused message is looked for among its first fields.
_HEAD_BYTES = 1000
_ID = re.compile(rb'\s*\{[^{}\[\]]{0,300}?"id"\s*:\s*(?:(?P<number>-?\d{1,18})\b|"(?P<name>[^"\\]{0,200})")')

ReadStream = MemoryObjectReceiveStream[SessionMessage | Exception]
WriteStream = MemoryObjectSendStream[SessionMessage]


class Lines:
    """The lines of an open file."""

    def __init__(self, source: int, most_bytes: int = MOST_MESSAGE_BYTES) -> None:
        self._source, self._most_bytes = source, most_bytes
        self._held = bytearray()

    def next(self) -> bytes | None:
        """The next line with its end, or what is left before the end of the file; `None` where that is nothing.

        Of a line that is too long its head is given, without an end.
        """
        head, seen = b"", 0
        while (end := self._held.find(b"\n", seen)) < 0:
            seen = len(self._held)
            if seen > self._most_bytes:
                head, seen = head or bytes(self._held[:_HEAD_BYTES]), 0
                self._held.clear()
            piece = self._piece()
            if not piece:
                tail = bytes(self._held)
                self._held.clear()
                return head or (tail + b"\n" if tail else None)
            self._held += piece
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        return head or line

    def _piece(self) -> bytes:
        try:
            return os.read(self._source, _PIECE_BYTES)
        except OSError:  # a terminal that is gone
            return b""


class Wire:
    """The two ends of a connection, as the server reads and writes them."""

    def __init__(self, source: int, sink: int) -> None:
        self._lines, self._sink = Lines(source), sink
        self._one_at_a_time = anyio.Lock()
        self._unanswered = 0

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
        """The incoming and outgoing messages; both end once nobody reads what goes out."""
        come_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, go_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async with come_in:
                    while (message := await in_thread(self._next)) is not None:
                        if isinstance(message, JSONRPCError):
                            await self._write(message)
                        else:
                            self._unanswered += isinstance(message, JSONRPCRequest)
                            await come_in.send(SessionMessage(message))
                    # A client that pipes requests in closes the pipe at once, and waits for the answers.
                    with anyio.move_on_after(_LAST_ANSWERS_S):
                        while self._unanswered > 0:
                            await anyio.sleep(_LOOKED_UP_AFTER_S)

            async def write() -> None:
                async with go_out:
                    async for sent in go_out:
                        await self._write(sent.message)
                        self._unanswered -= isinstance(sent.message, JSONRPCResponse | JSONRPCError)

            async def until_broken(work: Callable[[], Awaitable[None]]) -> None:
                try:
                    await work()
                except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    tasks.cancel_scope.cancel()

            tasks.start_soon(until_broken, read)
            tasks.start_soon(until_broken, write)
            yield incoming, outgoing

    def _next(self) -> JSONRPCMessage | None:
        """The next message, or the error that answers a line that is none; `None` at the end."""
        while (line := self._lines.next()) is not None:
            if not line.endswith(b"\n"):
                return _refusal(line, f"a message is longer than {MOST_MESSAGE_BYTES >> 20} MiB")
            if line.strip():
                return _message(line)
        return None

    async def _write(self, message: JSONRPCMessage) -> None:
        async with self._one_at_a_time:
            await in_thread(partial(_write_all, self._sink, message))


def _message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _refusal(line, "not one JSON-RPC message on one line")


def _refusal(line: bytes, why: str) -> JSONRPCError:
    match = _ID.match(line[:_HEAD_BYTES])
    asked = None
    if match is not None:
        asked = int(match["number"]) if match["number"] else match["name"].decode(errors="replace")
    return JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=PARSE_ERROR, message=why))


def _write_all(sink: int, message: JSONRPCMessage) -> None:
    """Write one line.

    Raises:
        OSError: nobody reads it.
    """
    remaining = memoryview(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
    while remaining:
        remaining = remaining[os.write(sink, remaining) :]
