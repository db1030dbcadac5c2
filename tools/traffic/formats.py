"""Reads requests from bytes in the format they show: Mooncake, Azure, BurstGPT, load generators' results, logs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from typing import Any, cast

from msgspec import Struct

from ..errors import InputError
from ..input.strict_json import JsonError, parse
from .rows import Fault, Row, RowError, blocks_of, list_of, refused, row_of, seconds_of, tokens_of
from .unlike import UnknownFormatError

# Enough for a line of a log with the texts of a long conversation, and for a result in one JSON value.
MOST_LINE_BYTES, MOST_VALUE_BYTES = 4 << 20, 64 << 20
MOST_LINES = 20_000_000
# The most lines without a known format before the first with one.
_MOST_UNKNOWN = 100

Lines = Iterator[tuple[int, str | None]]


class Reader:
    """Reads a trace in order: requests, and faults with their places; `kind` is set once the first is read."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self.kind = ""
        # Describes the names in the first object without a known format and the expected ones; empty if there is none.
        self.unlike = ""

    def read(self) -> Iterator[Row | Fault]:
        """Read everything. Raises InputError: the format is not known, or it is larger than any trace."""
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
        """Read JSON Lines."""
        unknown = 0
        while text is not None or number:
            place = f"line {number}"
            for row in self._of_line(text, place):
                unknown += not self.kind
                if unknown > _MOST_UNKNOWN:
                    assert isinstance(row, Fault)
                    raise InputError(f"{place}: {row.reason}, as {_MOST_UNKNOWN} lines before it{self.unlike}")
                yield row
            number, text = next(lines, (0, None))

    def _of_line(self, text: str | None, place: str) -> Iterator[Row | Fault]:
        if text is None:
            yield Fault(place, _TOO_LONG)
            return
        try:
            value = parse(text, place)
        except InputError:
            # The error's text could quote it.
            yield Fault(place, "that are no JSON")
            return
        yield from self._of_object(value, place)

    def _of_object(self, value: Any, place: str) -> Iterator[Row | Fault]:
        try:
            if not isinstance(value, Mapping):
                raise RowError("that are no objects")
            record = cast("Mapping[str, Any]", value)
            kind = kind_of(record)
            if self.kind not in ("", kind):
                raise RowError("of another format than those before")
            self.kind = kind
            for row in _READERS[kind](record):
                # Unreadable requests of one result are reported one by one.
                yield row if isinstance(row, Row) else Fault(place, str(row))
        except UnknownFormatError as fault:
            self.unlike = self.unlike or fault.unlike
            yield Fault(place, str(fault))
        except RowError as fault:
            yield Fault(place, str(fault))

    def _value(self, first: str) -> Iterator[Row | Fault]:
        """Read one JSON value over all lines: an object, or a list of them."""
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
    """Whether a first line begins a value that continues on the next lines."""
    return line.startswith("[") or line.strip() == "{" or line.rstrip().endswith(",")


def _of_table(table: Table, lines: Lines) -> Iterator[Row | Fault]:
    for number, line in lines:
        try:
            yield Fault(f"line {number}", _TOO_LONG) if line is None else table.row(line)
        except RowError as fault:
            yield Fault(f"line {number}", str(fault))


