"""Every command that a page shows is run, or at least exists; false statements of a page are reported."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from shardwright.docs.make.not_run import commands, faults, wrong_call
from shardwright.docs.make.pages import page_paths, page_today
from shardwright.tools.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md"))
WRITTEN = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_does_not_run_says_why_and_names_commands_and_options_that_exist(path: Path) -> None:
    assert faults(path) == []


def test_check_runs_every_page_that_has_something_to_run() -> None:
    generated = runpy.run_path(str(ROOT / "check"))["GENERATED"]
    assert {*page_paths()} <= {*generated}
    assert len(page_paths()) > 20


def test_a_command_is_run_and_shows_what_it_prints_today(page: Path) -> None:
    page.write_text("```console\n$ echo one; \\\n    echo two\nyesterday's\n```\n", encoding="utf-8")
    assert page_today(page) == "```console\n$ echo one; \\\n    echo two\none\ntwo\n```\n"


def test_a_titled_block_is_a_file_for_the_commands_below_it_and_none_for_another_page(page: Path) -> None:
    page.write_text('```yaml title="a.yaml"\nkey: 1\n```\n\n```console\n$ cat a.yaml\n```\n', encoding="utf-8")
    assert page_today(page).endswith("$ cat a.yaml\nkey: 1\n```\n")
    page.write_text("```console\n$ ls\n```\n", encoding="utf-8")
    assert page_today(page) == "```console\n$ ls\ndocs\nexamples\n```\n"


def test_the_python_of_a_page_is_one_script_that_finds_the_files_of_its_commands(page: Path) -> None:
    text = (
        "```python\nvalue = 1\n```\n\n```console\n$ echo there > file.txt\n```\n\n"
        "```python\nassert value == 1 and open('file.txt').read() == 'there\\n'\n```\n"
    )
    page.write_text(text, encoding="utf-8")
    assert page_today(page) == text


def test_what_a_developer_has_configured_is_none_of_a_page_s_business(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_MODEL", "mine")
    page.write_text('```console\n$ echo "model: $SHARDWRIGHT_LLM_MODEL"\n```\n', encoding="utf-8")
    assert page_today(page).endswith("\nmodel:\n```\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```console\n$ echo lost >&2\n```\n", "echo lost >&2: lost"),
        ("```console\necho it\n```\n", "line 1: a console block begins with"),
        ("```console\n$ echo NOT the same as recorded\n```\n", "NOT the same as recorded"),
        ("```python\nassert False, 'no longer so'\n```\n", "AssertionError: no longer so"),
        ("<!-- generated: weather -->\n<!-- end generated -->\n", "nothing generates 'weather'"),
    ],
)
def test_what_cannot_be_shown_is_an_error_that_names_it(page: Path, text: str, why: str) -> None:
    page.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        page_today(page)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```bash\nshardwright doctor\n```\n", "needs a line '<!-- not run: WHY -->'"),
        ("<!-- not run: needs a GPU -->\n```bash\nshardwright measure --quickly\n```\n", "No such option"),
        ("<!-- not run: needs a GPU -->\n```bash\nA=b shardwright measures | head\n```\n", "no such command: measures"),
        ("<!-- not run: needs a model -->\n```python\nresult = (\n```\n", "does not compile"),
    ],
)
def test_what_is_not_run_and_cannot_be_right_is_found(page: Path, text: str, fault: str) -> None:
    page.write_text(text, encoding="utf-8")
    (reported,) = faults(page)
    assert reported.startswith("page.md, line ")
    assert fault in reported


def test_calls_are_read_out_of_a_shell_text() -> None:
    text = "export A=1\nX=2 .venv/bin/shardwright plan 'a | b' \\\n  --strict | head; echo shardwright\n"
    assert [*commands(text)] == [["plan", "a | b", "--strict"]]
    assert wrong_call(["plan", "a | b", "--strict"]) is None
