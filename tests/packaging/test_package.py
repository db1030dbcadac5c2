"""The wheel is a complete, silent and light import package, and no file of the tree names a path of a machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {
    ".git",
    "__pycache__",
    "build",
    "dist",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".import_linter_cache",
}
SOURCES = ("agent", "knowledge", "prompts", "tools")


def ignored(folder: str, names: list[str]) -> set[str]:
    """Names of the generated files, which a copy of the tree leaves out."""
    return {name for name in names if name in GENERATED or name.startswith(".venv") or name.endswith(".egg-info")}


def tree_files() -> Iterator[Path]:
    """Every file of the project that is not generated."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - ignored(folder, folders))
        yield from (Path(folder, name) for name in sorted(set(names) - ignored(folder, names)))


def built_wheel(folder: Path) -> Path:
    """A wheel in `folder` that was built from a clean copy of the tree, without a network."""
    shutil.copytree(ROOT, folder / "tree", ignore=ignored)
    (folder / "out").mkdir()
    code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    process = subprocess.run(
        [sys.executable, "-c", code, str(folder / "out")],
        cwd=folder / "tree",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    (wheel,) = (folder / "out").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel."""
    return set(zipfile.ZipFile(built_wheel(tmp_path_factory.mktemp("wheel"))).namelist())


def test_the_list_of_packages_is_whole() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    present = {"shardwright"} | {
        ".".join(("shardwright", *path.parent.relative_to(ROOT).parts))
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert listed == present


def test_every_package_has_an_init_file() -> None:
    folders = {path.parent for source in SOURCES for path in (ROOT / source).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_a_wheel_holds_one_top_level_package_and_the_whole_of_it(wheel_names: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"shardwright"}
    sources = {
        f"shardwright/{path.relative_to(ROOT).as_posix()}"
        for path in tree_files()
        if path.relative_to(ROOT).parts[0] in SOURCES or path.name == "py.typed" or path == ROOT / "__init__.py"
    }
    assert sources - wheel_names == set()


def test_a_wheel_holds_no_test_and_no_script_of_the_repository(wheel_names: set[str]) -> None:
    inside = {name.split("/")[1] for name in wheel_names if name.startswith("shardwright/")}
    assert inside <= {"__init__.py", "__main__.py", "py.typed", *SOURCES}


def python(code: str, cwd: Path) -> str:
    """Standard output and error of `code` in a fresh interpreter, which must succeed."""
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == 0, process.stderr
    return process.stdout + process.stderr


def test_the_command_runs_as_a_module_too() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "shardwright", "--version"], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert run.stdout.startswith("shardwright ")


def test_importing_is_silent_and_loads_no_heavy_library(tmp_path: Path) -> None:
    heavy = {"openai", "networkx", "jsonschema", "pydantic", "rich", "click", "yaml", "numpy"}
    assert python("import shardwright", tmp_path) == ""
    loaded = python(f"import sys, shardwright; print(sorted({heavy!r} & set(sys.modules)))", tmp_path)
    assert loaded == "[]\n"


def test_every_public_name_can_be_had_and_an_unknown_one_is_an_attribute_error(tmp_path: Path) -> None:
    code = (
        "import shardwright as s\n"
        "for name in s.__all__: assert getattr(s, name) is not None and name in dir(s), name\n"
        "try: s.nonsense\n"
        "except AttributeError as error: print(error)\n"
    )
    assert python(code, tmp_path) == "module 'shardwright' has no attribute 'nonsense'\n"


def test_folders_of_the_user_s_own_do_no_harm(tmp_path: Path) -> None:
    for name in ("tools", "agent", "knowledge", "prompts", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not mine')\n")
    used = "import shardwright; print(shardwright.Plan.__name__, shardwright.InputError.__name__)"
    assert python(used, tmp_path) == "Plan InputError\n"
    program = Path(sys.executable).parent / "shardwright"
    process = subprocess.run(
        [str(program), "schema"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert (process.returncode, process.stderr) == (0, "")


# Written in parts, so that this file does not match itself.
MACHINE_PATHS = re.compile(
    "|".join(rf"(?<![\w.]){re.escape(start)}/" for start in ("/" + "work", "/" + "farm", "/" + "home", "/" + "root"))
    + "|/tmp/" + "(?:venv|tasks|bash_jobs)"
    + "|" + re.escape("../" + "shared")
)  # fmt: skip


def test_no_file_of_the_tree_names_a_place_on_a_machine() -> None:
    matches: list[str] = []
    for path in tree_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image or an archive
        matches += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATHS.finditer(text)]
    assert matches == []


def test_the_guard_against_machine_paths_sees_one() -> None:
    assert MACHINE_PATHS.search("see " + "/" + "home/me/plan.json")
    assert not MACHINE_PATHS.search("GET https://example.org/home/x and tools/work/x")
