"""`-` is standard input wherever a file is read, for at most one argument or option of a call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

ASKED = "Llama-3.1-8B on 2 H100"
SHARED = {
    "request and mix": ["plan", "-", "--mix", "-"],
    "request and calibration": ["search", "-", "--calibration", "-"],
    "request and brief": ["plan", "-", "--brief", "-"],
    "brief twice": ["plan", "--brief", "-", "--brief", "-"],
    "mix and calibration": ["plan", ASKED, "--mix", "-", "--calibration", "-"],
    "document and calibration": ["estimate", "-", "--calibration", "-"],
    "both documents": ["compare", "-", "-"],
    "sweep and calibration": ["sweep", "-", "--calibration", "-"],
    "baseline and calibration": ["eval", "--baseline", "-", "--calibration", "-"],
    "turns and brief": ["chat", "--brief", "-"],
}


@pytest.mark.parametrize("command", SHARED.values(), ids=SHARED.keys())
def test_two_readers_of_standard_input_are_refused_in_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "standard input can be" in err and "not both" in err


KINDS = '[{"name": "a", "weight": 1, "input_tokens": 9, "output_tokens": 9}]'
READ = {
    "mix": (["plan", ASKED, "--mix", "-"], KINDS, 0, "1 kinds of requests"),
    "calibration": (["plan", ASKED, "--calibration", "-"], '{"name": "mine"}', 2, "it has no constants"),
    "baseline": (["eval", "--baseline", "-", "--solver", "builtin"], "{}", 2, "is no report of an evaluation"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "said", "status", "shown"), READ.values(), ids=READ.keys())
def test_standard_input_is_read_where_a_file_is_named(command: list[str], said: str, status: int, shown: str) -> None:
    program = Path(sys.executable).parent / "shardwright"
    process = subprocess.run(
        [str(program), *command], input=said, capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == status
    assert shown in process.stdout + process.stderr
