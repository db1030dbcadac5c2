"""`plan`: from words, briefs and options to a document on disk, a report, or a clear no."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.cli.asking import said_of_options

REQUEST = "Serve Llama-3.1-8B on 2 H100, 2k in / 256 out, lowest latency"
INFEASIBLE = "Serve Qwen3-14B in bf16 on one RTX 4090"


def stdin_of(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def planned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The JSON result of a plan that must succeed."""
    assert run(["plan", *arguments, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


@pytest.mark.parametrize(
    "text", [f"- {REQUEST}", "- Llama-3.1-8B\n- 2 H100", "---\nLlama-3.1-8B on 2 H100", f"-{REQUEST}"]
)
def test_words_may_begin_with_a_dash(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned([text], capsys)["plan"]["hardware"]["gpus_per_node"] == 2


def test_a_plan_is_written_whole_and_validate_accepts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    assert run(["plan", REQUEST, "-o", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Valid plan: meta-llama/Llama-3.1-8B on 1 node × 2 h100-sxm")
    assert f"shardwright validate {path}" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]
    assert run(["validate", str(path)]) == 0


def test_the_report_is_whole_with_full_and_else_says_what_that_adds(capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = (capsys.readouterr().out for options in ([], ["--full"]) if run(["plan", REQUEST, *options]) == 0)
    assert len(short.splitlines()) < len(whole.splitlines()) * 2 / 3
    assert short.split("\n\n")[0] == whole.split("\n\n")[0]
    assert "--full adds" in short and "--full" not in whole
    for part in ("from the words", "Energy of an output token", "largest costs of decode", "\n  → "):
        assert (part in whole, part in short) == (True, False)


def test_the_json_result_has_the_keys_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    result = planned([REQUEST], capsys)
    assert set(result) == {"plan", "valid", "estimate", "report"}
    assert set(result["report"]) >= {
        "proposer", "rounds", "fixes", "violations_seen", "alternatives", "explanation", "citations", "assumptions",
    }  # fmt: skip
    assert result["plan"]["format"] == "shardwright/plan"
    assert result["valid"] is True


def test_unquoted_words_are_the_request_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(REQUEST.split(" "), capsys)["plan"] == planned([REQUEST], capsys)["plan"]


def test_a_dash_reads_the_request_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin_of(monkeypatch, REQUEST + "\n")
    assert planned(["-"], capsys)["plan"]["model"]["name"] == "meta-llama/Llama-3.1-8B"


def test_options_alone_are_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--model llama-3.1-8b --hardware 1x2:h100 --input-tokens 4k --output-tokens 1,000 --concurrency 8 "
        "--ttft-ms 2000 --tpot-ms 50 --objective throughput --precision fp8 --kv-precision fp8 "
        "--activation-precision bf16 --relax vocab_parallel --usd-per-gpu-hour 2"
    )
    result = planned(arguments.split(), capsys)
    plan = result["plan"]
    assert plan["hardware"] == {"accelerator": "h100-sxm", "nodes": 1, "gpus_per_node": 2}
    assert plan["workload"]["input_tokens"] == 4096
    assert plan["workload"]["output_tokens"] == 1000
    assert plan["workload"]["concurrency"] == 8
    assert plan["workload"]["ttft_ms_max"] == 2000
    assert plan["workload"]["tpot_ms_max"] == 50
    assert plan["workload"]["objective"] == "throughput"
    assert plan["precision"] == {"weights": "fp8", "kv_cache": "fp8", "activations": "bf16"}
    assert plan["policy"]["relaxations"] == ["vocab_parallel"]
    assert result["estimate"]["cost"]["unit"] == "usd"


def test_an_option_wins_over_the_words_and_the_report_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    result = planned([REQUEST, "--input-tokens", "1024"], capsys)
    assert result["plan"]["workload"]["input_tokens"] == 1024
    assert any("1024 replaces 2048" in reading for reading in result["report"]["readings"])


def test_every_option_s_value_is_named_by_the_option_it_came_from() -> None:
    said = said_of_options({"input_tokens": 4096, "precision": "fp8", "relax": ("attention_dp", "attention_dp")})
    assert said.words["input_tokens"] == "--input-tokens 4096"
    assert said.words["weights"] == "--precision fp8"
    assert said.relaxations == ("attention_dp",)


def test_a_model_of_one_s_own_is_planned_from_its_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ..plan.tiny import MOE

    path = tmp_path / "config.json"
    path.write_text(json.dumps(MOE))
    hardware = ["--hardware", "1x4:h100-sxm", "--input-tokens", "512", "--output-tokens", "64"]
    by_path = planned(["--model", str(path), *hardware], capsys)["plan"]
    inline = planned(["--model", json.dumps(MOE), *hardware], capsys)["plan"]
    assert by_path["strategy"] == inline["strategy"]
    assert by_path["model"]["config"]["num_experts"] == 16


def test_a_brief_is_planned_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "brief.md"
    path.write_text(
        "# Deployment\n\n- Model: Llama-3.1-8B\n- Hardware: 2 H100\n- Input: 2048 tokens, output: 256 tokens\n"
    )
    result = planned(["--brief", str(path)], capsys)
    assert result["plan"]["model"]["name"] == "meta-llama/Llama-3.1-8B"
    assert result["plan"]["workload"]["input_tokens"] == 2048


def test_a_brief_may_come_on_standard_input() -> None:
    brief = "Model: Llama-3.1-8B\nHardware: 2 H100\n"
    program = Path(sys.executable).parent / "shardwright"
    command = [str(program), "plan", "--brief", "-", "--format", "json"]
    process = subprocess.run(command, input=brief, capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["plan"]["strategy"]["gpu_count"] <= 2


def test_an_infeasible_request_is_the_answer_no_and_writes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run(["plan", INFEASIBLE, "-o", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("Infeasible: ")
    assert "Least hardware that would do" in out
    assert err == ""
    assert not path.exists()


def test_the_json_of_an_infeasible_request_has_a_null_plan_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", INFEASIBLE, "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["plan"] is None
    assert result["valid"] is False
    assert set(result["infeasible"]) >= {"reason", "rule", "needs", "closest"}


@pytest.mark.parametrize(
    "request_text",
    ["what a nice day", "Serve Llama-9.9-70B on 8 H100", "Serve Llama-3.1-8B on 8 H1000", "", "   ", "\x1b[31m\x07"],
)
def test_nonsense_is_one_line_and_status_2(request_text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", request_text]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_a_folder_that_does_not_exist_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", REQUEST, "-o", str(tmp_path / "missing" / "plan.json")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "does not exist" in err
    assert err.count("\n") == 1


def test_a_plan_within_a_time_limit_says_first_what_was_not_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    apart = "Serve Llama-3.1-8B on 4 H100, 2k in / 256 out, 8 concurrent, disaggregated, best throughput"
    assert run(["plan", apart, "--time-limit", "1e-6"]) == 0
    head = capsys.readouterr().out.split("Layout")[0]
    assert "Valid plan" in head
    assert "The time limit was over (--time-limit): not looked at: some of the layouts" in " ".join(head.split())
    result = planned([apart, "--time-limit", "1e-6"], capsys)
    assert result["valid"] and result["report"]["left_out"]
    assert planned([apart], capsys)["report"]["left_out"] == []
