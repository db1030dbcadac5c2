"""The table of kernel times: what is written is read back, tables are known by their columns, others are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.calibration.measure.table import (
    SHAPES,
    KernelRow,
    Mode,
    TableName,
    is_kernel_table,
    read_kernel_rows,
    table_of,
    table_text,
)
from shardwright.tools.errors import InputError

CASES = json.loads((Path(__file__).parents[2] / "cases" / "kernel_tables_refused.json").read_text(encoding="utf-8"))
WORDS = {"dtype": "bf16", "kv_dtype": "fp8", "op": "all_reduce"}


@st.composite
def rows(draw: st.DrawFn) -> KernelRow:
    """Any row that could be measured."""
    table: TableName = draw(st.sampled_from(get_args(TableName)))
    numbers = st.integers(1, 10**9).map(str)
    shape = {name: WORDS.get(name) or draw(numbers) for name in SHAPES[table]}
    # A table keeps four digits.
    us = float(f"{draw(st.floats(0.01, 1e8)):.4g}")
    src = draw(st.text(st.characters(categories=("L", "N")), max_size=20))
    mode: Mode = draw(st.sampled_from(get_args(Mode)))
    return KernelRow(table, draw(st.sampled_from(("h100-sxm", "l40s"))), src, shape, us, mode, draw(st.booleans()))


@given(st.lists(rows(), min_size=1, max_size=8))
def test_what_is_written_is_read_back(measured: list[KernelRow]) -> None:
    assert read_kernel_rows(table_text(measured), "table") == tuple(measured)


@pytest.mark.parametrize("name", SHAPES)
def test_a_table_of_one_kernel_is_known_by_its_columns(name: TableName) -> None:
    header = ["gpu", "src", *SHAPES[name], "us"]
    assert table_of(header) == name
    assert is_kernel_table(header)


def test_a_table_of_serving_results_is_none_of_kernel_times() -> None:
    assert not is_kernel_table(["id", "model", "gpu", "tp", "isl", "osl", "concurrency_or_batch", "metric", "value"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_broken_table_is_refused_in_one_line(case: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        read_kernel_rows(case["text"], "own.csv")
    message = str(refused.value)
    assert message.startswith("own.csv: ")
    assert case["says"] in message
    assert "\n" not in message


@given(st.text(max_size=200))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    try:
        read_kernel_rows("gpu,src,dtype,m,n,k,us\n" + text, "own.csv")
    except InputError as error:
        assert str(error).startswith("own.csv: ")
