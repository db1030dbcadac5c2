"""The rows of a sweep are those of plans, in the order of the file, however and how often it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shardwright
from shardwright.agent.intent.complete import complete
from shardwright.agent.pipeline import plan_intent
from shardwright.agent.report.sweep import render_sweep
from shardwright.agent.sweep.case import evaluate_case
from shardwright.agent.sweep.run import Running, SweepResult, run_sweep, sweep_journal
from shardwright.tools.plan.document import Strategy

from .samples import CASES, SMALL, TINY, sweep_of


@pytest.fixture(scope="module")
def small() -> SweepResult:
    return run_sweep(sweep_of(SMALL), Running(jobs=1))


def test_every_case_has_a_row_in_the_order_of_the_file(small: SweepResult) -> None:
    cases = sweep_of(SMALL).cases
    assert [(row.model, row.hardware, row.workload) for row in small.rows] == [
        (case.model, case.hardware, case.workload) for case in cases
    ]
    assert small.cases == CASES == small.feasible + sum(small.infeasible.values()) + small.errors


def test_a_row_is_a_plan_a_rule_or_an_error(small: SweepResult) -> None:
    rows = {(row.model.split("/")[-1], row.hardware, row.workload): row for row in small.rows}
    assert rows["tiny-dense", "1x2:h100-sxm", "chat"].feasible
    late = rows["tiny-dense", "1x2:h100-sxm", "fast"]
    assert (late.feasible, late.rule) == (False, "PE010")
    assert "exceeds 0.01 ms" in (late.reason or "")
    large = rows["Llama-3.1-8B", "one T4", "chat"]
    assert (large.feasible, large.rule) == (False, "ME001")
    assert "more than it has" in (large.reason or "")
    unknown = rows["tiny-dense", "2x1:rtx-4090", "chat"]
    assert unknown.feasible is None
    assert "inter_node_bw_gb_s" in (unknown.error or "")


def test_a_row_is_what_plan_proposes(small: SweepResult) -> None:
    cases = sweep_of(SMALL).cases
    compared = 0
    for case, row in zip(cases, small.rows, strict=True):
        if not row.feasible:
            continue
        result = plan_intent(complete(case.said))
        assert result.plan is not None
        assert result.valid
        assert Strategy.model_validate_json(row.strategy_json or "") == result.plan.strategy
        assert row.concurrency == result.plan.workload.concurrency
        assert result.estimate is not None
        assert row.tpot_ms == pytest.approx(result.estimate.latency.tpot_ms)
        compared += 1
    assert compared == small.feasible > 0


@pytest.mark.thorough
def test_two_processes_give_the_same_rows(small: SweepResult) -> None:
    assert run_sweep(sweep_of(SMALL), Running(jobs=2)) == small


def test_a_run_goes_on_where_an_earlier_one_ended(small: SweepResult, tmp_path: Path) -> None:
    sweep = sweep_of(SMALL)
    path = tmp_path / "journal"
    with sweep_journal(sweep, path) as journal:
        for key, row in list(zip(sweep.keys, small.rows, strict=True))[::2]:
            journal.keep(key, row)
    progress: list[int] = []
    with sweep_journal(sweep, path) as journal:
        resumed = run_sweep(sweep, Running(jobs=1), journal=journal, progress=progress.append)
    assert resumed.rows == small.rows
    assert resumed.kept == CASES // 2
    assert progress == list(range(CASES // 2, CASES + 1))
    with sweep_journal(sweep, path) as journal:
        assert run_sweep(sweep, journal=journal).kept == CASES


def test_a_larger_sweep_keeps_what_it_shares(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first, second = sweep_of({**TINY, "hardware": TINY["hardware"][:1]}), sweep_of(TINY)
    with sweep_journal(first, path) as journal:
        run_sweep(first, Running(jobs=1), journal=journal)
    with sweep_journal(second, path) as journal:
        assert journal.changed
        enlarged = run_sweep(second, Running(jobs=1), journal=journal)
    assert enlarged.kept == len(first.cases)
    assert enlarged.rows == run_sweep(second, Running(jobs=1)).rows


def test_a_length_beyond_the_model_is_an_error_of_its_case_alone() -> None:
    asked = {**TINY, "models": ["llama-3.1-8b"], "hardware": ["1x1:h100-sxm"]}
    asked["workloads"] = [
        {"name": "fits", "input_tokens": 512, "output_tokens": 16},
        {"name": "long", "input_tokens": 200_000, "output_tokens": 16},
    ]
    fits, long = run_sweep(sweep_of(asked), Running(jobs=1)).rows
    assert fits.feasible
    assert "131072 positions" in (long.error or "")


def test_the_result_survives_its_json(small: SweepResult) -> None:
    assert SweepResult.model_validate(json.loads(small.model_dump_json())) == small


def test_a_precision_that_is_left_open_is_chosen_and_told() -> None:
    rows = [evaluate_case(case).row for case in sweep_of({**TINY, "precision": ["any", "bf16"]}).cases[:2]]
    chosen, stated = rows
    assert chosen.feasible and chosen.weights is not None and stated.weights == "bf16"
    assert (chosen.ttft_ms or 0) + (chosen.tpot_ms or 0) <= (stated.ttft_ms or 0) + (stated.tpot_ms or 0)


def test_a_row_has_the_cost_and_the_percentile_that_the_workload_asks_for() -> None:
    load = {"input_tokens": 512, "output_tokens": 64, "concurrency": 4}
    asked = {**TINY, "models": ["llama-3.2-1b"], "hardware": ["1x1:l4"]}
    asked["workloads"] = [
        {**load, "name": "cheap", "objective": "cost"},
        {**load, "name": "tail", "ttft_ms_max": 5000, "ttft_statistic": "p95"},
    ]
    cheap, tail = (evaluate_case(case).row for case in sweep_of(asked).cases)
    planned = shardwright.plan("llama-3.2-1b on one L4, 512 in / 64 out, 4 users, lowest cost").estimate
    assert planned is not None and planned.cost is not None
    assert (cheap.cost_unit, cheap.gpus) == (planned.cost.unit, 1)
    assert cheap.cost_per_million_output_tokens == pytest.approx(planned.cost.per_million_output_tokens, rel=0.02)
    assert cheap.limited_ms is None and json.loads(tail.limited_ms or "")["TTFT p95"] > (tail.ttft_ms or 0)


def test_the_formats_of_the_best_are_told_where_several_were_swept() -> None:
    several = run_sweep(sweep_of({**TINY, "hardware": ["1x2:h100-sxm"], "precision": ["bf16", "fp8"]}), Running(jobs=1))
    assert "formats" in render_sweep(several, saved_as=None, width=120)
    single = run_sweep(sweep_of({**TINY, "hardware": ["1x2:h100-sxm"]}), Running(jobs=1))
    assert "formats" not in render_sweep(single, saved_as=None, width=120)


def test_the_precision_that_is_assumed_is_told(small: SweepResult) -> None:
    outcome = evaluate_case(sweep_of({**TINY, "precision": "fp8"}).cases[0])
    assert (outcome.row.weights, outcome.row.kv_cache) == ("fp8", "bf16")
    assert small.rows[0].weights == "bf16"
