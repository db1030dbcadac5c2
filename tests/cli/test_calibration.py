"""`measure`, `calibrate`, and `--calibration` of `estimate` and `plan`: statuses, one-line refusals, round trips."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.calibration.custom import read_calibration
from shardwright.tools.calibration.measure.machine import QUICK
from shardwright.tools.calibration.measure.table import read_kernel_rows, table_text
from shardwright.tools.plan.document import PhaseStrategy

from ..calibration.measure.truths import TRUTHS
from ..plan.tiny import DENSE, tiny_plan

HAS_TORCH = importlib.util.find_spec("torch") is not None
OUTPUT = json.loads((Path(__file__).parents[1] / "cases" / "bench_outputs.json").read_text(encoding="utf-8"))["plain"]
ON_H100 = ["--hardware", "1x1:h100-sxm"]


def json_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The JSON of a command that must succeed."""
    assert run([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one-line message of a call that must be refused."""
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A small valid plan on H100s."""
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2)).model_dump_json())
    return path


@pytest.fixture
def bench_file(tmp_path: Path) -> Path:
    """The result file of a run of vLLM's benchmark client."""
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(OUTPUT["vllm"]))
    return path


@pytest.fixture
def kernel_file(tmp_path: Path) -> Path:
    """Kernel times of an H100 whose matmuls reach half of its peak rates."""
    truth, rows_of, _ = TRUTHS["gemm"]
    path = tmp_path / "kernels.csv"
    path.write_text(table_text(rows_of(truth, QUICK)))
    return path


def test_kernel_times_become_a_calibration_that_changes_an_estimate_and_no_verdict(
    tmp_path: Path,
    plan_file: Path,
    kernel_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calibration = tmp_path / "mine.json"
    learned = json_of(["calibrate", str(kernel_file), "-o", str(calibration)], capsys)
    assert learned["kind"] == "kernels"
    assert learned["kernels"][0]["shipped_pct"] > 3 * learned["kernels"][0]["own_pct"]
    assert read_calibration(calibration).model_dump(mode="json", exclude_none=True) == json.loads(
        calibration.read_text()
    )

    shipped = json_of(["estimate", str(plan_file)], capsys)
    calibrated = json_of(["estimate", str(plan_file), "--calibration", str(calibration)], capsys)
    assert calibrated["calibration"]["profile"] == "mine"
    assert "kernels of h100-sxm (gemm bf16)" in calibrated["calibration"]["note"]
    # In a tiny model matmuls are mostly launch time, which is longer here.
    assert calibrated["latency"]["tpot_ms"] != shipped["latency"]["tpot_ms"]
    assert calibrated["memory"] == shipped["memory"]

    verdict = json_of(["validate", str(plan_file)], capsys)
    monkeypatch.setenv("SHARDWRIGHT_CALIBRATION", str(calibration))
    assert json_of(["estimate", str(plan_file)], capsys) == calibrated
    assert json_of(["validate", str(plan_file)], capsys) == verdict


def test_a_serving_run_becomes_a_calibration_that_changes_a_plan_s_figures(
    tmp_path: Path, bench_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration = tmp_path / "mine.json"
    learned = json_of(["calibrate", str(bench_file), *ON_H100, "-o", str(calibration), "--name", "our cluster"], capsys)
    errors = {error["figure"]: error for error in learned["engines"][0]["errors"]}
    assert errors["tpot_ms"]["after_pct"] < errors["tpot_ms"]["before_pct"]
    assert errors["tpot_ms"]["left_out_pct"] is None
    arguments = ["plan", "--model", "llama-3.1-8b", *ON_H100, "--input-tokens", "1k", "--output-tokens", "128",
             "--concurrency", "10"]  # fmt: skip
    shipped = json_of(arguments, capsys)["estimate"]
    planned = json_of([*arguments, "--calibration", str(calibration)], capsys)
    assert planned["valid"]
    assert planned["estimate"]["calibration"]["profile"] == "our cluster"
    assert planned["estimate"]["latency"]["tpot_ms"] > shipped["latency"]["tpot_ms"]


def test_the_report_says_what_was_learned_and_claims_nothing_on_one_run(
    bench_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", str(bench_file), *ON_H100]) == 0
    text = capsys.readouterr().out
    assert "What was learned" in text
    assert "they say nothing of another run" in text
    assert "left out %" not in text


def test_standard_input_is_read(
    bench_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bench_file.read_bytes())))
    assert json_of(["calibrate", "-", *ON_H100], capsys)["kind"] == "serving"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["calibrate", "missing.json"], "missing.json: cannot be read"),
        (["calibrate", "{bench}"], "--hardware NODESxGPUS:ACCELERATOR"),
        (["calibrate", "{bench}", "--hardware", "1x8:h100-sxm"], "--tp"),
        (["calibrate", "{plan}", *ON_H100], "no output of vLLM's"),
        (["calibrate", "{bench}", *ON_H100, "--calibration", "{plan}"], "no calibration that"),
        (["estimate", "{plan}", "--calibration", "{bench}"], "no calibration that"),
        (["estimate", "{plan}", "--calibration", "missing.json"], "missing.json: cannot be read"),
        (["plan", "--model", "llama-3.1-8b", *ON_H100, "--calibration", "{plan}"], "no calibration that"),
        (["measure", "--kernels", "fft"], "--kernels 'fft' is no list of gemm"),
        (["measure", "--format", "json"], "-o FILE"),
    ],
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], says: str, plan_file: Path, bench_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(plan=plan_file, bench=bench_file) for word in arguments]
    assert says in refusal(filled, capsys)


def test_nothing_is_written_where_nothing_was_learned(
    tmp_path: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration = tmp_path / "mine.json"
    refusal(["calibrate", str(plan_file), *ON_H100, "-o", str(calibration)], capsys)
    assert not calibration.exists()


def test_without_pytorch_measure_names_the_extra() -> None:
    # With an entry of None in sys.modules, Python cannot import the module.
    code = (
        "import sys; sys.modules['torch'] = None; from shardwright.agent.cli.app import run; sys.exit(run(['measure']))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr == "shardwright: measure needs PyTorch: pip install 'shardwright[measure]'\n"


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch (the extra measure)")
def test_measure_times_this_machine_and_calibrate_takes_only_an_accelerator_s_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "kernels.csv"
    arguments = ["measure", "--quick", "--kernels", "gemm,attention,moe", "-o", str(table)]
    measured = json_of(arguments, capsys)
    assert {entry["table"] for entry in measured["tables"]} == {"gemm", "attn_prefill", "attn_decode", "moe"}
    rows = read_kernel_rows(table.read_text(), "kernels.csv")
    assert sum(entry["rows"] for entry in measured["tables"]) == len(rows)
    if measured["gpu"] == "cpu":
        assert {row.mode for row in rows} == {"host"}
        assert "times of a host" in refusal(["calibrate", str(table)], capsys)
    else:
        assert json_of(["calibrate", str(table)], capsys)["kernels"]


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch (the extra measure)")
def test_measure_times_collectives_between_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "collectives.csv"
    measured = json_of(["measure", "--quick", "--kernels", "collectives", "-o", str(table)], capsys)
    rows = read_kernel_rows(table.read_text(), "collectives.csv")
    if measured["gpu"] == "cpu" or measured["devices"] > 1:
        assert {row.shape["op"] for row in rows} == {
            "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"
        }  # fmt: skip
        assert min(row.number("ranks") for row in rows) == 2
