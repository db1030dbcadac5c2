"""Every command in the skill for coding agents ends with the stated status, and every field that it names exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from shardwright.agent.importing.api import Imported
from shardwright.agent.results import PlanReport, PlanResult
from shardwright.tools.autofix.result import FixResult
from shardwright.tools.plan.performance import PerformanceEstimate

pytestmark = pytest.mark.thorough

SKILL = Path(__file__).resolve().parents[2] / "skills" / "shardwright" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
LINE = re.compile(r"(?P<command>.+?)(?:\s+# status (?P<status>\d))?")


def test_its_front_matter_says_what_it_is_and_when_to_use_it() -> None:
    head = yaml.safe_load(TEXT.split("---\n")[1])
    assert set(head) == {"name", "description"}
    assert head["name"] == SKILL.parent.name
    assert len(head["description"]) <= 1024 and "Use it" in head["description"]
    assert len(TEXT.splitlines()) < 120


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are written for a shell")
def test_every_command_ends_with_the_status_that_it_states(tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.strip().split("\n")]
    assert len(lines) > 10
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        match = LINE.fullmatch(line)
        assert match is not None
        process = subprocess.run(
            match["command"], shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert process.returncode == int(match["status"] or 0), (line, process.stderr)
        assert "Traceback" not in process.stderr


def test_the_fields_that_it_names_are_fields_of_answers() -> None:
    known = {*PlanResult.model_fields, *FixResult.model_fields, *Imported.model_fields}
    known |= set(PerformanceEstimate.model_fields)
    for name in ("infeasible", "fixes", "not_understood", "ranges", "benchmark"):
        assert f"`{name}`" in TEXT and name in known
    reported = re.findall(r"`report\.(\w+)`", TEXT)
    assert reported and set(reported) <= set(PlanReport.model_fields)
