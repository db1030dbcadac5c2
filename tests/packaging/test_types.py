"""A user's program passes strict type checkers against the installed package, and its mistakes do not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from .test_package import built_wheel

pytestmark = pytest.mark.thorough

SCRIPT = (Path(__file__).parent / "user_script.txt").read_text(encoding="utf-8")
REFUSED = {number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith("# refused")}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and an environment with the installed package and this environment's other packages."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "venv", with_pip=False)
    site = folder / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    zipfile.ZipFile(built_wheel(folder)).extractall(site)
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (folder / "program.py").write_text(SCRIPT, encoding="utf-8")
    return folder


def run(folder: Path, *command: str) -> str:
    """The output of a type checker for the program."""
    name, *arguments = command
    tool = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert tool is not None, f"{name} comes with the extra [dev]"
    process = subprocess.run([tool, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    return process.stdout + process.stderr


def test_mypy_strict_accepts_the_program_and_refuses_its_mistakes(program: Path) -> None:
    python = program / "venv" / "bin" / "python"
    output = run(program, "mypy", "--strict", "--no-error-summary", "--python-executable", str(python), "program.py")
    lines = re.findall(r"^program\.py:(\d+): error: .*$", output, re.MULTILINE)
    assert {int(line) for line in lines} == REFUSED, output


def test_pyright_strict_accepts_the_program_and_refuses_its_mistakes(program: Path) -> None:
    settings = {"typeCheckingMode": "strict", "venvPath": ".", "venv": "venv", "include": ["program.py"]}
    (program / "pyrightconfig.json").write_text(json.dumps(settings))
    output = run(program, "pyright", "--outputjson")
    issues = json.loads(output)["generalDiagnostics"]
    assert {issue["range"]["start"]["line"] + 1 for issue in issues if issue["severity"] == "error"} == REFUSED, output
