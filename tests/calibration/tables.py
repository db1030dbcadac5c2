"""Tables of kernel times made for a test."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write `rows`, which all have the columns of the first."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
