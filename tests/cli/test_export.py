"""`export`: the script on standard output or in a file, the refusal with its exit status, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.errors import InputError
from shardwright.tools.input.files import write_folder

from ..export.plans import plan_named


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_named("groups of two").model_dump_json())
    return path


def test_the_script_is_printed(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(plan), "--to", "vllm"]) == 0
    text, err = capsys.readouterr()
    assert err == "" and text.startswith("#!/usr/bin/env bash\n# vLLM 0.33.0: EP8 × attention-DP4 × TP2 of ")
    assert "--data-parallel-size 4" in text


def test_a_file_has_the_script_and_the_report_says_what_to_see_to(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "launch.sh"
    assert run(["export", str(plan), "--to", "sglang", "-o", str(script)]) == 0
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    text = capsys.readouterr().out
    assert text.startswith(f"Exported: {plan}") and "What the engine does by itself" in text


def test_a_refusal_is_status_1_with_reason_and_nearest_and_writes_no_file(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "launch.sh"
    assert run(["export", str(plan), "--to", "trtllm", "-o", str(script)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("Not exported: TensorRT-LLM 1.2.1 cannot run") and "EN006" in text
    assert "The nearest that it can run" in text and not script.exists()


def test_json_is_the_result_and_nothing_else(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(plan), "--to", "vllm", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["engine_version"] == "0.33.0" and payload["launches"][0]["arguments"][:2] == ["vllm", "serve"]


def test_an_unknown_target_is_status_2(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(plan), "--to", "helm"]) == 2
    assert "one of vllm, sglang, trtllm" in capsys.readouterr().err


def test_traces_are_a_new_folder_and_the_report_counts_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(plan_named("experts cut").model_dump_json())
    folder = tmp_path / "traces"
    assert run(["export", str(plan), "--to", "chakra", "-o", str(folder)]) == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert (folder / "README.txt") in files and (folder / "prefill" / "trace.3.et") in files
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"Exported: {plan}") and f"as {len(files)} files of Chakra 0.0.4" in text


@pytest.mark.parametrize("place", [None, "-", "plan.json", "no/where"])
def test_traces_need_a_new_folder(
    place: str | None, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = [] if place is None else ["-o", place if place == "-" else str(tmp_path / place)]
    assert run(["export", str(plan), "--to", "chakra", *output]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and list(tmp_path.iterdir()) == [plan]


def test_traces_of_a_broken_plan_are_refused_and_no_folder_appears(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "edges": []}))
    assert run(["export", str(plan), "--to", "chakra", "-o", str(tmp_path / "traces")]) == 1
    assert capsys.readouterr().out.startswith("Not exported: Chakra") and list(tmp_path.iterdir()) == [plan]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_folder(tmp_path / "new", {"a": b"1", "a/b": b"a file is in its way"})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    write_folder(tmp_path / "new", {"a/b": b"1"})
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("b")] == ["new/a/b"]