def _lines(stream: BufferedIOBase) -> Lines:
    """Numbered lines without empty ones; `None` for one that cannot be read.

    Raises InputError: there are more than `MOST_LINES`.
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


class Columns(Struct, frozen=True):
    """A table format: its name, and the lower-case names of its columns for time, prompt and answer."""

    name: str
    time: str
    prompt: str
    answer: str


KNOWN = (
    Columns("Azure LLM inference CSV", "timestamp", "contexttokens", "generatedtokens"),
    Columns("BurstGPT CSV", "timestamp", "request tokens", "response tokens"),
)


class Table(Struct, frozen=True):
    """A table of a known format: places of its columns, and its number of cells per line."""

    columns: Columns
    places: tuple[int, int, int]
    width: int

    def row(self, line: str) -> Row:
        """The request of a line. Raises RowError: it is not a request."""
        cells = _cells(line)
        if len(cells) != self.width:
            refused("with another number of cells than the first line has")
        at, prompt, answer = (cells[place] for place in self.places)
        names = self.columns
        return row_of(seconds_of(at, names.time), tokens_of(prompt, names.prompt), tokens_of(answer, names.answer))


def table_of(header: str) -> Table | None:
    """The table of a header line; `None` if its format is not known."""
    cells = [cell.strip().lower() for cell in _cells(header)]
    for columns in KNOWN:
        names = columns.time, columns.prompt, columns.answer
        if set(names) <= set(cells):
            first, second, third = (cells.index(name) for name in names)
            return Table(columns, (first, second, third), len(cells))
    return None


def _cells(line: str) -> list[str]:
    try:
        return [cell for cells in csv.reader([line]) for cell in cells]
    except csv.Error:
        return []


Object = Mapping[str, Any]
_MILLISECOND = 1e-3
# A number above this is in milliseconds: as seconds it would be no date of this century.
_FIRST_MS = 1e11
_USAGE_NAMES = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))
_TIME_NAMES = ("created", "created_at", "timestamp", "start_time", "time")
_TEXTS = ("conversations", "conversation", "messages", "prompt", "text", "instruction")
MOONCAKE, RESULTS, LOG = "Mooncake JSONL", "result of a load generator", "log with token counts"


def kind_of(record: Object) -> str:
    """The format of an object. Raises RowError: it has none of the known formats."""
    if "input_length" in record and "output_length" in record:
        return MOONCAKE
    if isinstance(record.get("input_lens"), list) and isinstance(record.get("output_lens"), list):
        return RESULTS
    if _usage(record) is not None:
        return LOG
    if any(name in record for name in _TEXTS):
        refused("with texts and no token counts: count them with the model's tokeniser first")
    raise UnknownFormatError(record)


def _mooncake(record: Object) -> Iterator[Row]:
    at = record.get("timestamp")
    at_s = None if at is None else seconds_of(at, "timestamp", _MILLISECOND)
    prompt, answer = (tokens_of(record.get(name), name) for name in ("input_length", "output_length"))
    hashes = record.get("hash_ids")
    yield row_of(at_s, prompt, answer, () if hashes is None else blocks_of(hashes))


def _results(record: Object) -> Iterator[Row | RowError]:
    prompts, answers, starts = (list_of(record.get(name)) for name in ("input_lens", "output_lens", "start_times"))
    if prompts is None or answers is None or len(prompts) != len(answers):
        refused("with lists input_lens and output_lens that differ in length")
    times = starts if starts is not None and len(starts) == len(prompts) else None
    for place, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        try:
            at_s = seconds_of(times[place], "start_times") if times is not None else None
            yield row_of(at_s, tokens_of(prompt, "input_lens"), tokens_of(answer, "output_lens"))
        except RowError as fault:
            yield fault


def _log(record: Object) -> Iterator[Row]:
    usage = _usage(record)
    if usage is None:
        refused("without token counts in usage")
    prompt, answer = next(names for names in _USAGE_NAMES if names[0] in usage)
    times = (
        _log_time(part[name], name) for part in _holders(record) for name in _TIME_NAMES if part.get(name) is not None
    )
    at_s = next(times, None)
    yield row_of(at_s, tokens_of(usage[prompt], f"usage.{prompt}"), tokens_of(usage.get(answer), f"usage.{answer}"))


def _log_time(value: Any, name: str) -> float:
    time = seconds_of(value, name)
    return time * _MILLISECOND if time > _FIRST_MS else time


def _holders(record: Object) -> Iterator[Object]:
    """The object, and the objects inside it in which a batch or a proxy wraps an answer."""
    yield record
    for names in (("response",), ("response", "body"), ("body",), ("result",)):
        inner: Any = record
        for name in names:
            inner = cast("Object", inner).get(name) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            yield cast("Object", inner)


def _usage(record: Object) -> Object | None:
    for part in _holders(record):
        usage = part.get("usage")
        if isinstance(usage, Mapping) and any(names[0] in usage for names in _USAGE_NAMES):
            return cast("Object", usage)
    return None


_READERS: dict[str, Callable[[Object], Iterator[Row | RowError]]] = {MOONCAKE: _mooncake, RESULTS: _results, LOG: _log}
