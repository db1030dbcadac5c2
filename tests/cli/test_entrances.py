"""No entrance fails by what comes in: a document that cannot be is answered, or refused in one line with its place."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

from . import entrances
from .entrances import DOCUMENTS, VALUES, Entrance

ENTRANCES = entrances.entrances()
# What an entrance is tried with here; `benchmarks` tries all of it.
TRIED = ("half a character", "half a character in a key", "300 levels", "100,000 levels", "5,000 digits", "1e999")
TRIED_ONCE = ("NaN", "a key twice", "not UTF-8", "a NUL byte")
# A document of these commands is small, and sound they would search, or ask.
SMALL = [name for name in ENTRANCES if not name.startswith(("chat", "eval", "sweep", "search", "settings", "session"))]


def said(entrance: Entrance, data: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of the command line, and what it says on standard error."""
    path = folder / entrance.name
    path.write_bytes(data)
    plan = folder / "sound.json"
    plan.write_text(entrances.plan_text(), encoding="utf-8")
    words = {"FILE": str(path), "PLAN": str(plan), "TEXT": os.fsdecode(data), "OUT": str(folder / "out.json")}
    words |= {"OUT2": str(folder / "certificate.json"), "CASES": str(folder / "sound-cases.json")}
    status = run([words.get(one, one) for one in entrance.arguments])
    return status, capsys.readouterr().err


def check(name: str, fault: str, document: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entrance = ENTRANCES[name]
    data = document.encode().replace(entrances.MARK.encode(), VALUES[fault])
    if "TEXT" in entrance.arguments:
        if b"\0" in data or len(data) > 100_000:  # no argument can be so
            return
        data = data.replace(rb"\ud800", b"\xed\xa0\x80")
    status, error = said(entrance, data, folder, capsys)
    assert status in (0, 1, 2), (name, fault)
    assert error.count("\n") <= 1, (name, fault, error)
    assert status != 2 or error.startswith("shardwright"), (name, fault, error)


@pytest.mark.parametrize("name", SMALL)
def test_no_value_that_json_cannot_carry_ends_in_a_traceback(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at, fault in enumerate((*TRIED, *TRIED_ONCE)):
        documents = ENTRANCES[name].documents
        # Each value at one place of several, each time another.
        check(name, fault, documents[at % len(documents)], tmp_path, capsys)


@pytest.mark.parametrize("name", [name for name in SMALL if "FILE" in ENTRANCES[name].arguments])
@pytest.mark.parametrize("kind", ["empty", "NULs", "UTF-16", "cut"])
def test_no_broken_file_ends_in_a_traceback(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entrance = ENTRANCES[name]
    sound = entrance.documents[0].encode().replace(entrances.MARK.encode(), b'"x"')
    status, error = said(entrance, DOCUMENTS[kind](sound), tmp_path, capsys)
    assert status in (0, 1, 2) and error.count("\n") <= 1


@pytest.mark.parametrize("place", entrances.PLAN_PLACES, ids=lambda place: "/".join(map(str, place)))
def test_half_a_character_in_a_plan_is_a_finding_with_its_place(
    place: tuple[str | int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(entrances.marked(entrances.plan_document(), *place).replace(entrances.MARK, r'"\ud800"'))
    assert run(["validate", str(path)]) == 1
    assert "ST001" in (told := capsys.readouterr().out) and "half a character" in told
    assert "/".join(map(str, place)) in told
    assert run(["estimate", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


COMMAND = "from shardwright.agent.cli import main; raise SystemExit(main())"
FILES = [name for name in ENTRANCES if "FILE" in ENTRANCES[name].arguments]


@pytest.mark.parametrize("name", [name for name in FILES if name != "session" and "journal" not in name])
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entrance = ENTRANCES[name]
    place = tmp_path / entrance.name
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        place.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            here = Path.cwd()
            os.chdir(tmp_path)
            server.bind(entrance.name)
            os.chdir(here)
    plan = tmp_path / "sound.json"
    plan.write_text(entrances.plan_text(), encoding="utf-8")
    (tmp_path / "sound-cases.json").write_text(json.dumps({"request": entrances.WORDS}), encoding="utf-8")
    words = {"FILE": str(place), "PLAN": str(plan), "CASES": str(tmp_path / "sound-cases.json")}
    words |= {"OUT": str(tmp_path / "out.json"), "OUT2": str(tmp_path / "certificate.json")}
    assert run([words.get(one, one) for one in entrance.arguments]) == 2
    # `eval` says before what the cases lack.
    *_, error = capsys.readouterr().err.splitlines()
    assert entrance.name in error


@pytest.mark.parametrize("place", ["/dev/stdin", "-"])
def test_standard_input_is_read_by_its_names(place: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "validate", place],
        input=entrances.plan_text(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stream_that_never_ends_is_refused_at_its_bound() -> None:
    with Path("/dev/zero").open("rb") as zeros:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "plan", "--brief", "-"],
            stdin=zeros, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2 and "larger than" in done.stderr and done.stderr.count("\n") == 1
