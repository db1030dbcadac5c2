"""`fidelity`: a table in, errors out; one line and a status for a file that is no table."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.fidelity.situation import METRICS

from ..fidelity.rows import table_text

ROWS = table_text({}, {"id": "OWN-2", "model": "acme/None-1B"}, {"id": "OWN-3", "metric": "ttft_ms", "value": "40"})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table in a file."""
    path = tmp_path / "measured.csv"
    path.write_text(ROWS)
    return path


def test_the_report_has_errors_beside_the_rooflines_and_what_was_left_out(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fidelity", str(table)]) == 0
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    assert (
        "2 of 3 rows modelled" in words
        and "roofline" in words
        and "is not in the catalogue" in words
        and "1 row: " in words
    )
    assert err == ""


def test_the_metrics_that_a_table_may_name_stand_in_the_help_and_on_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["fidelity", "--help"]) == 0
    page = Path(__file__).parents[2] / "docs" / "how-to" / "calibrate.md"
    for text in (capsys.readouterr().out, page.read_text(encoding="utf-8")):
        assert set(METRICS) <= set(re.findall(r"\w+", text))


def test_json_is_the_report_and_nothing_else(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fidelity", str(table), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["modelled"]) == (3, 2)
    assert [family["family"] for family in report["scores"]["families"]] == ["tpot", "ttft-low"]


def test_predictions_are_written_with_one_line_a_row(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "predicted.csv"
    assert run(["fidelity", str(table), "-o", str(output)]) == 0
    lines = list(csv.DictReader(output.open()))
    assert list(lines[0]) == ["id", "metric", "measured", "predicted", "error_pct", "reason"]
    assert [line["id"] for line in lines] == ["OWN-00001", "OWN-2", "OWN-3"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    assert run(["fidelity", "-"]) == 0
    assert "standard input" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "the header lacks"), (ROWS.replace("7.5", "fast"), "line 2: value"), ("id\n\x00", "the header lacks")],
)
def test_a_table_that_cannot_be_read_is_one_line_and_status_2(
    table: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    table.write_text(text)
    assert run(["fidelity", str(table)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err and err.count("\n") == 1


def test_an_output_that_cannot_be_written_is_status_2(table: Path, tmp_path: Path) -> None:
    assert run(["fidelity", str(table), "-o", str(tmp_path / "none" / "x.csv")]) == 2
