"""The file of a table is complete and exact, with the same bytes each time."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from shardwright.agent.sweep.case import Row
from shardwright.agent.sweep.table import COLUMNS, check_ending, table_bytes
from shardwright.tools.errors import InputError

from .samples import row

ROWS = (
    row(1),
    row(2),
    Row(model='"quotes", commas\nand lines', hardware="h", workload="w", feasible=False, rule="ME001", reason="no"),
    Row(model="m", hardware="h", workload="w", error="a link is not known"),
)


def test_a_csv_reads_back_as_it_was() -> None:
    data = table_bytes(ROWS, ".csv")
    assert data == table_bytes(ROWS, ".csv")
    records = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert tuple(records[0]) == COLUMNS
    for expected, cells in zip(ROWS, records, strict=True):
        typed = {name: cell for name, cell in cells.items() if cell != ""}
        assert Row.model_validate(typed) == expected


def test_a_parquet_reads_back_as_it_was() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    data = table_bytes(ROWS, ".parquet")
    table = parquet.read_table(io.BytesIO(data))
    assert tuple(table.column_names) == COLUMNS
    assert [Row.model_validate(record) for record in table.to_pylist()] == list(ROWS)
    assert str(table.schema.field("feasible").type) == "bool"
    assert str(table.schema.field("ttft_ms").type) == "double"
    assert str(table.schema.field("gpus").type) == "int64"


def test_a_table_of_nothing_has_its_columns() -> None:
    assert table_bytes((), ".csv").decode().strip().split(",") == list(COLUMNS)


@pytest.mark.parametrize("name", ["table.txt", "table", "table.csv.gz", ".csv"])
def test_another_ending_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="ends in"):
        check_ending(Path(name))


def test_an_ending_may_be_in_capitals() -> None:
    assert check_ending(Path("Table.CSV")) == ".csv"
