"""No entrance fails on its input: an impossible document is answered, or refused in one line with its place.

Tries cells of the table of entrances and hostile contents in this process; `benchmarks/attack.py entrances` tries all.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run

from ..attack.entrances import ENTRANCES, Ended, judge, prepared
from ..attack.honest_files import COMMAND, WRITTEN
from ..attack.hostile_files import HONEST, SPECIAL, hostile_contents
from ..attack.probe import Probe
from ..attack.seeds import seed_plan, seed_text

# In this process there is no other standard input, and files that only the command writes take long.
HERE = [name for name, entrance in ENTRANCES.items() if not entrance.by_stdin and entrance.base not in WRITTEN]
# With a sound file these would search long or ask a model; anything else they refuse at once.
LONG = ("chat", "eval", "sweep", "search", "settings", "calibrate", "plan brief md", "plan transcript", "plan output")
QUICK = [name for name in HERE if not name.startswith(LONG)]
# Entrances that read a file. A transcript is written, and only if a model is asked.
FILES = [name for name in HERE if "{file}" in ENTRANCES[name].arguments and name != "plan transcript"]
# Each entrance is tried with every n-th content, starting at another one.
STEP = 9
NO_FILES = ("a pipe", "a socket", "/dev/zero", "a folder", "a link to itself")
PLACES: tuple[tuple[str | int, ...], ...] = (
    ("model", "config", "own"), ("model", "config", "hidden_size"), ("model", "name"), ("hardware", "accelerator"),
    ("workload", "input_tokens"), ("reasoning", 0, "decision"), ("nodes", 1, "id"), ("nodes", 1, "own"),
    ("nodes", 1, "parent"), ("edges", 0, "source"), ("construction",), ("own",), ("nodes",), ("strategy", "dp"),
    ("policy", "relaxations"), ("version",),
)  # fmt: skip


class Gate:
    """Calls in a folder, judged as the processes of the attack are."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._capsys, self._monkeypatch = folder, capsys, monkeypatch

    def ended(self, name: str, content: str) -> Ended | None:
        """The outcome of calling the entrance with `content`; `None` if that content cannot be an argument."""
        place = self._folder / content.replace("/", "")
        place.mkdir()
        call = prepared(ENTRANCES[name], content, place, random.Random(f"{name} < {content}"))
        if call is None:
            return None
        arguments, environment, _ = call
        for variable, value in environment.items():
            self._monkeypatch.setenv(variable, value)
        status = run(arguments)
        out, error = self._capsys.readouterr()
        return Ended(status, out.encode(errors="surrogatepass"), error)


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(tmp_path, capsys, monkeypatch)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("number", "name"), tuple(enumerate(QUICK)), ids=QUICK)
def test_a_hostile_file_is_answered_or_refused_in_one_line(number: int, name: str, gate: Gate) -> None:
    contents = [content for content in hostile_contents(ENTRANCES[name].is_json) if content not in (*SPECIAL, HONEST)]
    for content in contents[number % STEP :: STEP]:
        probe = Probe()
        if (ended := gate.ended(name, content)) is not None:
            judge(name, ENTRANCES[name], ended, probe, as_json=False)
        assert not probe.faults, content


def test_a_text_without_a_proposal_gets_no_certificate(gate: Gate) -> None:
    ended = gate.ended("fix", "NULs")
    assert ended is not None and ended.status == 1
    assert ended.err.count("\n") == 1 and "no certificate is written" in ended.err


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_refused_at_once(name: str, gate: Gate) -> None:
    # An output may be a device.
    for content in NO_FILES if name != "plan output" else ("a pipe", "a folder", "a link to itself"):
        ended = gate.ended(name, content)
        assert ended is not None and (ended.status, ended.err.count("\n")) == (2, 1), content
        assert ENTRANCES[name].file in ended.err


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "/".join(map(str, place)))
def test_half_a_character_in_a_plan_is_a_finding_with_its_place(
    place: tuple[str | int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, document = tmp_path / "plan.json", seed_plan("dense-tp2")
    holder: Any = document
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = "\ud800"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run(["validate", str(path)]) == 1
    assert "ST001" in (output := capsys.readouterr().out) and "half a character" in output
    assert "/".join(map(str, place)) in output
    assert run(["estimate", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_standard_input_is_read_by_its_own_name() -> None:
    process = subprocess.run(
        [*COMMAND, "validate", "/dev/stdin"],
        input=seed_text("dense-tp2"), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.thorough
def test_a_stream_that_never_ends_is_refused_at_its_bound() -> None:
    with Path("/dev/zero").open("rb") as zeros:
        process = subprocess.run(
            [*COMMAND, "plan", "--brief", "-"], stdin=zeros, capture_output=True, text=True, timeout=60, check=False
        )
    assert process.returncode == 2 and "larger than" in process.stderr and process.stderr.count("\n") == 1
