"""An endpoint that gave no usable answer is reported, also by the exit status if only it was to propose."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

from ..agent.loop.questions import SMALL
from ..agent.model.fault_server import FaultServer, Step, drips, hangs, head, refuses, sends, text

SILENT: dict[str, Step] = {
    "never answers": hangs,
    "one byte now and then": drips(head(200, None)),
    "closes at once": lambda exchange: None,
    "no JSON": sends("hello"),
    "overloaded": refuses(503),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("proposer", "status"), [("llm", 3), ("auto", 0)])
@pytest.mark.parametrize("step", SILENT.values(), ids=SILENT.keys())
def test_a_model_that_never_answered_is_told_of(
    step: Step, proposer: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "1")
    with FaultServer(step) as server:
        options = ("--reader", "rules", "--llm-url", server.url, "--llm-model", "m", "--llm-timeout", "0.3")
        assert run(["plan", SMALL, "--proposer", proposer, *options]) == status
    out, err = capsys.readouterr()
    assert out.count("Valid plan") == 1
    assert "No answer of the language model m: http://127.0.0.1" in " ".join(out.splitlines()[:3])
    assert len(err.splitlines()) == 1
    assert "m: http://127.0.0.1" in err
    assert "the plan is the built-in proposer's" in err


def test_a_model_none_of_whose_answers_is_the_plan_is_told_of_first(capsys: pytest.CaptureFixture[str]) -> None:
    with FaultServer(text("The sky is blue.")) as server:
        options = ("--reader", "rules", "--llm-url", server.url, "--llm-model", "m")
        assert run(["plan", SMALL, "--proposer", "llm", *options]) == 0
    first = " ".join(capsys.readouterr().out.splitlines()[:4])
    assert "of which none is the plan: that is the built-in proposer's" in first


def test_under_strict_the_built_in_plan_in_place_of_a_models_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "1")
    options = ("--reader", "rules", "--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "m")
    assert run(["plan", SMALL, *options]) == 0
    assert run(["plan", SMALL, *options, "--strict"]) == 1
    assert run(["plan", SMALL, *options, "--strict", "--proposer", "llm"]) == 3
    assert capsys.readouterr().out.count("Valid plan") == 3


def test_the_end_of_the_time_hides_no_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with FaultServer(hangs) as server:
        options = ("--reader", "rules", "--llm-url", server.url, "--llm-model", "m", "--max-seconds", "5")
        assert run(["plan", SMALL, "--proposer", "llm", *options]) == 3
        assert len(server.bodies) == 1
    assert "no answer in time" in capsys.readouterr().err


@pytest.mark.parametrize(("proposer", "status"), [("llm", 3), ("auto", 0)])
def test_a_model_that_was_never_asked_is_told_of(
    proposer: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultServer(hangs) as server:
        options = ("--reader", "rules", "--llm-url", server.url, "--llm-model", "m", "--max-seconds", "1e-9")
        assert run(["plan", SMALL, "--proposer", proposer, *options]) == status
        assert server.requests == []
    out, err = capsys.readouterr()
    assert out.count("Valid plan") == 1
    assert "over before it was asked" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("seconds", ["90000", "86400.1", "0", "-1", "nan", "inf", "-inf", "1e308", "1e999", "x", ""])
@pytest.mark.parametrize(
    ("command", "option"), [("plan", "--max-seconds"), ("chat", "--max-seconds"), ("doctor", "--seconds")]
)
def test_seconds_that_cannot_be_are_refused_in_one_line(
    command: str, option: str, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = () if command == "doctor" else (SMALL,)
    assert run([command, *words, "--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "m", option, seconds]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert option in err


@pytest.mark.one_in(2)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("proposer", ["llm", "auto"])
def test_a_failed_endpoint_hides_no_transcript_that_could_not_be_written(
    proposer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run.json"
    place.symlink_to("/dev/full")
    options = ("--reader", "rules", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m", "--max-seconds", "2")
    assert run(["plan", SMALL, "--proposer", proposer, *options, "--transcript", str(place)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "run.json" in line and "built-in proposer" in line
