"""Rows for tests: the project's own table of openly licensed measurements, and rows made up for one test."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from shardwright.tools.fidelity.table import MeasuredRow, read_table, read_table_file

CASES = Path(__file__).parents[1] / "cases"
MEASURED = CASES / "fidelity_rows.csv"

PLAIN = {
    "id": "OWN-00001", "source_title": "own", "published": "2025-11", "disaggregated": "0", "statistic": "mean",
    "framework": "vLLM", "framework_version": "0.11.0",
    "model": "meta-llama/Llama-3.1-8B",
    "weights_dtype": "bf16", "kv_dtype": "auto", "gpu": "H100-SXM-80GB", "gpus": "1", "tp": "1", "pp": "1", "ep": "1",
    "dp": "1", "isl": "1024", "osl": "128", "concurrency_or_batch": "4", "metric": "tpot_ms", "value": "7.5",
    "notes": "tier=A; closed loop",
}  # fmt: skip


def measured_rows() -> tuple[MeasuredRow, ...]:
    """The rows of the project's own table."""
    return read_table_file(MEASURED)


def table_text(*changes: dict[str, str]) -> str:
    """A table with one row for each of `changes` to a plain one."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(PLAIN))
    writer.writeheader()
    writer.writerows(PLAIN | change for change in changes)
    return out.getvalue()


def row_of(**changes: str) -> MeasuredRow:
    """A plain row with some cells changed."""
    (row,) = read_table(table_text(changes), "table")
    return row
