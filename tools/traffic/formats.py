"""A stream of bytes as requests, in the format that its content tells, line by line where it has lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedIOBase
from typing import Any, cast

from ..errors import InputError
from ..strict_json import JsonError, parse
from .row_forms import Table, kind_of, rows_of, table_of
from .rows import Fault, Row, RowError, list_of

# A line of a log with the texts of a long conversation; a result that is one value.
MOST_LINE_BYTES, MOST_VALUE_BYTES = 4 << 20, 64 << 20
MOST_LINES = 20_000_000
# Lines that may be of no known format before one is.
_MOST_UNKNOWN = 100

Lines = Iterator[tuple[int, str | None]]


class Reader:
    """What a trace holds, in order: requests, and faults at their places; `kind` is told once the first is read."""

    def __init__(self, stream: BufferedIOBase) -> None:
        """Nothing is read yet."""
        self._stream = stream
        self.kind = ""

    def read(self) -> Iterator[Row | Fault]:
        """Read it all. Raises InputError: it is of no known format, or larger than any trace."""
        lines = _lines(self._stream)
        number, first = next(lines, (0, ""))
        if number == 0:
            raise InputError("it is empty")
        if first is not None and first.startswith(("{", "[")):
            if _is_part(first):
                yield from self._value(first)
            else:
                yield from self._objects(number, first, lines)
            return
        table = None if first is None else table_of(first)
        if table is None:
            raise InputError(f"line {number}: neither JSON nor the head of a known table ({_KNOWN})")
        self.kind = table.columns.name
        yield from _of_table(table, lines)

    def _objects(self, number: int, text: str | None, lines: Lines) -> Iterator[Row | Fault]:
        """JSON Lines."""
        unknown = 0
        while text is not None or number:
            place = f"line {number}"
            for one in self._of_line(text, place):
                unknown += not self.kind
                if unknown > _MOST_UNKNOWN:
                    assert isinstance(one, Fault)
                    raise InputError(f"{place}: {one.reason}, as {_MOST_UNKNOWN} lines before it")
                yield one
            number, text = next(lines, (0, None))

    def _of_line(self, text: str | None, place: str) -> Iterator[Row | Fault]:
        if text is None:
            yield Fault(place, _TOO_LONG)
            return
        try:
            value = parse(text, place)
        except InputError:
            # What is said of it could quote it.
            yield Fault(place, "that are no JSON")
            return
        yield from self._of_object(value, place)

    def _of_object(self, value: Any, place: str) -> Iterator[Row | Fault]:
        try:
            if not isinstance(value, Mapping):
                raise RowError("that are no objects")
            given = cast("Mapping[str, Any]", value)
            kind = kind_of(given)
            if self.kind not in ("", kind):
                raise RowError("of another format than those before")
            self.kind = kind
            for row in rows_of(kind, given):
                yield row if isinstance(row, Row) else Fault(place, str(row))
        except RowError as fault:
            yield Fault(place, str(fault))

    def _value(self, first: str) -> Iterator[Row | Fault]:
        """One JSON value over all lines: an object, or a list of them."""
        data = first.encode() + b"\n" + self._stream.read(MOST_VALUE_BYTES + 1)
        if len(data) > MOST_VALUE_BYTES:
            raise InputError(f"one JSON value larger than {MOST_VALUE_BYTES >> 20} MiB; write one request a line")
        try:
            value = parse(data, "it")
        except JsonError as error:
            raise InputError(f"line {error.line or 1}: not JSON") from None
        except InputError:
            raise InputError("not UTF-8 text") from None
        entries = list_of(value)
        if entries is None:
            yield from self._of_object(value, "line 1")
            return
        for place, entry in enumerate(entries, start=1):
            yield from self._of_object(entry, f"entry {place}")


_KNOWN = "Azure: TIMESTAMP, ContextTokens, GeneratedTokens; BurstGPT: Timestamp, Request tokens, Response tokens"
_TOO_LONG = f"of more than {MOST_LINE_BYTES >> 20} MiB, or no UTF-8 text"


def _is_part(line: str) -> bool:
    """Whether a first line is the beginning of a value that goes on."""
    return line.startswith("[") or line.strip() == "{" or line.rstrip().endswith(",")


def _of_table(table: Table, lines: Lines) -> Iterator[Row | Fault]:
    for number, line in lines:
        try:
            yield Fault(f"line {number}", _TOO_LONG) if line is None else table.row(line)
        except RowError as fault:
            yield Fault(f"line {number}", str(fault))


def _lines(stream: BufferedIOBase) -> Lines:
    """Lines with their numbers, empty ones left out; `None` in place of one that cannot be read.

    Raises InputError: there are more than a trace has.
    """
    number = 0
    while data := stream.readline(MOST_LINE_BYTES):
        number += 1
        if number > MOST_LINES:
            raise InputError(f"more than {MOST_LINES:,} lines; give a part of it")
        text = None
        if len(data) < MOST_LINE_BYTES or data.endswith(b"\n"):
            try:
                text = data.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                text = None
        else:
            while data and not data.endswith(b"\n"):
                data = stream.readline(MOST_LINE_BYTES)
        if text != "":
            yield number, text
