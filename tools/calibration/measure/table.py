"""The table of measured kernel times: what `measure` writes and `calibrate` reads, one kernel per row.

A CSV with a column `table` that names each row's kernel, or a CSV of one kernel without it (told by its columns).
Columns: `gpu` (a name of the catalogue), `src` (what ran, `torch-2.13.0`), `mode` (`graph`, `eager`, `host`), `cache`
(`cold`, `warm`), those of the kernel, `us` (microseconds). Cells are untrusted text, so everything is bounded.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, cast, get_args

from msgspec import Struct

from ...errors import InputError

TableName = Literal["gemm", "attn_prefill", "attn_decode", "moe", "collectives"]
# How a kernel was launched: replayed as a CUDA graph, call by call, or on the host's own cores.
Mode = Literal["graph", "eager", "host"]

_ATTENTION = ("kernel", "q_dtype", "kv_dtype", "batch", "q_heads", "kv_heads", "head_dim", "window")
# The columns that name a shape; units: tokens, elements, and `bytes` as nccl-tests counts them.
SHAPES: dict[TableName, tuple[str, ...]] = {
    "gemm": ("dtype", "m", "n", "k"),
    "attn_prefill": (*_ATTENTION, "seq"),
    "attn_decode": (*_ATTENTION, "kv_len"),
    "moe": ("kernel", "dtype", "dist", "tokens", "hidden", "inter", "topk", "experts", "tp", "ep"),
    "collectives": ("impl", "op", "ranks", "nodes", "bytes"),
}
_WORDS = frozenset(("kernel", "dtype", "q_dtype", "kv_dtype", "dist", "impl", "op"))
_MAY_BE_EMPTY = frozenset(("kernel", "q_dtype", "dist", "impl"))
_MAY_BE_ZERO = frozenset(("window",))
_COMMON = ("table", "gpu", "src", "mode", "cache")
COLUMNS: tuple[str, ...] = (*_COMMON, *dict.fromkeys(name for names in SHAPES.values() for name in names), "us")

MAX_TABLE_BYTES = 64 << 20
MAX_ROWS = 200_000
_MAX_CELL = 200
_MOST = 10**13
_MOST_US = 1e9
_NEEDED = "it needs the columns table and us, or us and those of one kernel"
_WHOLE = re.compile(r"[0-9]{1,13}")


class KernelRow(Struct, frozen=True):
    """One timed kernel; `shape` has a cell for each column of its table, `us` is in microseconds."""

    table: TableName
    gpu: str
    src: str
    shape: Mapping[str, str]
    us: float
    mode: Mode = "graph"
    is_cold: bool = True

    def number(self, column: str) -> int:
        """A cell of the shape as a whole number."""
        return int(self.shape[column])


class Skipped(Struct, frozen=True):
    """A shape that could not be timed, and why."""

    table: TableName
    reason: str


def table_text(rows: Iterable[KernelRow]) -> str:
    """The rows as one CSV with a `table` column; times have four significant digits."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        common = {"table": row.table, "gpu": row.gpu, "src": row.src, "mode": row.mode}
        writer.writerow({**common, "cache": "cold" if row.is_cold else "warm", **row.shape, "us": f"{row.us:.4g}"})
    return out.getvalue()


def table_of(header: Iterable[str]) -> TableName | None:
    """The kernel whose table has these columns; `None` if none or several fit, or if a column `table` says it."""
    names = set(header)
    if "us" not in names or "table" in names:
        return None
    fits: list[TableName] = [name for name, columns in SHAPES.items() if names.issuperset(set(columns) - _MAY_BE_EMPTY)]
    return fits[0] if len(fits) == 1 else None


def is_kernel_table(header: Iterable[str]) -> bool:
    """Whether a CSV with these columns holds kernel times."""
    names = set(header)
    return {"table", "us"} <= names or table_of(names) is not None


def read_kernel_rows(text: str, where: str) -> tuple[KernelRow, ...]:
    """The rows of a CSV of kernel times; `where` names it in errors.

    Raises InputError: it is too large, is no such table, or a row cannot be read.
    """
    if len(text) > MAX_TABLE_BYTES:
        raise InputError(f"{where}: larger than {MAX_TABLE_BYTES >> 20} MiB; split the table")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        header = reader.fieldnames or ()
        if not is_kernel_table(header):
            raise InputError(f"{where}: no table of kernel times: {_NEEDED}")
        rows = tuple(_rows(reader, table_of(header), where))
    except csv.Error as error:
        raise InputError(f"{where}: line {reader.line_num}: not CSV: {error}") from None
    if not rows:
        raise InputError(f"{where}: no row in it")
    return rows


def _rows(reader: csv.DictReader[str], table: TableName | None, where: str) -> Iterator[KernelRow]:
    for count, cells in enumerate(reader, start=1):
        if count > MAX_ROWS:
            raise InputError(f"{where}: more than {MAX_ROWS:,} rows; split the table")
        # A short row has None cells, a long one has its extra cells under the key None.
        if None in cells:
            raise InputError(f"{where}: line {reader.line_num}: more cells than the header has columns")
        plain = {name: (cell or "").strip() for name, cell in cells.items()}
        yield _row(plain, table, f"{where}: line {reader.line_num}")


def _row(cells: Mapping[str, str], table: TableName | None, place: str) -> KernelRow:
    long = next((name for name, cell in cells.items() if len(cell) > _MAX_CELL), None)
    if long is not None:
        raise InputError(f"{place}: {long[:40]!r} has more than {_MAX_CELL} characters")
    known = table or _one_of(cells["table"], get_args(TableName), place, "table")
    name = cast(TableName, known)
    shape = {column: cells.get(column, "") for column in SHAPES[name]}
    for column, cell in shape.items():
        _check(column, cell, place)
    return KernelRow(
        table=name,
        gpu=_word(cells.get("gpu", ""), place, "gpu"),
        src=cells.get("src", ""),
        shape=shape,
        us=_microseconds(cells["us"], place),
        mode=cast(Mode, _one_of(cells.get("mode") or "graph", get_args(Mode), place, "mode")),
        is_cold=_one_of(cells.get("cache") or "cold", ("cold", "warm"), place, "cache") == "cold",
    )


def _check(column: str, cell: str, place: str) -> None:
    if column in _WORDS:
        if column not in _MAY_BE_EMPTY:
            _word(cell, place, column)
        return
    least = 0 if column in _MAY_BE_ZERO else 1
    if not _WHOLE.fullmatch(cell) or not least <= int(cell) <= _MOST:
        raise InputError(f"{place}: {column} must be a whole number from {least} on, not {cell[:40]!r}")


def _word(cell: str, place: str, column: str) -> str:
    if not cell or not cell.isprintable():
        raise InputError(f"{place}: {column} must be a word, not {cell[:40]!r}")
    return cell


def _one_of(cell: str, words: tuple[str, ...], place: str, column: str) -> str:
    if cell not in words:
        raise InputError(f"{place}: {column} must be one of {', '.join(words)}, not {cell[:40]!r}")
    return cell


def _microseconds(cell: str, place: str) -> float:
    try:
        microseconds = float(cell)
    except ValueError:
        microseconds = 0.0
    if not 0.0 < microseconds <= _MOST_US:
        raise InputError(f"{place}: us must be microseconds above 0, not {cell[:40]!r}")
    return microseconds
