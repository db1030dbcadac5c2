"""`--mix`: one plan for several kinds of requests, the same from the command line and from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.agent.mix import kinds_of
from shardwright.tools.errors import InputError

KINDS: list[dict[str, Any]] = [
    {"name": "chat", "weight": 3, "input_tokens": 1024, "output_tokens": 128, "tpot_ms_max": 40},
    {"name": "documents", "weight": 1, "input_tokens": 6000, "output_tokens": 256},
]
ASKED = ["Llama-3.1-8B on 2 H100, 16 concurrent, best throughput"]


def kinds_file(folder: Path, kinds: Any = KINDS, name: str = "kinds.json") -> str:
    """A file with the kinds."""
    path = folder / name
    path.write_text(json.dumps(kinds), encoding="utf-8")
    return str(path)


def test_plan_writes_one_valid_plan_for_all_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.json"
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path), "-o", str(target)]) == 0
    report = capsys.readouterr().out
    assert "2 kinds of requests" in report and "documents" in report and str(target) in report
    assert shardwright.validate(target).valid
    # The kind with the longest requests needs most memory.
    assert json.loads(target.read_text(encoding="utf-8"))["workload"]["input_tokens"] == 6000


def test_search_and_python_give_the_same_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *ASKED, "--mix", kinds_file(tmp_path), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == shardwright.plan_mix(*ASKED, workloads=KINDS).model_dump(mode="json")
    best = printed["candidates"][0]
    assert set(best["parts"]) == {"chat", "documents"}
    assert best["parts"]["chat"]["tpot_ms"] <= 40


def test_a_limit_that_one_kind_cannot_hold_is_a_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strict = [KINDS[0], {**KINDS[1], "ttft_ms_max": 1}]
    target = tmp_path / "plan.json"
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path, strict), "-o", str(target)]) == 1
    assert "documents: PE010: TTFT" in " ".join(capsys.readouterr().out.split())
    assert not target.exists()


def test_lengths_are_written_as_on_the_command_line() -> None:
    kinds = kinds_of([{**KINDS[0], "input_tokens": "1k", "output_tokens": "2,048"}])
    assert (kinds.workloads[0].input_tokens, kinds.workloads[0].output_tokens) == (1024, 2048)


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ([], "workloads"),
        ([{"name": "chat", "weight": 1}], "input_tokens"),
        ([{**KINDS[0], "weight": -1}], "weight"),
        ([{**KINDS[0], "input_tokens": "a few"}], "input_tokens"),
        ([{**KINDS[0], "input_tokens": "1.5"}], "input_tokens"),
        ([{**KINDS[0], "colour": "red"}], "colour"),
    ],
)
def test_kinds_that_are_none_are_refused_in_one_line(
    kinds: Any, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *ASKED, "--mix", kinds_file(tmp_path, kinds)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err


def test_a_mix_without_stated_hardware_is_refused() -> None:
    with pytest.raises(InputError, match="stated hardware"):
        shardwright.plan_mix("Llama-3.1-8B, best throughput", workloads=KINDS)
