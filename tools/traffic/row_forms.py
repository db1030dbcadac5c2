"""Lines of a table and objects of JSON as requests: the traces of Azure, BurstGPT and Mooncake, results of load
generators, logs with token counts.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from .rows import Row, RowError, blocks_of, list_of, refused, row_of, seconds_of, tokens_of


@dataclass(frozen=True, slots=True)
class Columns:
    """A format of tables by the names of its columns, in lower case: time, prompt and answer."""

    name: str
    time: str
    prompt: str
    answer: str


KNOWN = (
    Columns("Azure LLM inference CSV", "timestamp", "contexttokens", "generatedtokens"),
    Columns("BurstGPT CSV", "timestamp", "request tokens", "response tokens"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is known, and where its columns are."""

    columns: Columns
    places: tuple[int, int, int]
    width: int

    def row(self, line: str) -> Row:
        """The request of a line. Raises RowError: it is none."""
        cells = _cells(line)
        if len(cells) != self.width:
            refused("with another number of cells than the first line has")
        at, prompt, answer = (cells[place] for place in self.places)
        names = self.columns
        return row_of(seconds_of(at, names.time), tokens_of(prompt, names.prompt), tokens_of(answer, names.answer))


def table_of(header: str) -> Table | None:
    """The table that a first line begins; `None` where it begins none that is known."""
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
# A number of seconds that is no date of this century is one of milliseconds.
_FIRST_MS = 1e11
_USAGE_NAMES = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))
_TIME_NAMES = ("created", "created_at", "timestamp", "start_time", "time")
_TEXTS = ("conversations", "conversation", "messages", "prompt", "text", "instruction")
MOONCAKE, RESULTS, LOG = "Mooncake JSONL", "result of a load generator", "log with token counts"


def kind_of(given: Object) -> str:
    """Which of the formats an object is of. Raises RowError: none."""
    if "input_length" in given and "output_length" in given:
        return MOONCAKE
    if isinstance(given.get("input_lens"), list) and isinstance(given.get("output_lens"), list):
        return RESULTS
    if _usage(given) is not None:
        return LOG
    if any(name in given for name in _TEXTS):
        refused("with texts and no token counts: count them with the model's tokeniser first")
    return refused("of no known format")


def rows_of(kind: str, given: Object) -> Iterator[Row | RowError]:
    """The requests of an object; of one result those that cannot be read are told one by one."""
    yield from _READERS[kind](given)


def _mooncake(given: Object) -> Iterator[Row]:
    at = given.get("timestamp")
    at_s = None if at is None else seconds_of(at, "timestamp", _MILLISECOND)
    prompt, answer = (
        tokens_of(given.get("input_length"), "input_length"),
        tokens_of(given.get("output_length"), "output_length"),
    )
    hashes = given.get("hash_ids")
    yield row_of(at_s, prompt, answer, () if hashes is None else blocks_of(hashes))


def _results(given: Object) -> Iterator[Row | RowError]:
    prompts, answers, starts = (list_of(given.get(name)) for name in ("input_lens", "output_lens", "start_times"))
    if prompts is None or answers is None or len(prompts) != len(answers):
        refused("with lists input_lens and output_lens that differ in length")
    times = starts if starts is not None and len(starts) == len(prompts) else None
    for place, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        try:
            at_s = seconds_of(times[place], "start_times") if times is not None else None
            yield row_of(at_s, tokens_of(prompt, "input_lens"), tokens_of(answer, "output_lens"))
        except RowError as fault:
            yield fault


def _log(given: Object) -> Iterator[Row]:
    usage = _usage(given)
    if usage is None:
        refused("without token counts in usage")
    prompt, answer = next(names for names in _USAGE_NAMES if names[0] in usage)
    times = (_log_time(one[name], name) for one in _holders(given) for name in _TIME_NAMES if one.get(name) is not None)
    at_s = next(times, None)
    yield row_of(at_s, tokens_of(usage[prompt], f"usage.{prompt}"), tokens_of(usage.get(answer), f"usage.{answer}"))


def _log_time(value: Any, name: str) -> float:
    found = seconds_of(value, name)
    return found * _MILLISECOND if found > _FIRST_MS else found


def _holders(given: Object) -> Iterator[Object]:
    """The object, and what a batch or a proxy wraps an answer in."""
    yield given
    for names in (("response",), ("response", "body"), ("body",), ("result",)):
        inner: Any = given
        for name in names:
            inner = cast("Object", inner).get(name) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            yield cast("Object", inner)


def _usage(given: Object) -> Object | None:
    for one in _holders(given):
        usage = one.get("usage")
        if isinstance(usage, Mapping) and any(names[0] in usage for names in _USAGE_NAMES):
            return cast("Object", usage)
    return None


_READERS: dict[str, Callable[[Object], Iterator[Row | RowError]]] = {MOONCAKE: _mooncake, RESULTS: _results, LOG: _log}
