"""Lines of a table as requests: the traces of Azure's LLM inference and of BurstGPT."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from .rows import Row, refused, row_of, seconds_of, tokens_of


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
        """The request of a line.

        Raises:
            RowError: it is none.
        """
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
