"""`./check new-rule` writes the stubs that a newcomer fills in, and overwrites nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PARTS = ("tools", "agent", "knowledge", "docs/make", "tests/cases/rules", "schema", "check", "__init__.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the parts of the project that a new rule touches."""
    root = tmp_path / "shardwright"
    for part in PARTS:
        source, target = ROOT / part, root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return root


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root.parent)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("of", [(), ("--degrees",)])
def test_a_new_rule_is_found_has_a_table_and_a_section(copy: Path, of: tuple[str, ...]) -> None:
    process = _run(copy, "check", "new-rule", "TP", "wide_group", *of)
    assert process.returncode == 0, process.stderr
    rule_id = process.stdout[:5]
    for place in ("tensor_parallelism.md", "broken_rules.json", "demos.py", "knowledge/11"):
        assert place in process.stdout
    script = (
        "from shardwright.tools.rules.registry import find_rule\n"
        "from shardwright.tools.plan.view import PlanView\n"
        "from shardwright.tools.rules.examples import base_plan\n"
        "from shardwright.knowledge.index import knowledge\n"
        f"rule = find_rule({rule_id!r})\n"
        "assert not list(rule.run(PlanView(base_plan('dense-tp2'))))\n"
        f"assert [s for s in knowledge().sections if {rule_id!r} in s.rules]\n"
        "print(rule.name, rule.module)"
    )
    read = _run(copy, "-c", script)
    assert read.stdout.split() == ["wide", "group", "shardwright.tools.rules.tensor_parallel.wide_group"], read.stderr
    stub = json.loads((copy / "agent" / "evaluation" / "cases" / "broken_rules.json").read_text(encoding="utf-8"))
    assert stub["cases"][-1]["rules"] == [rule_id]
    rows = json.loads((copy / "tests" / "cases" / "rules" / f"{rule_id}.json").read_text(encoding="utf-8"))
    assert all(row["expected"] == [rule_id] for row in rows)


@pytest.mark.parametrize(
    ("family", "name", "why"),
    [
        ("TP", "split_expert", "already"),
        ("TP", "split expert", "already"),
        ("XX", "wide_group", "no family 'XX'"),
        ("TP", "../evil", "no name of a file"),
    ],
)
def test_a_name_that_cannot_be_taken_is_refused_and_nothing_is_written(
    copy: Path, family: str, name: str, why: str
) -> None:
    def files() -> dict[Path, bytes]:
        return {
            path: path.read_bytes() for path in copy.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        }

    before = files()
    process = _run(copy, "check", "new-rule", family, name)
    assert process.returncode == 1 and why in process.stderr and not process.stdout
    assert files() == before


@pytest.mark.parametrize(
    ("printed", "why"),
    [("NOT the same as recorded", "echo NOT the same as recorded: NOT the same"), ("", "no section is about TP999")],
)
def test_what_cannot_be_generated_is_one_line_and_a_failure(copy: Path, printed: str, why: str) -> None:
    (copy / "README.md").write_text(f"```console\n$ echo {printed}\n```\n", encoding="utf-8")
    script = (
        "import runpy; run = runpy.run_path('check')\n"
        "from shardwright.knowledge.reader import KnowledgeError\n"
        "def fails(): raise KnowledgeError('no section is about TP999')\n"
        "files, readme = run['GENERATED'], run['README']\n"
        f"text = files[readme] if {printed!r} else fails\n"
        "files.clear(); files[readme] = text\n"
        "raise SystemExit(0 if run['write']() or run['check_generated']() else 3)"
    )
    process = _run(copy, "-c", script)
    assert process.returncode == 3 and "Traceback" not in process.stderr
    assert f"README.md cannot be made: {why}" in process.stderr
