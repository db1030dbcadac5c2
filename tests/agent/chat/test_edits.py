"""A follow-up is read together with the earlier requests: it changes what it names, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from shardwright.agent.chat.chat import Chat
from shardwright.agent.chat.edit_reader import MAX_EDIT_CHARACTERS, read_edit
from shardwright.agent.chat.edits import Spoken, apply_edit
from shardwright.agent.chat.words import request_changes
from shardwright.agent.intent.complete import complete
from shardwright.agent.intent.intent import Intent
from shardwright.tools.errors import InputError
from shardwright.tools.language.request import read_request
from shardwright.tools.language.said import Said

from ...examples import examples

CASES = json.loads((Path(__file__).parents[2] / "cases" / "chat.json").read_text(encoding="utf-8"))


def spoken(*texts: str) -> list[Spoken]:
    """The requests of a chat that begins with that of the table and goes on with `texts`."""
    said = read_request(CASES["request"])
    requests = [Spoken(said, complete(said))]
    for text in texts:
        said = apply_edit(requests[-1].said, read_edit(text, requests))
        requests.append(Spoken(said, complete(said)))
    return requests


def value_at(intent: Intent, path: str) -> Any:
    value: Any = intent
    for name in path.split("."):
        value = getattr(value, name)
    if isinstance(value, tuple):
        return [part.model_dump() if isinstance(part, BaseModel) else part for part in value]
    return value


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES["edits"], ids=lambda case: case["say"])
def test_a_follow_up_changes_what_it_names(case: dict[str, Any]) -> None:
    before = spoken(*case.get("before", ()))
    edit = read_edit(case["say"], before)
    assert edit.is_empty == (case.get("empty", False) or case.get("asks", False))
    assert bool(edit.questions) == case.get("asks", False)
    if "intent" not in case:
        return
    intent = complete(apply_edit(before[-1].said, edit))
    assert {path: value_at(intent, path) for path in case["intent"]} == case["intent"]
    assert not edit.unread


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", [edit for edit in CASES["edits"] if "intent" in edit], ids=lambda case: case["say"])
def test_a_follow_up_changes_nothing_else(case: dict[str, Any]) -> None:
    before = spoken(*case.get("before", ()))
    intent = complete(apply_edit(before[-1].said, read_edit(case["say"], before)))
    expected = {path.partition(".")[0] for path in case["intent"]}
    # Number formats that nobody stated follow the model and the accelerator.
    follows = {"assumptions", "words", "readings", "unread", "precision"}
    # Relaxations that an engine brings come and go with it.
    follows |= {"relaxations"} if "serving" in expected else set()
    for name in set(Intent.model_fields) - expected - follows:
        assert getattr(intent, name) == getattr(before[-1].intent, name), name


@pytest.mark.parametrize(
    ("say", "sum_"),
    [
        ("add 8 GPUs", "8 + 8 = 16"),
        ("4 fewer GPUs", "8 - 4 = 4"),
        ("double the users", "4 × 2 = 8"),
        ("输入长度增加2k", "2,048 + 2,048 = 4,096"),
    ],
)
def test_a_change_by_an_amount_shows_its_sum(say: str, sum_: str) -> None:
    assert any(sum_ in reading for reading in read_edit(say, spoken()).readings)


@pytest.mark.parametrize("say", ["remove 8 GPUs", "remove 20 GPUs", "half of 3% more GPUs"])
def test_a_change_to_nothing_is_refused(say: str) -> None:
    with pytest.raises(InputError, match=r"left|whole"):
        read_edit(say, spoken())


@examples(40)
@given(st.integers(1, 4096), st.sampled_from(["add {} GPUs", "{} more GPUs", "再加{}张卡", "increase the GPUs by {}"]))
def test_what_is_added_comes_on_top(amount: int, form: str) -> None:
    assert read_edit(form.format(amount), spoken()).said.gpus == 8 + amount


def test_a_changed_accelerator_does_not_keep_the_links_of_the_old_one() -> None:
    said = read_request("Llama-3.1-8B on 8 H100, NVLink 300 GB/s per GPU one way")
    before = [Spoken(said, complete(said))]
    assert before[0].intent.hardware is not None
    assert before[0].intent.hardware.intra_node_bw_gb_s is not None
    after = complete(apply_edit(said, read_edit("switch to H200", before)))
    assert after.hardware is not None
    assert after.hardware.intra_node_bw_gb_s is None


def test_what_was_not_understood_is_listed() -> None:
    edit = read_edit("16 GPUs and 37 quibbles", spoken())
    assert edit.said.gpus == 16
    assert any("37" in note for note in edit.unread)


def test_every_change_is_told() -> None:
    before = spoken()[0].intent
    after = spoken("16 GPUs, fp8, no TTFT limit, allow attention dp")[-1].intent
    lines = request_changes(before, after)
    assert {line.partition(":")[0] for line in lines} == {
        "GPUs",
        "nodes",
        "number formats",
        "TTFT limit (ms)",
        "relaxations",
    }


@examples(40)
@given(st.text(max_size=120))
def test_any_text_is_an_edit_or_refused_in_one_line(text: str) -> None:
    try:
        edit = read_edit(text, spoken())
        apply_edit(spoken()[0].said, edit)
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.timeout(60)  # a pattern that backtracks without end takes minutes
@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "word", ["drop the ", "double ", "no ", "back to ", "不要 ", "why not ", "what if ", "1", "add 8 ", "8 more GPUs "]
)
def test_the_longest_text_is_answered_soon_and_a_longer_one_refused(word: str) -> None:
    with Chat() as chat:
        chat.say("Llama-3.1-8B on 1 H100")
        chat.say((word * MAX_EDIT_CHARACTERS)[:MAX_EDIT_CHARACTERS])
        with pytest.raises(InputError, match="/new"):
            read_edit("a" * (MAX_EDIT_CHARACTERS + 1), spoken())


def test_a_request_that_is_joined_keeps_its_words() -> None:
    said = apply_edit(Said(gpus=8, words={"gpus": "8 GPUs"}), read_edit("fp8", spoken()))
    assert said.words["gpus"] == "8 GPUs"
