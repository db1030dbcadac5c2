"""Whatever ends a process: a failed write is reported in one line, an interrupt with status 130 and one line.

Runs a part of the tables with real processes; `benchmarks/ends.py` runs all of them.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

from .ends import (
    CALLS,
    HELPS,
    PLACES,
    TROUBLES,
    Ended,
    ended,
    fault,
    misplaced,
    prepared,
    written,
)
from .ends import WRITERS as ALL_WRITERS
from .interrupts import disturbed, interrupted

BY_NAME = {call.name: call for call in (*CALLS, *HELPS)}
TROUBLE = {trouble.name: trouble for trouble in TROUBLES}
# Calls that print by click or by us, that read, or that store: each with the troubles that concern it.
PAIRS = [
    *(("--version", name) for name in TROUBLE),
    *(("plan --help", name) for name in ("stdout full", "stdout without a reader")),
    *(("completion", name) for name in ("stdout closed", "all closed")),
    *(("an unknown option", name) for name in ("stderr closed", "stderr full")),
    *(("validate -", name) for name in ("stdin closed", "stdin not for reading")),
    *(("chat", name) for name in ("stdin closed", "stdout full")),
    *((name, "a folder that was deleted") for name in ("fix", "plan --mix")),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("ends"))


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    """A folder with links to the prepared files, which calls only read."""
    for path in base.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


@cache
def usual(name: str, base: Path) -> Ended:
    """The outcome of the call without trouble."""
    return ended(BY_NAME[name], base)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "trouble"), PAIRS, ids=[" × ".join(pair) for pair in PAIRS])
def test_a_process_in_trouble_says_so_in_one_line_or_does_its_work(
    name: str, trouble: str, base: Path, folder: Path
) -> None:
    outcome = ended(BY_NAME[name], folder, TROUBLE[trouble])
    assert fault(BY_NAME[name], usual(name, base), TROUBLE[trouble], outcome) is None


WRITERS = {writer.name: (writer, ending) for writer, ending in ALL_WRITERS}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sweep -o", "eval --journal"])
def test_on_a_full_disk_nothing_is_lost_in_silence(name: str, folder: Path) -> None:
    writer, ending = WRITERS[name]
    outcome = written(writer, folder, ending, "a full disk")
    assert misplaced(outcome, outcome, is_refused=True) is None
    assert "cannot be" in outcome.err


@pytest.mark.parametrize("place", [name for name in PLACES if name != "a full disk"])
def test_a_place_that_cannot_be_written_is_refused_and_the_report_is_shown(
    place: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    make, is_refused = PLACES[place]
    make(folder / "place")
    status = run(["fix", "plan.json", "-o", "place"])
    out, err = capsys.readouterr()
    assert (status, err.count("\n")) == ((2, 1) if is_refused else (0, 0))
    assert "Traceback" not in err
    # An error at the time of writing does not cost the report.
    assert bool(out) == (not is_refused or "cannot be written" in err)


SAME = [
    (["plan", "--brief", "brief.md", "-o", "brief.md"], "is read here"),
    (["plan", "x", "--mix", "mix.yaml", "-o", "./mix.yaml"], "is read here"),
    (["plan", "x", "-o", "new", "--transcript", "./new"], "name one file"),
    (["search", "--brief", "brief.svg", "--plot", "brief.svg"], "is read here"),
    (["fix", "plan.json", "--certificate", "plan.json"], "is read here"),
    (["fix", "plan.json", "-o", "new", "--certificate", "new"], "name one file"),
    (["eval", "cases.jsonl", "-o", "cases.jsonl"], "is read here"),
    (["eval", "cases.jsonl", "-o", "new", "--journal", "new"], "name one file"),
    (["eval", "cases.jsonl", "--html", "new", "--junit", "new"], "name one file"),
    (["fidelity", "measured.csv", "-o", "measured.csv"], "is read here"),
    (["calibrate", "measured.csv", "-o", "measured.csv"], "is read here"),
]


@pytest.mark.parametrize(
    ("arguments", "said"), SAME, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_no_output_replaces_what_is_read_or_another_output(
    arguments: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "brief.svg").write_text("Llama-3.1-8B on 2 H100")
    monkeypatch.chdir(folder)
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "after_s"), [("--version", 0.0), ("--version", 0.03), ("validate", 0.1), ("validate", 0.4)]
)
def test_an_interrupt_at_any_moment_is_130_or_nothing(name: str, after_s: float, base: Path, folder: Path) -> None:
    assert disturbed(usual(name, base), interrupted(BY_NAME[name], folder, after_s)) is None


BEGIN = """
import signal, sys, time
from shardwright.agent.cli import process
process.begin()
interrupt = lambda: signal.raise_signal(signal.SIGINT)
"""
# An interrupt in a serializer, a finalizer or an import, whose errors are replaced or dropped.
LOST = {
    "a serializer": """
from pydantic import BaseModel, model_serializer
class Model(BaseModel):
    @model_serializer
    def dump(self):
        interrupt()
try:
    Model().model_dump()
except Exception:
    pass
""",
    "a finalizer": """
class Dying:
    def __del__(self):
        interrupt()
        time.sleep(0)
Dying()
""",
    "the report of a finalizer": """
class Dying:
    def __del__(self):
        interrupt()
        time.sleep(0)
def once_more(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "on_unraisable":
        sys.setprofile(None)
        interrupt()
sys.setprofile(once_more)
Dying()
""",
    "an import": """
import pathlib, tempfile
with tempfile.TemporaryDirectory() as folder:
    odd = ("try:", "    __import__('__main__').interrupt()", "except BaseException:", "    pass")
    pathlib.Path(folder, "odd.py").write_text(chr(10).join(odd))
    sys.path.insert(0, folder)
    import odd
""",
}


def said_by(code: str) -> str:
    """Standard output and standard error of a process that runs `code`."""
    command = [sys.executable, "-c", BEGIN + code]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return completed.stdout + completed.stderr


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.strip().splitlines())


@pytest.mark.parametrize("where", LOST)
def test_an_interrupt_that_is_lost_comes_again(where: str) -> None:
    waits = "    for _ in range(3000): time.sleep(0.01)\n"
    code = f"try:\n{indented(LOST[where])}{waits}except KeyboardInterrupt:\n    process.end(); print('interrupted')\n"
    assert said_by(code) == "interrupted\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_to_be_told_to_end_is_an_interrupt_after_which_nothing_goes_on(name: str) -> None:
    last = "process.end(); print('interrupted', process.interrupts.is_last)"
    code = f"try:\n    signal.raise_signal(signal.{name}); time.sleep(60)\nexcept KeyboardInterrupt:\n    {last}\n"
    assert said_by(code) == "interrupted True\n"


def test_an_interrupt_that_is_being_handled_does_not_come_again() -> None:
    cleaning = "    for _ in range(10): time.sleep(0.01)\n    print('cleaned')\n"
    code = (
        f"try:\n  try:\n    interrupt()\n  finally:\n{cleaning}except KeyboardInterrupt:\n{cleaning}    process.end()\n"
    )
    assert said_by(code) == "cleaned\ncleaned\n"
