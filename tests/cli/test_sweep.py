"""`sweep`: from a file to a table, resumed, interrupted, refused."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run

from ..sweep.samples import TINY

pytestmark = pytest.mark.thorough

PROGRAM = Path(sys.executable).parent / "shardwright"


def sweep_file(folder: Path, content: dict[str, Any] = TINY) -> Path:
    path = folder / "sweep.json"
    path.write_text(json.dumps(content))
    return path


def test_a_sweep_writes_its_table_and_says_what_is_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    assert run(["sweep", str(sweep_file(tmp_path)), "-o", str(table), "--jobs", "1"]) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert text.startswith("4 cases: ")
    assert f"The table is in {table}" in text
    rows = list(csv.DictReader(table.open(newline="")))
    assert [row["model"] for row in rows] == ["tiny-dense", "tiny-dense", "tiny-moe", "tiny-moe"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.json", "table.csv", "table.csv.journal"]


def test_the_table_is_the_same_on_one_and_two_processes_and_when_it_is_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sweep_file(tmp_path)
    tables = [tmp_path / f"{jobs}.csv" for jobs in (1, 2)]
    for jobs, table in enumerate(tables, start=1):
        assert run(["sweep", str(path), "-o", str(table), "--jobs", str(jobs)]) == 0
    first = tables[0].read_bytes()
    assert tables[1].read_bytes() == first
    tables[0].unlink()
    capsys.readouterr()
    assert run(["sweep", str(path), "-o", str(tables[0]), "--jobs", "1"]) == 0
    assert "4 cases kept from an earlier run" in capsys.readouterr().out
    assert tables[0].read_bytes() == first


def test_a_changed_file_is_said_and_fresh_begins_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(tmp_path / "table.csv")
    run(["sweep", str(sweep_file(tmp_path, {**TINY, "hardware": TINY["hardware"][:1]})), "-o", table, "--jobs", "1"])
    capsys.readouterr()
    assert run(["sweep", str(sweep_file(tmp_path)), "-o", table, "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert "2 of its cases are kept" in err
    assert "2 cases kept" in out
    assert run(["sweep", str(sweep_file(tmp_path)), "-o", table, "--jobs", "1", "--fresh"]) == 0
    assert "kept" not in capsys.readouterr().out


def test_the_json_is_the_result_and_standard_input_may_be_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(TINY).encode())))
    assert run(["sweep", "-", "--jobs", "1", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["cases"] == len(payload["rows"]) == 4
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_without_any_plan_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {**TINY, "models": ["llama-3.1-405b"], "hardware": ["1x1:l4"]}
    assert run(["sweep", str(sweep_file(tmp_path, content)), "--jobs", "1"]) == 1
    assert "0 with a plan, 1 without (ME001 1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "table.txt"],
        ["-o", "missing/table.csv"],
        ["-o", "."],
        ["--plot", "picture.pdf"],
        ["--plot", "missing/picture.svg"],
        ["--jobs", "0"],
        ["--jobs", "2", "--ray"],
    ],
    ids=" ".join,
)
def test_a_call_that_cannot_end_well_is_refused_before_anything_runs(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    path = sweep_file(tmp_path)
    assert run(["sweep", str(path), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["sweep.json"]


def test_a_picture_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    assert run(["sweep", str(sweep_file(tmp_path)), "--jobs", "1", "--plot", str(picture)]) == 0
    assert "tiny-moe" in picture.read_text()


LONG = {
    **TINY,
    "hardware": [f"1x8:{card}" for card in ("h100-sxm", "h200-sxm", "a100-80gb-sxm", "b200-sxm")],
    "workloads": [
        {"name": f"w{number}", "input_tokens": 512 + number, "output_tokens": 64, "objective": "throughput"}
        for number in range(40)
    ],
}


def started(path: Path, table: Path) -> subprocess.Popen[str]:
    """A sweep with two workers in a new process group, after at least two finished cases."""
    sweep = subprocess.Popen(
        [str(PROGRAM), "sweep", str(path), "-o", str(table), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests in the background of a shell ignore interrupts, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 300
    while finished(table) < 2:
        assert sweep.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return sweep


def finished(table: Path) -> int:
    journal = table.with_name(table.name + ".journal")
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


def alone(group: int) -> bool:
    """Whether every process of a group ends within some minutes."""
    for _ in range(6000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_or_a_kill_loses_no_finished_case_and_leaves_no_process(tmp_path: Path) -> None:
    path, table = sweep_file(tmp_path, LONG), tmp_path / "table.csv"
    sweep = started(path, table)
    os.killpg(sweep.pid, signal.SIGINT)
    out, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 130
    assert out == ""
    assert "finished cases are kept in" in err and err.count("\n") == 1
    assert alone(sweep.pid)
    before = finished(table)
    assert before >= 2

    sweep = started(path, table)
    sweep.kill()
    sweep.communicate(timeout=300)
    assert alone(sweep.pid)
    assert finished(table) >= before
    assert not table.exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["sweep.json", "table.csv.journal"]
