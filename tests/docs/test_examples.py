"""The scripts of `examples/` run as they are and print their results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ..plan_files import good_and_broken

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SARIF = json.loads((ROOT / "tests" / "cases" / "sarif_essentials.schema.json").read_text(encoding="utf-8"))


def run(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an example in `folder`."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a valid plan and a broken one."""
    return good_and_broken(tmp_path_factory.mktemp("plans"), "broken.json", "1x2:l40s")


def test_every_example_is_tried_here() -> None:
    tried = {"first_plan.py", "check_what_runs.py", "size_a_cluster.py", "validate_gate.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tried


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("first_plan.py", ("TTFT", "TPOT", "output tokens/s", "assumed: engine")),
        ("check_what_runs.py", ("B is", "For throughput", "vllm serve", "vllm bench serve")),
        ("size_a_cluster.py", ("l40s", "a100-80gb-sxm", "h100-sxm", "USD per million tokens")),
    ],
)
def test_an_example_runs_and_says(name: str, says: tuple[str, ...], tmp_path: Path) -> None:
    process = run(name, folder=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert [words for words in says if words not in process.stdout] == []


def test_a_command_that_its_engine_refuses_ends_the_check_with_1(tmp_path: Path) -> None:
    process = run("check_what_runs.py", "vllm serve meta-llama/Llama-3.1-8B -tp 3", folder=tmp_path)
    assert (process.returncode, process.stderr) == (1, "")
    assert "TP005" in process.stdout


@pytest.mark.parametrize(("names", "status"), [(("good.json",), 0), (("good.json", "broken.json"), 1)])
def test_the_gate_passes_valid_plans_alone_and_writes_one_run_of_sarif(
    names: tuple[str, ...], status: int, plans: Path, tmp_path: Path
) -> None:
    process = run("validate_gate.py", str(tmp_path / "out.sarif"), *names, folder=plans)
    assert (process.returncode, process.stderr) == (status, "")
    log = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(SARIF).iter_errors(log)] == []
    (sarif_run,) = log["runs"]
    assert [artifact["location"]["uri"] for artifact in sarif_run["artifacts"]] == [*names]
    places = [result["locations"][0]["physicalLocation"] for result in sarif_run["results"]]
    assert all(place["region"]["startLine"] >= 1 for place in places)
    assert {place["artifactLocation"]["uri"] for place in places} == {*names} - {"good.json"}
    assert ("GP001" in process.stdout) == bool(status)


@pytest.mark.parametrize(("name", "text"), [("absent.json", None), ("prose.json", "no plan")])
def test_the_gate_ends_with_2_at_a_file_that_it_cannot_read(name: str, text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    process = run("validate_gate.py", "out.sarif", name, folder=tmp_path)
    assert process.returncode == 2
    assert process.stderr.startswith("shardwright: ") and process.stderr.count("\n") == 1
