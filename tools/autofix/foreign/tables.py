"""Tables as objects: Markdown's, a row or a column for each phase with its degrees; CSV, a row for each stage."""

from __future__ import annotations

import re
from typing import Any

from .lexicon import DEGREE_NAMES, concept_of, phase_of

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


def csv_of(text: str) -> dict[str, Any] | None:
    """The stages that lines of values below a line of names state, by phase, and the pairs of a key and a value above.

    The values stand between commas, semicolons, tabs or bars; the names are those of layers and what else a stage has.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_MOST_ROWS]
    for place, line in enumerate(lines):
        for sign in (",", "\t", ";", "|"):
            names = [name.strip() for name in line.strip("|").split(sign)]
            if len(names) < 3 or not {concept_of(name) for name in names} & {"layers", "layers_first"}:
                continue
            rows = [[cell.strip() for cell in row.strip("|").split(sign)] for row in lines[place + 1 :]]
            rows = [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
            pairs = [row.split(sign, 1) for row in lines[:place] if row.count(sign) == 1]
            said = {name.strip(): value.strip() for name, value in pairs if concept_of(name) is not None}
            return {**said, **_by_phase(rows)} if rows else None
    return None


def _by_phase(rows: list[dict[str, str]]) -> dict[str, Any]:
    """Rows as stages, below the phase that a cell of theirs names; `;` and blanks join the parts of a cell."""
    found: dict[str, Any] = {}
    for row in rows:
        phase = next((named for cell in row.values() if (named := phase_of(cell)) is not None), None)
        cells = {name: cell.replace(";", ", ") for name, cell in row.items() if cell and phase_of(cell) is None}
        stage = {name: int(cell) if cell.isdigit() and len(cell) < 10 else cell for name, cell in cells.items()}
        degrees = {name: value for name, value in stage.items() if concept_of(name) in DEGREE_NAMES}
        part = found.setdefault(phase, {}) if phase is not None else found
        part.setdefault("stages", []).append({name: value for name, value in stage.items() if name not in degrees})
        part.update(degrees)
    return found


def _cells(row: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in row.split("|")]
