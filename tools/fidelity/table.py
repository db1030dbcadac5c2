"""A table of measured results, one metric a row, read strictly: what a cell does not say stays unknown.

The columns are those of the contract's `fidelity CSV`. Every cell is text that a stranger wrote: the table's size, its
rows and its cells are bounded, and a measured figure that is none is one error that names its line. A degree, a length
or a flag that is none ("P4/D?", "chat trace") is the row's `unread`: others of its table can be predicted. Nothing is
interpreted here.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import InputError
from ..input.files import read_bounded, utf8_text

if TYPE_CHECKING:
    from _csv import Reader

MAX_TABLE_BYTES = 64 << 20
MAX_ROWS = 500_000
_MAX_CELL = 4000
# What is more than a deployment can have is refused row by row.
_MOST = 10**9

_NEEDED = ("id", "model", "gpu", "tp", "isl", "osl", "concurrency_or_batch", "metric", "value")
_OPTIONAL = (
    "source_title", "published", "framework", "framework_version", "weights_dtype", "kv_dtype", "gpus", "pp", "ep",
    "dp", "disaggregated", "statistic", "notes",
)  # fmt: skip
_COUNT = re.compile(r"[0-9]{1,10}")
_PER_PHASE = re.compile(r"P([0-9]{1,10})/D([0-9]{1,10})")
_NUMBERED = re.compile(r"([A-Za-z0-9_]{1,40})-[0-9]{1,12}")


class Degree(Struct, frozen=True):
    """A parallel degree as a row states it: one for both phases, or `P…/D…`, one for each."""

    prefill: int
    decode: int

    def __str__(self) -> str:
        return str(self.prefill) if self.prefill == self.decode else f"P{self.prefill}/D{self.decode}"


class MeasuredRow(Struct, frozen=True):
    """One measured figure and all that its row says of how it was measured; `None` and `""` are unknown.

    `unread`: the first cell that is no such number, and what it should be; empty where each could be read.
    """

    line: int
    id: str
    source: str
    published: str
    framework: str
    framework_version: str
    model: str
    weights: str
    kv_cache: str
    gpu: str
    gpus: int | None
    tp: Degree | None
    pp: Degree | None
    ep: Degree | None
    dp: Degree | None
    disaggregated: bool
    input_tokens: int | None
    output_tokens: int | None
    load: str
    metric: str
    value: float
    statistic: str
    notes: str
    unread: str = ""

    def note(self, key: str) -> str | None:
        """What `notes` says after `key=`, if anything."""
        for part in self.notes.split(";"):
            name, separator, value = part.partition("=")
            if separator and name.strip() == key:
                return value.strip() or None
        return None

    @property
    def deployed(self) -> tuple[str, ...]:
        """What compared deployments share on any hardware: source, engine, model, formats, lengths, load and metric."""
        formats = self.weights, self.kv_cache
        shared = self.source, self.framework, self.framework_version, self.model, *formats
        return (*shared, str(self.input_tokens), str(self.output_tokens), self.load, self.metric)

    @property
    def question(self) -> tuple[str, ...]:
        """What the layouts of a comparison share: `deployed`, and the GPU."""
        return (*self.deployed, self.gpu)

    @property
    def layout(self) -> tuple[str, ...]:
        """The layout itself, as far as the row says."""
        return (*(str(degree or "") for degree in (self.tp, self.pp, self.ep, self.dp)), str(self.gpus or ""))

    @property
    def tier(self) -> str:
        """A (clear), B (one item assumed), C (ambiguous), or empty where the row does not say."""
        return self.note("tier") or ""

    @property
    def peak_memory_gb(self) -> float | None:
        """Measured peak memory of a GPU, in GB as printed, where the notes carry it."""
        text = self.note("peak_gpu_mem_gb")
        return None if text is None else _positive(text, f"line {self.line}", "peak_gpu_mem_gb")


def read_table(text: str, where: str) -> tuple[MeasuredRow, ...]:
    """The rows of the CSV in `text`, in its order; `where` is what errors call it.

    Raises InputError: it is too large, has no header with the columns that are needed, or a row cannot be read.
    """
    if len(text) > MAX_TABLE_BYTES:
        raise InputError(f"{where}: larger than {MAX_TABLE_BYTES >> 20} MiB; split the table")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, list[str]())
        _check_header(header, where)
        return tuple(_rows(reader, header, where))
    except csv.Error as error:
        raise InputError(f"{where}: line {reader.line_num}: not CSV: {error}") from None


def read_table_file(path: Path) -> tuple[MeasuredRow, ...]:
    """The rows of the CSV at `path`. Raises InputError: as `read_table`, or the file cannot be read."""
    name = str(path)
    return read_table(utf8_text(read_bounded(path, MAX_TABLE_BYTES, name, "; split the table"), name), name)


def _check_header(names: list[str], where: str) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise InputError(f"{where}: the header lacks {', '.join(missing)}; needed are {', '.join(_NEEDED)}")
    twice = [name for name in (*_NEEDED, *_OPTIONAL) if names.count(name) > 1]
    if twice:
        raise InputError(f"{where}: the header names {', '.join(twice)} more than once")


def _rows(reader: Reader, header: list[str], where: str) -> Iterator[MeasuredRow]:
    for count, cells in enumerate(reader, start=1):
        place = f"{where}: line {reader.line_num}"
        if count > MAX_ROWS:
            raise InputError(f"{where}: more than {MAX_ROWS:,} rows; split the table")
        if not cells:
            continue
        if len(cells) > len(header):
            raise InputError(f"{place}: more cells than the header has columns")
        yield _row(dict(zip(header, cells, strict=False)), reader.line_num, place)


def _row(cells: Mapping[str, str], line: int, place: str) -> MeasuredRow:
    text = {name: cells.get(name, "").strip() for name in (*_NEEDED, *_OPTIONAL)}
    too_long = next((name for name, cell in text.items() if len(cell) > _MAX_CELL), None)
    if too_long is not None:
        raise InputError(f"{place}: {too_long} has more than {_MAX_CELL} characters")
    if not text["id"]:
        raise InputError(f"{place}: id is empty")
    numbered = _NUMBERED.fullmatch(text["id"])
    cell = _Cells(text)
    return MeasuredRow(
        line=line,
        id=text["id"],
        source=numbered[1] if numbered else text["source_title"] or text["id"],
        published=text["published"],
        framework=text["framework"],
        framework_version=text["framework_version"],
        model=text["model"],
        weights=text["weights_dtype"],
        kv_cache=text["kv_dtype"],
        gpu=text["gpu"],
        gpus=cell.count("gpus", least=1),
        tp=cell.degree("tp"),
        pp=cell.degree("pp"),
        ep=cell.degree("ep"),
        dp=cell.degree("dp"),
        disaggregated=cell.flag("disaggregated"),
        input_tokens=cell.count("isl", least=0),
        output_tokens=cell.count("osl", least=0),
        load=text["concurrency_or_batch"],
        metric=text["metric"],
        value=_positive(text["value"], place, "value"),
        statistic=text["statistic"],
        notes=text["notes"],
        unread=cell.unread,
    )


class _Cells:
    """The cells of one row, read as what their columns hold; the first that cannot be is in `unread`."""

    def __init__(self, text: Mapping[str, str]) -> None:
        self._text = text
        self.unread = ""

    def flag(self, name: str) -> bool:
        """Whether the cell is 1."""
        if self._text[name] not in ("", "0", "1"):
            self._refuse(name, "0 or 1")
        return self._text[name] == "1"

    def count(self, name: str, least: int) -> int | None:
        """The cell's number, `None` where it is empty."""
        return self._number(self._text[name], name, least)

    def degree(self, name: str) -> Degree | None:
        """One degree for both phases, or one for each."""
        match = _PER_PHASE.fullmatch(self._text[name])
        if match is None:
            both = self.count(name, least=1)
            return None if both is None else Degree(both, both)
        prefill, decode = (self._number(digits, name, 1) for digits in match.groups())
        return Degree(prefill or 1, decode or 1)

    def _number(self, text: str, name: str, least: int) -> int | None:
        if not text:
            return None
        if _COUNT.fullmatch(text) and least <= int(text) <= _MOST:
            return int(text)
        self._refuse(name, f"a whole number from {least} on")
        return None

    def _refuse(self, name: str, wanted: str) -> None:
        self.unread = self.unread or f"{name} must be {wanted}, not {self._text[name][:40]!r}"


def _positive(text: str, place: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0.0 < value < 1e15):
        raise InputError(f"{place}: {name} must be a number above 0, not {text[:40]!r}")
    return value
