"""The report of an earlier run is read as a baseline; anything else is refused in one line with the reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.evaluation.baseline import read_baseline
from shardwright.agent.evaluation.evaluate import run_evaluation
from shardwright.agent.evaluation.run import RunOptions
from shardwright.tools.errors import InputError

from .running import BUILTIN, Failing, broken_plans

SMALL = broken_plans(2)
HERE = RunOptions(jobs=1)


@cache
def report() -> dict[str, Any]:
    """The JSON report of a small run."""
    return run_evaluation(SMALL, BUILTIN, HERE).model_dump(mode="json")


def written(folder: Path, content: object) -> Path:
    path = folder / "old.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_a_run_wrote_is_read_as_it_was(tmp_path: Path) -> None:
    baseline = read_baseline(written(tmp_path, report()))
    assert baseline.results == run_evaluation(SMALL, BUILTIN, HERE).results
    assert (baseline.solver, baseline.is_deterministic, baseline.dataset_hash) == ("builtin", True, SMALL.digest)


def test_a_baseline_of_another_solver_is_compared_and_named(tmp_path: Path) -> None:
    comparison = run_evaluation(SMALL, Failing(), HERE, baseline=written(tmp_path, report())).summary.comparison
    assert comparison is not None
    assert (comparison.baseline, comparison.is_exact, comparison.regressions) == ("builtin", True, ())


def test_a_baseline_with_chance_in_it_is_compared_beyond_chance(tmp_path: Path) -> None:
    drawn = {**report(), "is_deterministic": False}
    comparison = run_evaluation(SMALL, BUILTIN, HERE, baseline=written(tmp_path, drawn)).summary.comparison
    assert comparison is not None and not comparison.is_exact


def test_a_baseline_of_other_cases_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    other = written(tmp_path, {**report(), "results": [{**report()["results"][0], "case": "f" * 64}]})
    heard: list[object] = []
    with pytest.raises(InputError, match=r"old.json: none of its cases is in sample as it is"):
        run_evaluation(SMALL, BUILTIN, HERE, baseline=other, on_done=heard.append)
    assert heard == []


def without(*places: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for place in places:
            holder = document["results"][0] if place.startswith("/") else document
            del holder[place.removeprefix("/")]

    return change


def with_value(place: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        holder = document["results"][1] if place.startswith("/") else document
        holder[place.removeprefix("/")] = value

    return change


CHANGES = {
    "another format": (with_value("format", "shardwright/plan"), "is no report of an evaluation"),
    "another version": (with_value("version", "2"), "version '2' of reports is not known"),
    "a version of a megabyte": (with_value("version", "2" * 1_000_000), "version '2222"),
    "no solver": (without("solver"), "solver: Field required"),
    "no results": (without("results"), "results: Field required"),
    "a result without an id": (without("/id"), "results/0/id: Field required"),
    "a result without an answer": (without("/answer"), "results/0/answer: Field required"),
    "results that are none": (with_value("results", [1]), "results/0: Input should be"),
    "an odd field": (with_value("/odd" * 100, 1), "results/1/odd/odd"),
    "an id twice": (with_value("/id", "case-0"), "two results are of case 'case-0' in epoch 1"),
    "another case in another epoch": (
        lambda document: document["results"][1].update(id="case-0", epoch=2),
        "case 'case-0' is not the same in all epochs",
    ),
    "a mark that is no number": (
        lambda document: document["results"][0]["marks"].update(outcome={"passed": True, "value": float("nan")}),
        "NaN is not JSON",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_report_that_is_not_of_the_form_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    document = copy.deepcopy(report())
    change, reason = CHANGES[name]
    change(document)
    with pytest.raises(InputError) as refused:
        read_baseline(written(tmp_path, document))
    line = str(refused.value)
    assert reason in line
    assert str(tmp_path / "old.json") in line
    assert "\n" not in line and len(line) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 10_000_000, '{"a":' * 1_000_000, "[]", "null", '"shardwright/eval"', "9" * 5000, "\ufeff{}"],
    ids=lambda text: text[:6],
)
def test_a_text_that_is_no_report_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_baseline(written(tmp_path, text))
    assert "\n" not in str(refused.value) and "eval -o FILE" in str(refused.value)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="cannot be read"):
            read_baseline(place)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="not UTF-8"):
        read_baseline(tmp_path / "bytes")
