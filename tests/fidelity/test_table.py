"""A table is read strictly: what it leaves out stays unknown, and errors name their line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.errors import InputError
from shardwright.tools.fidelity import table
from shardwright.tools.fidelity.run import predict_rows
from shardwright.tools.fidelity.table import Degree, read_table, read_table_file
from shardwright.tools.performance.serving_estimate import serve

from .rows import MEASURED, PLAIN, measured_rows, row_of, table_text


def test_every_row_is_read_in_its_order() -> None:
    ids = [line.split(",", 1)[0] for line in MEASURED.read_text().splitlines()[1:]]
    assert [row.id for row in measured_rows()] == ids


def test_blank_cells_stay_unknown() -> None:
    row = row_of(gpus="", ep="", dp="", isl="", osl="", framework_version="", notes="")
    assert (row.gpus, row.ep, row.dp, row.input_tokens, row.output_tokens) == (None,) * 5
    assert (row.tier, row.peak_memory_gb) == ("", None)


def test_columns_that_are_absent_are_unknown() -> None:
    names = ("id", "model", "gpu", "tp", "isl", "osl", "concurrency_or_batch", "metric", "value")
    text = ",".join(names) + "\n" + ",".join(PLAIN[name] for name in names) + "\n"
    (row,) = read_table(text, "table")
    assert (row.gpus, row.framework, row.notes) == (None, "", "")


def test_a_degree_may_be_stated_for_each_phase() -> None:
    row = row_of(tp="P4/D16")
    assert row.tp == Degree(4, 16) and str(row.tp) == "P4/D16" and str(Degree(8, 8)) == "8"


def test_notes_carry_tier_and_peak_memory() -> None:
    row = row_of(notes="core=1; tier=B; static batch; peak_gpu_mem_gb=31.5; e2e_ms=9")
    assert (row.tier, row.peak_memory_gb, row.note("e2e_ms")) == ("B", 31.5, "9")


def test_the_source_is_what_the_id_begins_with() -> None:
    assert row_of(id="TRT017-00012").source == "TRT017"
    assert row_of(id="mine", source_title="A study").source == "A study"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": "fast"}, "line 2: value"),
        ({"value": "-3"}, "line 2: value"),
        ({"value": "nan"}, "line 2: value"),
        ({"value": "inf"}, "line 2: value"),
        ({"value": ""}, "line 2: value"),
        ({"id": ""}, "line 2: id"),
        ({"notes": "x" * 5000}, "line 2: notes"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named_with_its_line(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_table(table_text(change), "table")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "change",
    [
        {"tp": "eight"},
        {"tp": "0"},
        {"tp": "P0/D8"},
        {"tp": "P1/D?"},
        {"ep": "P4"},
        {"gpus": "16 to 24"},
        {"isl": "-1"},
        {"isl": "99999999999"},
        {"osl": "chat trace"},
        {"disaggregated": "yes"},
    ],
)
def test_a_row_with_a_number_that_is_none_is_left_out_with_its_reason(change: dict[str, str]) -> None:
    ((name, cell),) = change.items()
    rows = read_table(table_text(change, {}), "table")
    first, second = predict_rows(rows, serve)
    assert first.predicted is None and first.reason.startswith(f"{name} must be ") and repr(cell) in first.reason
    assert second.predicted is not None


@pytest.mark.parametrize("text", ["", "\n", "id,value\n1,2\n", "{}", "id;model;gpu\n"])
def test_a_text_without_the_needed_columns_is_refused_by_their_names(text: str) -> None:
    with pytest.raises(InputError, match="the header lacks"):
        read_table(text, "table")


def test_a_column_that_is_there_twice_is_refused() -> None:
    lines = table_text({}).splitlines()
    with pytest.raises(InputError, match="more than once"):
        read_table(f"{lines[0]},value\n{lines[1]},8\n", "table")


def test_more_cells_than_columns_are_refused() -> None:
    with pytest.raises(InputError, match="line 2: more cells"):
        read_table(table_text({}).rstrip() + ",7\n", "table")


def test_a_table_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(table.MAX_TABLE_BYTES + 1)
    with pytest.raises(InputError, match="larger than"):
        read_table_file(path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"id\x00"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_table_file(path)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_table_file(tmp_path / "none.csv")


@given(st.text(max_size=300), st.sampled_from(sorted(PLAIN)))
def test_no_cell_whatever_is_in_it_breaks_the_reader(cell: str, column: str) -> None:
    try:
        read_table(table_text({column: cell}), "table")
    except InputError as error:
        assert str(error).startswith("table: ")
