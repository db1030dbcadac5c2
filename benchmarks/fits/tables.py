"""Tables of kernel times as they are published: where rows come from, reading, grouping.

It reads nothing but the file that it is given, of bounded size.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS
from shardwright.tools.calibration.measure.kernel_shapes import Columns, Row
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError

_MAX_TABLE_BYTES = 64 * 2**20
# Times of this source count work on the host, which kernels shorter than this wait for; its other constants are those
# of the chip.
HOST_TIMED, LONG_US = "infersim", 100.0


class Source(Struct, frozen=True):
    """Where rows come from: the public project at a commit, and its licence."""

    project: str
    licence: str


AICONFIGURATOR = Source("ai-dynamo/aiconfigurator @ 095f58a5 (NVIDIA)", "Apache-2.0")
AICONFIGURATOR_WHEEL = Source("PyPI aiconfigurator-core 0.12.0 (NVIDIA)", "Apache-2.0")
VIDUR = Source("microsoft/vidur @ 7d475133", "MIT")
LLMSERVINGSIM = Source("casys-kaist/LLMServingSim @ 5daddb21", "MIT")
INFERSIM = Source("alibaba/InferSim @ f2293dab", "Apache-2.0")
APEX_PLUS = Source("microsoft/apex_plus @ 8769096", "MIT")


def source_of(src: str) -> Source:
    """The project behind a table's `src` column."""
    for prefix, source in (
        ("vidur", VIDUR), ("llmservingsim", LLMSERVINGSIM), ("infersim", INFERSIM), ("apex_plus", APEX_PLUS),
        ("aic-wheel", AICONFIGURATOR_WHEEL),
    ):  # fmt: skip
        if src.startswith(prefix):
            return source
    return AICONFIGURATOR


class Table(Columns, frozen=True):
    """Rows of one published table, and ways to take parts of it."""

    def where(self, keep: Callable[[Row], bool]) -> Table:
        """The rows that `keep` takes."""
        return Table([row for row in self.rows if keep(row)])

    def groups(self, *columns: str) -> dict[tuple[str, ...], Table]:
        """The rows by the values of `columns`, in sorted order."""
        by_key: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            by_key[tuple(row[name] for name in columns)].append(row)
        return {key: Table(by_key[key]) for key in sorted(by_key)}

    def shape_keys(self, *columns: str) -> list[str]:
        """One word for each row that names its shape: rows with the same word are held back together."""
        return ["/".join(row[name] for name in columns) for row in self.rows]


def read_table(path: Path) -> Table:
    """A CSV file of kernel times.

    Raises:
        InputError: it is not there, too large, or has no times.
    """
    if not path.is_file():
        raise InputError(f"no table of kernel times at {path}")
    if path.stat().st_size > _MAX_TABLE_BYTES:
        raise InputError(f"{path} is larger than {_MAX_TABLE_BYTES} bytes")
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    if not rows:
        raise InputError(f"{path} has no rows")
    return Table(rows)


def chip_named(table_name: str) -> Chip:
    """The chip that a table calls `table_name`.

    Raises:
        InputError: the tables' names have none of this name.
    """
    if table_name not in ACCELERATORS:
        raise InputError(f"no accelerator of the catalogue is known for the table's {table_name!r}")
    return chip_of(find_accelerator(ACCELERATORS[table_name]))
