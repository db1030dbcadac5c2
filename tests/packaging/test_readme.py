"""The commands and scripts of README run, and it stays short."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import shardwright

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
WITH_A_MODEL = ROOT / "docs" / "tutorial" / "with-a-model.md"
MOST_LINES = 150


def blocks(language: str, page: Path = README) -> list[str]:
    """The fenced blocks of a page in `language`."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_it_can_be_read_in_one_go() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_link_leads_to_a_file_of_the_repository() -> None:
    links = re.findall(r"\]\(([^)#\s:]+)", README.read_text(encoding="utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_first_command_installs_and_plans_and_the_second_installs_and_tests() -> None:
    first, second, *_ = blocks("bash")
    assert "pip install ." in first
    assert "shardwright plan" in first
    assert "pip install -e" in second
    assert second.rstrip().endswith("pytest")


@pytest.mark.parametrize("tool", ["plan", "validate"])
def test_the_tour_shows_the_output_of(tool: str) -> None:
    shown = [block for block in blocks("console") if f"shardwright {tool} " in block.split("\n", maxsplit=1)[0]]
    assert shown
    assert all(len(block.strip().split("\n")) > 1 for block in shown)


@pytest.mark.thorough
def test_the_example_in_python_runs_as_it_stands(tmp_path: Path) -> None:
    (example,) = blocks("python")
    program = Path(sys.executable).parent / "shardwright"
    # The plan.json that the tour's first command leaves behind.
    request = ["plan", "Serve Llama-3.1-70B on 8 H100", "-o", "plan.json"]
    subprocess.run([str(program), *request], cwd=tmp_path, capture_output=True, check=True)
    process = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize(("is_up", "status"), [(True, "accepted"), (False, "endpoint_failed")])
def test_the_client_of_one_s_own_plans_as_it_stands(is_up: bool, status: str, tmp_path: Path) -> None:
    (example,) = blocks("python", WITH_A_MODEL)
    asked: list[str] = []

    def my_model(words: str, timeout_s: float) -> str:
        asked.append(words)
        if not is_up:
            raise ConnectionRefusedError("nobody is there")
        assert 0 < timeout_s <= 60
        return '{"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}'

    (tmp_path / "own_client.py").write_text(example)
    variables = runpy.run_path(str(tmp_path / "own_client.py"), {"shardwright": shardwright, "my_model": my_model})
    result: shardwright.PlanResult = variables["result"]
    assert result.valid and result.report is not None and result.report.model_use is not None
    assert (result.report.model_use.model, result.report.model_use.status) == ("my-model", status)
    assert "Llama-3.1-8B" in asked[0]
