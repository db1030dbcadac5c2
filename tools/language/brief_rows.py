"""Briefs that are rows of cells under a row of keys, as spreadsheets save and copy them, as statements."""

from __future__ import annotations

import csv

from .brief_statements import Source, Statement, check_statement
from .brief_tables import Row, names_rows, rows_of_table

_MOST_KEY_CHARACTERS = 60
_LEAST_COLUMNS = 3


def read_rows(name: str, text: str) -> Source | None:
    """The statements of a text that is nothing but such rows, parted by tabs, semicolons or commas; else `None`."""
    lines = text.strip().split("\n")
    mark = next((mark for mark in "\t;," if mark in lines[0]), None)
    if mark is None or len(lines) < 2:
        return None
    try:
        keys, *rows = csv.reader(lines, delimiter=mark)
    except csv.Error:
        return None
    if not all(map(_is_key, keys)) or any(len(row) != len(keys) for row in rows):
        return None
    if names_rows(keys):
        stated = list(rows_of_table(keys, [(1, keys), *enumerate(rows, start=2)]))
    elif len(keys) < _LEAST_COLUMNS:
        return None
    else:
        pairs = ((line, pair) for line, row in enumerate(rows, start=2) for pair in zip(keys, row, strict=True))
        stated = [Row((key.strip(),), cell.strip(), line) for line, (key, cell) in pairs if cell.strip()]
    for count, row in enumerate(stated):
        check_statement(row.text, f"{name} line {row.line}", count)
    return Source(tuple(Statement(row.keys, row.text, f"{name} line {row.line}") for row in stated))


def _is_key(cell: str) -> bool:
    """Whether a cell may be a key: the parts of a sentence have a blank behind their comma."""
    return cell[:1].isalpha() and len(cell) <= _MOST_KEY_CHARACTERS
