"""Briefs that are rows of cells under a row of keys, as spreadsheets save and copy them, as statements."""

from __future__ import annotations

import csv

from .statements import Source, Statement, check_statement
from .tables import Row, is_remark_header, names_rows, rows_of_table

_MOST_KEY_CHARACTERS = 60
_LEAST_COLUMNS = 3


def read_rows(name: str, text: str) -> Source | None:
    """The statements of a text that is nothing but such rows, parted by tabs, semicolons or commas; else `None`."""
    lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
    first = next(iter(lines.values()), "")
    mark = next((mark for mark in "\t;," if mark in first), None)
    if mark is None or len(lines) < 2:
        return None
    numbers, reader = list(lines), csv.reader(lines.values(), delimiter=mark)
    try:
        (_, keys), *rows = [(numbers[reader.line_num - 1], row) for row in reader]
    except csv.Error:
        return None
    is_table = names_rows(keys)
    if is_table:
        rows = [(line, _fitted(row, keys, mark)) for line, row in rows]
    if any(len(row) != len(keys) for _, row in rows):
        return None
    if is_table:
        stated = list(rows_of_table(keys, [(1, keys), *rows]))
    elif len(keys) < _LEAST_COLUMNS or not all(map(_is_key, keys)):
        return None
    else:
        pairs = ((line, pair) for line, row in rows for pair in zip(keys, row, strict=True))
        stated = [Row((key.strip(),), cell.strip(), line) for line, (key, cell) in pairs if cell.strip()]
    for count, row in enumerate(stated):
        check_statement(row.text, f"{name} line {row.line}", count)
    return Source(tuple(Statement(row.keys, row.text, f"{name} line {row.line}") for row in stated))


def _fitted(row: list[str], keys: list[str], mark: str) -> list[str]:
    """A row with a cell under each key: blank ones at its end were not written, a remark may have commas of its own."""
    rest = f"{mark} ".join(cell.strip() for cell in row[len(keys) - 1 :])
    is_remark = len(row) > len(keys) and is_remark_header(keys[-1])
    return [*row[: len(keys) - 1], rest] if is_remark else [*row, *[""] * (len(keys) - len(row))]


def with_row_under_its_keys(text: str) -> str:
    """A text in which a single row of cells stands under a row of keys, with each cell behind its key."""
    lines = text.split("\n")
    for place in range(len(lines) - 1):
        cells = _cells(lines[place])
        keys, row = cells, _cells(lines[place + 1], len(cells))
        around = (*lines[max(0, place - 1) : place], *lines[place + 2 : place + 3])
        is_table = any(len(_cells(line, len(cells))) == len(cells) for line in around)
        if keys and len(row) == len(keys) and all(map(_is_key, keys)) and not is_table and _has_figures(row, keys):
            pairs = [f"{key}: {cell}" for key, cell in zip(keys, row, strict=True) if cell]
            return "\n".join((*lines[:place], *pairs, *lines[place + 2 :]))
    return text


def _cells(line: str, count: int = 0) -> list[str]:
    """The cells of a line, of at least three and, where `count` is not 0, of so many; none where it has no such."""
    for mark in "\t|;," if line.strip()[:1] != "|" else "|":
        cells = [cell.strip() for cell in line.strip().strip("|").split(mark)]
        if len(cells) >= _LEAST_COLUMNS and (not count or len(cells) == count):
            return cells
    return []


def _has_figures(row: list[str], keys: list[str]) -> bool:
    """Whether most cells of a row are figures, under keys that are none."""
    figures = [cell[:1].isdigit() for cell in row]
    return sum(figures) * 2 > len(row) and not any(key.endswith((".", "!")) for key in keys)


def _is_key(cell: str) -> bool:
    """Whether a cell may be a key: the parts of a sentence have a blank behind their comma."""
    return cell[:1].isalpha() and len(cell) <= _MOST_KEY_CHARACTERS
