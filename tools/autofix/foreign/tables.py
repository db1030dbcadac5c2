"""Tables as objects: Markdown's, a row or a column for each phase with its degrees; CSV, a row for each stage."""

from __future__ import annotations

import re
from typing import Any

from .lexicon import DEGREE_NAMES, concept_of, phase_of

_ROW = re.compile(r"^[ \t]{0,20}\|(.{1,2000})\|[ \t]{0,20}$", re.MULTILINE)
_RULE = re.compile(r"[\s:|-]+")
_SEPARATORS = (",", "\t", ";", "|")
_MOST_ROWS = 500


def table_of(text: str) -> dict[str, Any] | None:
    """Everything that the tables of `text` say by phase or by key; `None` where they say nothing that is known."""
    table: dict[str, Any] = {}
    header: list[str] = []
    for row in [match[1] for match in _ROW.finditer(text)][:_MOST_ROWS]:
        cells = [cell.strip().strip("*`") for cell in row.split("|")]
        if all(_RULE.fullmatch(cell) or not cell for cell in cells):
            continue
        if not header or len(cells) != len(header):
            header = cells
            continue
        name, columns = cells[0], dict(zip(header[1:], cells[1:], strict=True))
        by_phase = {phase: cell for column, cell in columns.items() if (phase := phase_of(column)) is not None}
        if (phase := phase_of(name)) is not None:
            table.setdefault(phase, {}).update(columns)
        elif concept_of(name) is not None and not any(map(phase_of, header)):
            table.setdefault(name, cells[1])
        elif concept_of(name) is not None:
            for phase, cell in by_phase.items():
                table.setdefault(phase, {})[name] = cell
    return table or None


def csv_of(text: str) -> dict[str, Any] | None:
    """The stages that lines of values below a line of names state, by phase, and the pairs of a key and a value above.

    The values stand between commas, semicolons, tabs or bars; the names are those of layers and what else a stage has.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_MOST_ROWS]
    for place, line in enumerate(lines):
        for sign in _SEPARATORS:
            names = _cells(line, sign)
            if len(names) < 3 or not {concept_of(name) for name in names} & {"layers", "layers_first"}:
                continue
            rows = [cells for row in lines[place + 1 :] if len(cells := _cells(row, sign)) == len(names)]
            pairs = [row.split(sign) for row in lines[:place] if row.count(sign) == 1]
            said: dict[str, Any] = {name.strip(): value.strip() for name, value in pairs if concept_of(name)}
            for cells in rows:
                _add_stage(said, dict(zip(names, cells, strict=True)))
            return said if rows else None
    return None


def _cells(row: str, sign: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(sign)]


def _add_stage(table: dict[str, Any], row: dict[str, str]) -> None:
    """Add a row as a stage below the phase that a cell of it names; `;` and blanks join the parts of a cell."""
    phase = next(filter(None, map(phase_of, row.values())), None)
    part = table if phase is None else table.setdefault(phase, {})
    cells = {name: cell.replace(";", ", ") for name, cell in row.items() if cell and phase_of(cell) is None}
    values = {name: int(cell) if cell.isdigit() and len(cell) < 10 else cell for name, cell in cells.items()}
    degrees = {name for name in values if concept_of(name) in DEGREE_NAMES}
    part.setdefault("stages", []).append({name: value for name, value in values.items() if name not in degrees})
    part.update((name, values[name]) for name in values if name in degrees)
