"""The files around the package (container, action, hooks, workflow, metadata) name what exists, and work."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import shardwright
from shardwright.docs.make.not_run import commands, wrong_call

from ..plan_files import good_and_broken

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
VERSION = re.compile(r"Programming Language :: Python :: (3\.\d+)")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a valid plan and a broken one, whose name has a blank."""
    return good_and_broken(tmp_path_factory.mktemp("plans"), "broken one.json", "1x1:l40s")


def test_the_workflow_runs_what_anybody_runs_on_every_python_that_is_named() -> None:
    job = WORKFLOW["jobs"]["test"]
    named = [match[1] for classifier in PROJECT["classifiers"] if (match := VERSION.fullmatch(classifier))]
    assert job["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert [step["run"] for step in job["steps"] if "run" in step] == ["PYTHON=python${{ matrix.python }} .ci/run"]
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_no_extra_is_promised_that_there_is_not() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"extras? `\[(\w+)\]`|shardwright\[(\w+)\]", text)
        assert {extra for pair in named for extra in pair if extra} <= set(PROJECT["optional-dependencies"]), page


def test_the_tools_of_the_pages_come_with_those_of_development() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(extras["docs"]) <= set(extras["dev"])


def test_the_container_runs_the_command_as_a_user_without_rights() -> None:
    last = DOCKERFILE.rsplit("\nFROM ", maxsplit=1)[1]
    assert re.search(r"^USER (?!0\b|root\b)\w+$", last, flags=re.MULTILINE)
    assert 'ENTRYPOINT ["shardwright"]' in last
    default = json.loads(last.rsplit("CMD ", maxsplit=1)[1])
    assert wrong_call(default) is None


def test_the_container_serves_nobody_without_a_token() -> None:
    default = json.loads(DOCKERFILE.rsplit("CMD ", maxsplit=1)[1])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHARDWRIGHT_")}
    command = [sys.executable, "-m", "shardwright", *default, "--port", "0"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 2
    assert "name a token" in process.stderr


def test_the_commands_in_the_container_s_head_exist() -> None:
    shown = re.sub(r"^#\s+docker run .*? shardwright (?=\S)", "shardwright ", DOCKERFILE, flags=re.MULTILINE)
    calls = [*commands("\n".join(line for line in shown.split("\n") if line.startswith("shardwright ")))]
    assert len(calls) >= 2
    assert [wrong_call(call) for call in calls] == [None] * len(calls)


def test_the_action_s_inputs_reach_its_script_as_variables_alone() -> None:
    steps = ACTION["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps)
    used = {name for step in steps for name in re.findall(r"inputs\.([\w-]+)", json.dumps(step))}
    assert used == set(ACTION["inputs"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("patterns", "status", "says"),
    [("good.json", 0, "1 of 1 plans"), ("*.json", 1, "GP001"), ("none/**/*.json", 0, "no plan matches")],
)
def test_the_action_s_check_is_a_gate(patterns: str, status: int, says: str, plans: Path, tmp_path: Path) -> None:
    (check,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "validate"]
    # The action installs to this folder; here this environment stands in for it.
    (tmp_path / "shardwright").symlink_to(Path(sysconfig.get_path("scripts")).parent)
    (tmp_path / "output").touch()
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(shardwright.__file__).parents[1]),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GATE": str(ROOT / "examples" / "validate_gate.py"),
        "PLANS": patterns,
        "SARIF": str(tmp_path / "out.sarif"),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]]
    gate = subprocess.run(command, cwd=plans, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (gate.returncode, gate.stderr) == (status, "")
    assert says in gate.stdout
    is_written = "no plan" not in says
    assert (tmp_path / "out.sarif").exists() == is_written
    assert ((tmp_path / "output").read_text() == f"sarif={tmp_path / 'out.sarif'}\n") == is_written


@pytest.mark.thorough
@pytest.mark.parametrize(("names", "status"), [(("good.json",), 0), (("broken one.json", "good.json"), 1)])
def test_the_hook_for_other_repositories_checks_every_file_that_it_is_given(
    names: tuple[str, ...], status: int, plans: Path
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    environment = {
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(shardwright.__file__).parents[1]),
    }
    command = [*shlex.split(hook["entry"]), *names]
    gate = subprocess.run(command, cwd=plans, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert gate.returncode == status, gate.stderr
    assert "Valid: good.json" in gate.stdout
    wanted = re.compile(hook["files"])
    assert [bool(wanted.search(name)) for name in ("plans/a.json", "x/chat.plan.json", "plan.json", "other.json")] == [
        True, True, True, False,
    ]  # fmt: skip


def test_the_hooks_of_this_repository_run_what_check_runs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [hook["entry"].split()[0] for hook in repository["hooks"]] == ["ruff", "ruff", "pyright"]
    assert repository["repo"] == "local"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_and_function_that_a_guide_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:tools|agent|knowledge|benchmarks|tests)/[\w/]+(?:\.\w{2,4}|/))(?::(\w+))?`", text)
    assert len(named) > 20 or page != "ARCHITECTURE.md"
    for path, name in named:
        assert (ROOT / path).exists(), path
        assert not name or re.search(rf"^\s*(?:def|class) {name}\b", (ROOT / path).read_text("utf-8"), re.MULTILINE), (
            f"{path}:{name}"
        )
