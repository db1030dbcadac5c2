"""`compare`: two documents, or one and words; text, JSON and exit statuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run

from ..comparison.plans import dense


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_text(dense().model_dump_json())
    return path


def test_two_documents_are_set_side_by_side(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "b.json"
    other.write_text(dense("DP2 of TP2").model_dump_json())
    assert run(["compare", str(plan), str(other)]) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert text.startswith(f"A: {plan}: TP2 of tiny on 1 node × 8 h100-sxm")
    for heading in ("In short", "Side by side", "What changes from A to B", "What binds"):
        assert f"\n{heading}\n" in text
    assert "needs 2× the GPUs (4 instead of 2)" in " ".join(text.split())


def test_the_json_is_the_result_and_nothing_else(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(plan), "PP2 x TP2 DP1", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert set(payload) >= {"a", "b", "changes", "figures", "verdict", "better"}
    assert payload["b"]["title"] == "PP2 x TP2 DP1"
    assert payload["b"]["strategy"]["prefill"]["pp"] == 2


def test_one_that_is_not_valid_is_status_1(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(plan), "TP3 DP1"]) == 1
    text = capsys.readouterr().out
    assert "B is not valid" in text
    assert "Rules that B breaks" in text


@pytest.mark.parametrize("other", ["missing.json", "nonsense", "TP8 and pepper", "", "-5"])
def test_what_cannot_be_read_is_one_line_and_status_2(
    other: str, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(plan), "--", other]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_one_of_the_two_may_be_standard_input(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(dense("DP2 of TP2").model_dump_json().encode())))
    assert run(["compare", str(plan), "-"]) == 0
    assert "B: standard input: DP2 of TP2" in capsys.readouterr().out
    assert run(["compare", "-", "-"]) == 2


def test_a_price_is_the_cost_of_both(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", str(plan), "DP2 of TP2", "--usd-per-gpu-hour", "2", "--format", "json"]
    assert run(arguments) == 0
    costs = [figure for figure in json.loads(capsys.readouterr().out)["figures"] if figure["unit"] == "USD"]
    assert len(costs) == 1
