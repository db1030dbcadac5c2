"""A calibration from serving runs finds the engine that made them, says how far off it is, and claims no more."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.calibration.custom import CustomCalibration
from shardwright.tools.calibration.engine_profile import EngineConstants, engine_profile
from shardwright.tools.calibration.measure.machine import QUICK
from shardwright.tools.calibration.measure.table import table_text
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.bench_outputs import Served
from shardwright.tools.fidelity.calibrate import Task, calibrate
from shardwright.tools.fidelity.calibration_report import CalibrationReport
from shardwright.tools.fidelity.deployment import layout_of
from shardwright.tools.fidelity.predict import figure_of
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.performance.serving.load import ClosedLoop, Lengths
from shardwright.tools.performance.serving_estimate import serve

from ..calibration.measure.truths import TRUTHS
from .rows import row_of
from .rows import table_text as serving_table

pytestmark = pytest.mark.thorough

TODAY = date(2026, 11, 21)
MODEL = "meta-llama/Llama-3.1-8B"
H100 = find_accelerator("h100-sxm")
TASK = Task("mine", "bench.json", TODAY, Served(accelerator="h100-sxm", engine_version="0.11.0"))
SHIPPED = engine_profile("vllm", "0.11.0", H100)
# An engine whose host takes much longer and whose kernels read memory more slowly than what ships says.
TRUTH = SHIPPED.entry.constants.model_copy(
    update={
        "host_step_ms": SHIPPED.entry.constants.host_step_ms + 2.0,
        "memory_scale": 1.2 * SHIPPED.entry.constants.memory_scale,
    }
)
LOADS = ((1, 10), (4, 40), (8, 80), (16, 80), (32, 160), (64, 192))
SENT, RECEIVED = 1024, 128


def seen(users: int, requests: int, constants: EngineConstants) -> dict[str, float]:
    """Figures that users of an engine with `constants` see, by the whole simulation, not by the fit's short cut."""
    plain = situation_of(row_of())
    assert isinstance(plain, Situation)
    situation = replace(plain, arrivals=ClosedLoop(users, requests), lengths=Lengths(SENT, RECEIVED))
    layout = layout_of(situation)
    entry = SHIPPED.entry.model_copy(update={"constants": constants})
    setting = layout.setting.with_profile(SHIPPED.model_copy(update={"entry": entry}))
    times = serve(layout.with_setting(setting), situation.arrivals, situation.lengths)
    return {
        figure: figure_of(times, replace(situation, figure=figure)) for figure in ("ttft_ms", "tpot_ms", "output_tok_s")
    }


