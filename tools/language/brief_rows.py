"""Briefs that are rows of cells under a row of keys, as spreadsheets save and copy them, as statements."""

from __future__ import annotations

import csv

from .brief_statements import Source, Statement, check_statement

_MOST_KEY_CHARACTERS = 60
_LEAST_COLUMNS = 3


def read_rows(name: str, text: str) -> Source | None:
    """The statements of a text that is nothing but such rows, parted by tabs, semicolons or commas; else `None`."""
    lines = text.strip().split("\n")
    mark = next((mark for mark in "\t;," if lines[0].count(mark) >= _LEAST_COLUMNS - 1), None)
    if mark is None or len(lines) < 2:
        return None
    try:
        keys, *rows = csv.reader(lines, delimiter=mark)
    except csv.Error:
        return None
    if not all(map(_is_key, keys)) or any(len(row) != len(keys) for row in rows):
        return None
    statements: list[Statement] = []
    for line, row in enumerate(rows, start=2):
        for key, cell in zip(keys, row, strict=True):
            if cell.strip():
                check_statement(cell, f"{name} line {line}", len(statements))
                statements.append(Statement((key.strip(),), cell.strip(), f"{name} line {line}"))
    return Source(tuple(statements))


def _is_key(cell: str) -> bool:
    """Whether a cell may be a key: the parts of a sentence have a blank behind their comma."""
    return cell[:1].isalpha() and len(cell) <= _MOST_KEY_CHARACTERS
