"""`eval`: a dataset to a score, for people and for programs; bars and baselines decide its status."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run

from ..evaluation.running import own_calibration

PROGRAM = Path(sys.executable).parent / "shardwright"
REQUEST = "Serve Llama-3.1-8B on 2 H100, 1k in, 64 out, one user, lowest latency"
CASES: tuple[dict[str, Any], ...] = (
    {"id": "words", "request": REQUEST, "strategy": "TP2"},
    {"id": "object", "request": REQUEST, "strategy": {"tp": 2}, "tags": ["quick"]},
    {"id": "nonsense", "request": "Fly me to the moon", "answer": "refused"},
    {
        "id": "broken",
        "proposal": {"base": "dense-1", "edits": [{"action": "set_top", "field": "/strategy/gpu_count", "value": 9}]},
        "goldens": [{"base": "dense-1", "by": "builder"}],
    },
)


@pytest.fixture(autouse=True)
def _no_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "SHARDWRIGHT_LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)


@cache
def text_of(*names: str) -> str:
    return "\n".join(json.dumps(case) for case in CASES if not names or case["id"] in names)


def written(folder: Path, *names: str) -> str:
    path = folder / "mine.jsonl"
    path.write_text(text_of(*names))
    return str(path)


def evaluated(*arguments: str) -> int:
    return run(["eval", *arguments, "--jobs", "1"])


def test_a_user_s_own_lines_are_scored_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated(written(tmp_path)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "4 cases in 4 families; solver builtin" in out
    assert re.search(r"Solved: [23] of [23] put to builtin \(100%\); [12] of [12] that the tools decide", out)
    assert "mutation score" not in out
    assert "Rungs without the cases whose golden this package wrote" in out


def test_mutants_are_scored_where_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated(written(tmp_path, "broken"), "--mutants") == 0
    assert "mutation score 100%" in capsys.readouterr().out


def test_the_json_is_what_programs_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert evaluated(written(tmp_path), "--format", "json", "-o", str(report)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    payload = json.loads(out)
    assert payload == json.loads(report.read_text())
    assert payload["cases"] == 4
    assert len(payload["dataset_hash"]) == 64
    assert [result["id"] for result in payload["results"]] == [case["id"] for case in CASES]
    assert payload["rungs"]["rules"]["at_once"]["rate"] == pytest.approx(2 / 3)
    assert payload["rungs"]["rules"]["final"]["rate"] == 1.0


def test_standard_input_may_be_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text_of("broken", "nonsense").encode())))
    assert evaluated("-", "--format", "json") == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["dataset"], payload["cases"]) == ("standard input", 2)


def test_a_field_that_nothing_reads_is_noted_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"request": "Fly me to the moon", "answer": "refused", "weight": 3}))
    assert evaluated(str(path), "--format", "json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["cases"] == 1
    assert err.count("\n") == 1 and "the field 'weight' says nothing" in err


def test_only_picks_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated(written(tmp_path), "--only", "quick", "--format", "json") == 0
    assert [result["id"] for result in json.loads(capsys.readouterr().out)["results"]] == ["object"]


def test_a_rung_below_its_bar_is_status_1_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join([text_of("broken"), json.dumps({"request": "Fly me to the moon", "answer": "TP2"})]))
    bars = ("--fail-under", "solved=90", "--fail-under", "rules=50%", "--fail-under", "diagnosis=1")
    assert evaluated(str(path), *bars) == 1
    err = capsys.readouterr().err
    assert "solved: 50.0% is below 90.0%" in err
    assert "--fail-under diagnosis: no case of the dataset has this rung" in err
    assert "rules:" not in err
    assert evaluated(str(path), "--fail-under", "solved=50") == 0


@pytest.mark.thorough
def test_a_baseline_that_was_better_is_status_1_and_what_was_lost_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, old = written(tmp_path, "broken", "nonsense"), tmp_path / "old.json"
    assert evaluated(path, "-o", str(old)) == 0
    assert evaluated(path, "--baseline", str(old)) == 0
    assert "No worse than the baseline, a run of builtin, in the 2 cases that both have." in capsys.readouterr().out
    # A solver that never corrects itself loses what a repair would have mended.
    assert evaluated(path, "--no-fixes", "--corrections", "0", "--solver", "stubborn", "--baseline", str(old)) == 1
    out = capsys.readouterr().out
    assert "Worse than the baseline, a run of builtin, in the 2 cases that both have." in out
    assert "lost broken" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such.jsonl"], "no-such.jsonl: cannot be read"),
        (["a" * 5000], "cannot be read"),
        (["{}", "--solver", "bultin"], "did you mean builtin"),
        (["{}", "--solver", "scripted"], "needs its FILE"),
        (["{}", "--solver", "cassette:nowhere"], "nowhere"),
        (["{}", "--solver", "live"], "no endpoint is configured"),
        (["{}", "--epochs", "0"], "--epochs"),
        (["{}", "--jobs", "many"], "--jobs"),
        (["{}", "--only", "zzz"], "no case has 'zzz'"),
        (["{}", "--fail-under", "rules"], "RUNG=PERCENT"),
        (["{}", "--fail-under", "rules=nan"], "RUNG=PERCENT"),
        (["{}", "--fail-under", "rules=101"], "RUNG=PERCENT"),
        (["{}", "--fail-under", "beauty=9"], "no rung of that name; there are solved, parses"),
        (["{}", "--baseline", "{}"], "is no report of an evaluation"),
        (["{}", "--baseline", "no-such.json"], "no-such.json: cannot be read"),
        (["{}", "-o", "missing/report.json"], "missing does not exist"),
        (["{}", "--html", "."], "is a folder"),
        (["{}", "--junit", "missing/report.xml"], "missing does not exist"),
        (["{}", "--journal", "{}"], "is read here; name another file"),
        (["{}", "--journal", "missing/journal"], "missing does not exist"),
        (["{}", "--record", "tape"], "only a live model is recorded"),
        (["{}", "--solver", "golden", "--feedback", "bit"], "takes no options"),
        (["{}", "--calibration", "no-such.json"], "no-such.json"),
        (["{}", "--solver", "student", "--calibration", "mine.cal"], "only the built-in proposer"),
        (["{}", "--ablate", "luck"], "unknown ablation 'luck'"),
        (["{}", "--ablate", "fixers", "--solver", "golden"], "cannot be varied"),
        (
            ["{}", "--ablate", "fixers", "--html", "a.html", "--fail-under", "rules=1"],
            "knows no --html or --fail-under",
        ),
        (["{}", "--ablate", "fixers", "--baseline", "a.json"], "knows no --baseline"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_wrong_call_is_one_line_and_status_2_and_writes_nothing(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "nonsense")
    (tmp_path / "mine.cal").write_text(own_calibration(0.5).model_dump_json())
    before = sorted(tmp_path.iterdir())
    assert run(["eval", *(argument.replace("{}", path) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_calibration_of_one_s_own_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calibration = tmp_path / "mine.cal"
    calibration.write_text(own_calibration(0.5).model_dump_json())
    assert evaluated(written(tmp_path, "words"), "--calibration", str(calibration), "--format", "json") == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["solver"], payload["solved"]) == ("builtin by mine", 1)


def test_an_endpoint_that_nobody_answers_is_status_3_and_nothing_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "1")
    report, live = (
        tmp_path / "report.json",
        ("--solver", "live", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m"),
    )
    assert evaluated(written(tmp_path, "words"), *live, "-o", str(report)) == 3
    out, err = capsys.readouterr()
    assert out == "" and "the model answered in no case" in err
    assert not report.exists()


def test_the_reports_are_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, junit = tmp_path / "a.html", tmp_path / "a.xml"
    assert evaluated(written(tmp_path, "broken", "nonsense"), "--html", str(page), "--junit", str(junit)) == 0
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    tests = [f"{test.get('classname')} {test.get('name')}" for test in ET.parse(junit).iter("testcase")]
    assert all(any(name in test for test in tests) for name in ("broken", "nonsense"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.xml", "mine.jsonl"]
    # Existing reports stay if a run cannot begin.
    before = page.read_bytes()
    assert evaluated(written(tmp_path), "--html", str(page), "--baseline", str(tmp_path / "none")) == 2
    assert page.read_bytes() == before


def test_an_ablation_sets_its_variants_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (written(tmp_path, "broken", "words"), "--solver", "student", "--ablate", "fixers")
    assert evaluated(*arguments, "--format", "json") == 0
    payload = json.loads(capsys.readouterr().out)
    assert [variant["name"] for variant in payload["variants"]] == ["repairs on", "repairs off"]
    assert payload["variants"][0]["changes"] == [] != payload["variants"][1]["changes"]
    assert all(variant["asked"] == 2 for variant in payload["variants"])


def test_a_journal_goes_on_where_a_run_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal"
    assert evaluated(written(tmp_path, "broken"), "--journal", str(journal)) == 0
    assert evaluated(written(tmp_path, "broken", "nonsense"), "--journal", str(journal)) == 0
    count = journal.read_bytes().count(b'{"case":')
    assert evaluated(written(tmp_path, "broken", "nonsense"), "--journal", str(journal)) == 0
    assert count == 2 == journal.read_bytes().count(b'{"case":')


@pytest.mark.thorough
def test_an_interrupt_is_status_130_and_the_same_call_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, journal, report = tmp_path / "many.jsonl", tmp_path / "journal", tmp_path / "report.json"
    many = [{**CASES[3], "id": f"case-{place}"} for place in range(3000)]
    path.write_text("\n".join(map(json.dumps, many)))
    call = [str(PROGRAM), "eval", str(path), "--jobs", "1", "--journal", str(journal), "-o", str(report)]
    begun = subprocess.Popen(
        call,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests in the background of a shell ignore interrupts, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 300
    while not journal.exists() or journal.read_bytes().count(b'{"case":') < 2:
        assert begun.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    begun.send_signal(signal.SIGINT)
    out, err = begun.communicate(timeout=300)
    assert (begun.returncode, out, report.exists()) == (130, "", False)
    hint = f"finished cases are kept in {journal}: the same call goes on from there"
    assert err == f"shardwright: interrupted; {hint}\n"
    hint = journal.read_bytes().count(b'{"case":')
    path.write_text("\n".join(map(json.dumps, many[:hint])))
    assert evaluated(str(path), "--journal", str(journal), "-o", str(report)) == 0
    assert journal.read_bytes().count(b'{"case":') == hint
    assert json.loads(report.read_text())["solved"] == hint
