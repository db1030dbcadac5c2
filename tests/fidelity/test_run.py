"""A run answers every row: with a figure or with the reason why there is none."""

from __future__ import annotations

import csv
import io

import pytest

from shardwright.tools.checkpoint import watched
from shardwright.tools.fidelity.run import (
    COLUMNS,
    RUNTIME_GB,
    peak_memory_gb,
    predict_rows,
    predictions_csv,
    report_of,
    serve_at_datasheet_rates,
)
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.fidelity.table import read_table
from shardwright.tools.performance.serving_estimate import serve

from .rows import measured_rows, row_of, table_text

pytestmark = pytest.mark.thorough

CHANGES = ({}, {"id": "OWN-2", "model": "acme/None-1B"}, {"id": "OWN-2", "metric": "ttft_ms", "value": "31.25"})
MIXED = read_table(table_text(*CHANGES), "table")


def test_each_row_has_one_line_in_the_tables_order() -> None:
    lines = list(csv.DictReader(io.StringIO(predictions_csv(predict_rows(MIXED, serve_at_datasheet_rates)))))
    assert [tuple(line) for line in lines] == [COLUMNS] * 3
    assert [line["id"] for line in lines] == ["OWN-00001", "OWN-2", "OWN-2"]
    assert [bool(line["predicted"]) for line in lines] == [True, False, True]
    assert lines[1]["error_pct"] == "" and "is not in the catalogue" in lines[1]["reason"]
    for line in (lines[0], lines[2]):
        error = 100 * (float(line["predicted"]) / float(line["measured"]) - 1)
        assert float(line["error_pct"]) == pytest.approx(error, abs=0.01) and line["reason"] == ""


def test_a_report_counts_what_was_modelled_and_why_the_rest_was_not() -> None:
    report = report_of(predict_rows(MIXED, serve_at_datasheet_rates))
    assert (report.rows, report.modelled, report.modelled_pct) == (3, 2, pytest.approx(66.67, abs=0.01))
    assert [reason.rows for reason in report.not_modelled] == [1]
    assert {family.family for family in report.scores.families} == {"tpot", "ttft-low"}


def test_who_watches_is_told_which_row_is_predicted() -> None:
    shown: list[str] = []
    with watched(shown.append):
        predict_rows(MIXED, serve_at_datasheet_rates)
    assert shown == [f"predicting row {number} of 3" for number in (1, 2, 3)]


def test_a_run_twice_over_is_the_same() -> None:
    assert predict_rows(MIXED, serve) == predict_rows(MIXED, serve)


def test_the_model_is_nearer_to_what_was_measured_than_the_roofline() -> None:
    report = report_of(predict_rows(measured_rows(), serve))
    assert report.modelled_pct >= 95.0
    for family in report.scores.families:
        assert family.roofline is not None
        if family.groups >= 5:
            assert family.model.median_pct < family.roofline.median_pct, family


def test_peak_memory_is_compared_where_a_row_states_it() -> None:
    notes = "tier=A; static batch; peak_gpu_mem_gb=18.9"
    rows = read_table(table_text({"notes": notes}, {"id": "OWN-2", "metric": "ttft_ms", "notes": notes}, {}), "t")
    report = report_of(predict_rows(rows, serve_at_datasheet_rates))
    assert report.peak_memory is not None
    # Both metrics of one run are one measured peak.
    assert report.peak_memory.rows == 1
    situation = situation_of(rows[0])
    assert isinstance(situation, Situation)
    assert report.peak_memory.bias_pct == pytest.approx(100 * (peak_memory_gb(situation) / 18.9 - 1))


def test_a_peak_holds_weights_cache_and_the_whole_batchs_prefill() -> None:
    small, large = (
        situation_of(row_of(notes="static batch", isl="2048", concurrency_or_batch=batch)) for batch in ("1", "16")
    )
    assert isinstance(small, Situation) and isinstance(large, Situation)
    weights_gb = 16.06
    assert weights_gb + RUNTIME_GB < peak_memory_gb(small) < weights_gb + RUNTIME_GB + 1.5
    # 128 KiB of cache per token; activations of 16 prompts at once on top.
    cache_gb = 15 * 2176 * 131_072 / 1e9
    assert peak_memory_gb(large) - peak_memory_gb(small) > cache_gb
