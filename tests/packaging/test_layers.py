"""Files of the package import each other without cycles, also for types and inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tools", "knowledge", "prompts", "agent")


def imported(path: Path) -> Iterator[Path]:
    """The files that `path` imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in node.names:
                places = (base / f"{name.name}.py", base / name.name / "__init__.py", base.with_suffix(".py"))
                yield next((place for place in places if place.is_file()), base / "__init__.py")


def circle(folder: Path) -> list[str]:
    """A cycle of imports among the files below `folder`; empty if there is none."""
    graph = {path: {*imported(path)} - {path} for part in FOLDERS for path in (folder / part).rglob("*.py")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [path.relative_to(folder).as_posix() for path in error.args[1]]
    return []


@pytest.mark.thorough
def test_no_file_is_imported_by_what_it_imports() -> None:
    assert circle(ROOT) == []


@pytest.mark.parametrize("way", ["{}", "if TYPE_CHECKING:\n    {}", "def late() -> None:\n    {}"])
def test_a_circle_is_seen_however_it_is_closed(tmp_path: Path, way: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "one.py").write_text("from .two import name\n")
    (tmp_path / "tools" / "two.py").write_text(way.format("from . import one") + "\n")
    assert {*circle(tmp_path)} == {"tools/one.py", "tools/two.py"}
