"""Markdown tables as objects: a row for each phase with degrees in columns, or a column for each phase."""

from __future__ import annotations

import re
from typing import Any

from .lexicon import concept_of, phase_of

_ROW = re.compile(r"^[ \t]{0,20}\|(.{1,2000})\|[ \t]{0,20}$", re.MULTILINE)
_RULE = re.compile(r"[\s:|-]+")
_MOST_ROWS = 500


def table_of(text: str) -> dict[str, Any] | None:
    """Everything that the tables of `text` say by phase or by key; `None` where they say nothing that is known."""
    rows = [_cells(match[1]) for match in _ROW.finditer(text)][:_MOST_ROWS]
    found: dict[str, Any] = {}
    header: list[str] = []
    for cells in rows:
        if all(_RULE.fullmatch(cell) or not cell for cell in cells):
            continue
        if not header or len(cells) != len(header):
            header = cells
        elif (phase := phase_of(cells[0])) is not None:
            found.setdefault(phase, {}).update(zip(header[1:], cells[1:], strict=True))
        elif concept_of(cells[0]) is not None and not any(map(phase_of, header)):
            found.setdefault(cells[0], cells[1])
        else:
            for name, cell in zip(header[1:], cells[1:], strict=True):
                if (phase := phase_of(name)) is not None and concept_of(cells[0]) is not None:
                    found.setdefault(phase, {})[cells[0]] = cell
    return found or None


def _cells(row: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in row.split("|")]
