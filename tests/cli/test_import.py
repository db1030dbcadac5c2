"""`import`: commands and files together, the first lines, exit statuses; `compare` prints the same caveats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

from ..comparison.plans import dense

COMMAND = "vllm serve Qwen/Qwen3-32B -tp 4"
ON = ("--hardware", "1x8:h100-sxm")


def test_a_file_behind_a_command_is_the_one_that_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = tmp_path / "extra.yaml"
    options.write_text("pipeline_parallel_size: 2\n")
    command = "trtllm-serve Qwen/Qwen3-32B --tp_size 4 --extra_llm_api_options /etc/extra.yaml"
    assert run(["import", command, str(options), *ON]) == 0
    assert capsys.readouterr().out.startswith("Runs: PP2 × TP4")


def test_a_path_in_a_text_opens_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "extra.yaml").write_text("pipeline_parallel_size: 2\n")
    script = tmp_path / "run.sh"
    script.write_text(f"trtllm-serve Qwen/Qwen3-32B --tp_size 4 --config {tmp_path}/extra.yaml\n")
    assert run(["import", str(script), *ON]) == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("Not known to run: TP4")
    assert second.startswith(f"Not understood: --config {tmp_path}")


def test_a_flag_that_was_not_understood_leaves_open_whether_it_runs_and_costs_the_exit_status_only_under_strict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["import", f"{COMMAND} --frobnicate 3", *ON]) == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("Not known to run: TP4")
    assert second == "Not understood: --frobnicate; vLLM refuses flags and values that it does not know"
    assert run(["import", f"{COMMAND} --frobnicate 3", *ON, "--strict"]) == 1
    assert run(["import", COMMAND, *ON, "--strict"]) == 0


def test_what_the_engine_refuses_is_the_second_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", f"{COMMAND} -ep", *ON]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("Does NOT serve: TP4")
    assert second.startswith("vLLM refuses it: -ep")


@pytest.mark.parametrize("hardware", ["2xL40S", "1x2:l40s"])
def test_more_gpus_than_there_are_is_the_second_line(hardware: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", COMMAND, "--hardware", hardware]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("NOT valid as it runs: TP4")
    assert second.startswith("The degrees take 4 GPUs, and the hardware has 2")


@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        ("-tp 16", False),
        ("-dp 16", False),
        ("-tp 8 -dp 2", False),
        ("-tp 2 -dp 4", True),
        ("-dp 16 --data-parallel-size-local 8 --data-parallel-address 10.0.0.1", True),
        ("-dp 16 --data-parallel-backend ray", True),
    ],
)
def test_ranks_of_one_command_are_on_one_node_unless_a_flag_says_where_they_are(
    flags: str, runs: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["import", f"vllm serve Qwen/Qwen3-30B-A3B {flags}", "--hardware", "2x8:h200-sxm"])
    assert ("ranks on one node, which has 8 GPUs" not in " ".join(capsys.readouterr().out.split())) == runs


def test_compare_tells_what_import_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "a.json"
    plan.write_text(dense().model_dump_json())
    other = f"{COMMAND} -ep --frobnicate 3 --max-model-len 16 --enforce-eager"
    assert run(["compare", str(plan), other, "--format", "json"]) == 1
    payload = json.loads(capsys.readouterr().out)
    caveats = payload["b"]["caveats"]
    for part in ("refuses it: -ep", "--max-model-len 16", "Not understood: --frobnicate", "without CUDA graphs"):
        assert sum(part in line for line in caveats) == 1, caveats
    assert payload["better"] == "a"
    run(["compare", str(plan), other])
    assert "Of B, before its figures" in capsys.readouterr().out


def test_a_model_that_is_planned_as_another_release_is_the_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    served = "deepseek-ai/DeepSeek-R1-0528"
    assert run(["import", f"vllm serve {served} -tp 8", "--hardware", "1x8:h200-sxm"]) == 0
    report = " ".join(capsys.readouterr().out.splitlines()[1:3])
    assert (
        report[: report.index("known") + 5]
        == f"Assumed: '{served}' is planned with the layers of DeepSeek-R1, the release that is known"
    )
