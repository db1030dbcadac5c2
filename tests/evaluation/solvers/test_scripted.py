"""Answers from a file: which case gets them, what ends them, and which files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.evaluation.solvers.scripted import Script, Scripted, read_script
from shardwright.tools.errors import InputError

from .worlds import CASES, scored

REFUSED = json.loads((CASES / "scripts_refused.json").read_text())
TP2 = {"tool": "submit_dag", "arguments": {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}}
TP3 = {"tool": "submit_dag", "arguments": {"strategy": {"dp": 1, "prefill": {"tp": 3}, "decode": {"tp": 3}}}}

FORM = '{"replies": {"CASE-ID or *": ["a reply", {"tool": "submit_dag", "arguments": {…}}]}}'


def solver(**replies: list[Any]) -> Scripted:
    """A solver with replies by case; `any_case` stands for every case."""
    by_case = {"*" if name == "any_case" else name: reply for name, reply in replies.items()}
    return Scripted(Script.model_validate({"replies": by_case}))


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_a_file_that_is_no_script_is_refused_in_one_line(row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(row["text"] if "text" in row else "[" * row["nest"] + "]" * row["nest"])
    with pytest.raises(InputError) as refused:
        read_script(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert row["says"] in message
    assert message.endswith("; a script is " + FORM)
    assert "\n" not in message


def test_a_script_is_read_and_played_by_case(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"about": "x", "replies": {"words": [TP3, {"tools": [TP3, TP2]}], "*": ["TP1"]}}))
    words, base = (scored(Scripted.of_file(path), name) for name in ("words", "base"))
    assert (words.status, words.strategy, words.spent.corrections) == ("accepted", "TP2", 2)
    assert words.spent.tokens_estimated
    assert words.spent.input_tokens > 0
    assert base.strategy == "DP8 of one device"


@pytest.mark.parametrize(
    ("short", "meant"),
    [
        ("TP2", {"*": ["TP2"]}),
        (["TP2", TP3], {"*": ["TP2", TP3]}),
        ({"a": "TP2", "b": TP3, "c": {"tools": [TP2]}}, {"a": ["TP2"], "b": [TP3], "c": [{"tools": [TP2]}]}),
    ],
)
def test_a_list_of_one_and_the_name_of_every_case_may_be_left_out(short: Any, meant: Any, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"replies": short}))
    assert read_script(path) == Script.model_validate({"replies": meant})


def test_the_form_that_a_refusal_shows_is_one(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(FORM.replace("{…}", "{}"))
    assert list(read_script(path).replies) == ["CASE-ID or *"]


def test_it_begins_anew_in_each_epoch() -> None:
    script = solver(any_case=[TP3, TP2])
    first, second = scored(script, epoch=1), scored(script, epoch=2)
    assert first.model_copy(update={"epoch": 2}) == second


def test_a_script_at_its_end_ends_the_run_and_says_so() -> None:
    result = scored(solver(any_case=[TP3]))
    assert result.status == "endpoint_failed"
    assert result.fault is None


def test_a_case_without_replies_is_a_fault_that_names_it() -> None:
    result = scored(solver(other=["TP2"]))
    assert result.answer == "failed"
    assert result.fault is not None
    assert "'words'" in result.fault