def output(users: int, requests: int, constants: EngineConstants = TRUTH) -> dict[str, Any]:
    """The same figures as vLLM's benchmark client writes them."""
    figures = seen(users, requests, constants)
    return {
        "model_id": MODEL, "num_prompts": requests, "request_rate": "inf", "max_concurrency": users,
        "completed": requests, "failed": 0, "duration": requests * RECEIVED / figures["output_tok_s"],
        "total_input_tokens": requests * SENT, "total_output_tokens": requests * RECEIVED,
        "mean_ttft_ms": figures["ttft_ms"], "mean_tpot_ms": figures["tpot_ms"],
        "output_throughput": figures["output_tok_s"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def report() -> CalibrationReport:
    """The calibration from six loads of one deployment."""
    return calibrate("\n".join(json.dumps(output(*load)) for load in LOADS), TASK)


def test_runs_of_another_engine_are_predicted_well_after_and_badly_before(report: CalibrationReport) -> None:
    (learned,) = report.engines
    errors = {error.figure: error for error in learned.errors}
    tpot, rate = errors["tpot_ms"], errors["output_tok_s"]
    assert tpot.before_pct is not None
    assert rate.before_pct is not None
    assert min(tpot.before_pct, rate.before_pct) > 10.0
    assert tpot.after_pct is not None
    assert rate.after_pct is not None
    assert max(tpot.after_pct, rate.after_pct) < 4.0


def test_runs_that_took_no_part_in_a_fit_are_predicted_too(report: CalibrationReport) -> None:
    (learned,) = report.engines
    left_out = {error.figure: error.left_out_pct for error in learned.errors}
    assert all(error is not None and error < 10.0 for error in left_out.values())
    # All of them are of one model on one card: no range.
    assert report.calibration.engines[0].ranges == ()


def test_what_was_learned_points_to_what_was_changed(report: CalibrationReport) -> None:
    changes = {change.name: change for change in report.engines[0].changes}
    assert changes["host_step_ms"].after > changes["host_step_ms"].before
    assert changes["memory_scale"].after > changes["memory_scale"].before
    for name in ("moe_scale", "moe_fixed_scale", "communication_scale"):
        # A dense model on one GPU says nothing of experts and collectives.
        assert name not in changes


def test_one_run_claims_no_error(report: CalibrationReport) -> None:
    single = calibrate(json.dumps(output(16, 80)), TASK)
    (learned,) = single.engines
    assert all(error.left_out_pct is None for error in learned.errors)
    assert single.calibration.engines[0].ranges == ()
    assert any("how far off it is elsewhere is not known" in note for note in single.notes)
    assert report.notes == tuple(note for note in report.notes if "elsewhere" not in note)


def test_runs_of_the_engine_that_ships_teach_nothing() -> None:
    result = calibrate("\n".join(json.dumps(output(*load, SHIPPED.entry.constants)) for load in LOADS[:4]), TASK)
    (learned,) = result.engines
    assert all(abs(change.after / change.before - 1.0) < 0.15 for change in learned.changes if change.before)
    assert all(error.before_pct is not None and error.before_pct < 2.0 for error in learned.errors)


def test_a_table_of_serving_results_calibrates_as_a_client_does(report: CalibrationReport) -> None:
    changes: list[dict[str, str]] = []
    loads = [users for users, _ in LOADS[:4]]
    for number, users in enumerate(loads):
        figures = seen(users, 10 * users, TRUTH)
        for metric, figure in (("ttft_ms", "ttft_ms"), ("tpot_ms", "tpot_ms"), ("output_tok_s_total", "output_tok_s")):
            changes.append(
                {
                    "id": f"OWN-{number}{metric}", "concurrency_or_batch": str(users), "metric": metric,
                    "value": repr(figures[figure]),
                }
            )  # fmt: skip
    result = calibrate(serving_table(*changes), Task("mine", "own.csv", TODAY))
    (learned,) = result.engines
    assert learned.runs == len(loads)
    assert all(error.after_pct is not None and error.after_pct < 5.0 for error in learned.errors)
    profile = result.calibration.engines[0]
    assert (profile.engine, profile.generation, profile.accelerator_class) == ("vllm", "v1", "hopper")


def test_kernel_times_keep_the_engine_of_the_calibration_to_begin_with(report: CalibrationReport) -> None:
    truth, rows_of, _ = TRUTHS["gemm"]
    base = report.calibration
    result = calibrate(table_text(rows_of(truth, QUICK)), Task("both", "own.csv", TODAY, base=base))
    assert result.kind == "kernels"
    assert result.calibration.engines == base.engines
    assert [file.accelerator for file in result.calibration.kernels] == ["h100-sxm"]
    assert any("fit them again" in note for note in result.notes)


def test_serving_runs_are_fitted_on_the_kernels_of_the_calibration_to_begin_with() -> None:
    truth, rows_of, _ = TRUTHS["gemm"]
    base = calibrate(table_text(rows_of(truth, QUICK)), Task("kernels", "own.csv", TODAY)).calibration
    text = json.dumps(output(8, 80, SHIPPED.entry.constants))
    plain = calibrate(text, TASK).engines[0].figures
    based = calibrate(text, replace(TASK, base=base))
    assert based.calibration.kernels == base.kernels
    # Matmuls that reach 60% of the memory's bandwidth are slower than those that ship.
    before = {
        figure.figure: (on_shipped.before, figure.before)
        for on_shipped, figure in zip(plain, based.engines[0].figures, strict=True)
    }
    shipped, slower = before["tpot_ms"]
    assert shipped is not None
    assert slower is not None
    assert slower > 1.1 * shipped


@pytest.mark.parametrize(
    ("text", "task", "says"),
    [
        ("hello", TASK, "bench.json: neither kernel times"),
        ("", TASK, "neither kernel times"),
        ("a,b\n1,2\n", TASK, "neither kernel times"),
        (serving_table({}), TASK, "takes no accelerator, engine_version: leave the option out"),
        (serving_table({"model": "acme/rocket"}), Task("m", "own.csv", TODAY), "acme/rocket is not in the catalogue"),
    ],
)  # fmt: skip
def test_what_is_none_of_the_formats_is_refused_in_one_line(text: str, task: Task, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        calibrate(text, task)
    assert "\n" not in str(refused.value)


def test_kernel_times_take_no_word_on_a_deployment() -> None:
    truth, rows_of, _ = TRUTHS["gemm"]
    task = Task("m", "own.csv", TODAY, Served(accelerator="h100-sxm", tp=2))
    with pytest.raises(InputError, match="takes no tp"):
        calibrate(table_text(rows_of(truth, QUICK)), task)


def test_a_calibration_is_a_file_that_is_read_back(report: CalibrationReport) -> None:
    text = report.calibration.model_dump_json(exclude_none=True)
    assert CustomCalibration.model_validate_json(text) == report.calibration
