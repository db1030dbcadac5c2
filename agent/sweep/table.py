"""The table of a sweep as a file: CSV without dependencies, or Parquet with the extra `sweep`.

The file's extension decides. Figures keep all digits, so that a table reads back unchanged.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from ...tools.errors import InputError
from .case import Row

ENDINGS = (".csv", ".parquet")
COLUMNS = tuple(Row.model_fields)


def check_ending(path: Path) -> str:
    """The extension of a table's name, `.csv` or `.parquet`.

    Raises:
        InputError: it is another, or Parquet cannot be written here.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{path}: a table ends in .csv or .parquet")
    if ending == ".parquet":
        _arrow()
    return ending


def table_bytes(rows: Sequence[Row], ending: str) -> bytes:
    """The rows as a file with that extension."""
    return _csv(rows).encode() if ending == ".csv" else _parquet(rows)


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(_cell(getattr(row, name)) for name in COLUMNS)
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parquet(rows: Sequence[Row]) -> bytes:
    arrow, parquet = _arrow()
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    fields = [(name, types[_plain_type(name)]) for name in COLUMNS]
    columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=arrow.schema(fields)), out)
    return out.getvalue()


def _plain_type(name: str) -> type:
    """The type of a column's values, without `None`."""
    types: list[Any] = [Row.model_fields[name].annotation]
    while types:
        annotation = types.pop()
        if annotation in (bool, int, float, str):
            return annotation
        types += get_args(annotation)
    raise TypeError(f"column {name} has no plain type")


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports] - an extra
        import pyarrow.parquet  # pyright: ignore[reportMissingImports] - an extra
    except ImportError:
        raise InputError(
            "a .parquet table needs pyarrow, which is not installed here: pip install 'shardwright[sweep]', "
            "or write a .csv"
        ) from None
    return pyarrow, pyarrow.parquet
