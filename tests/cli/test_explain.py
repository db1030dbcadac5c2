"""`explain`: a topic, a rule or a question is answered with its citation; an unknown topic exits with status 1."""

from __future__ import annotations

import io
import json
import sys

import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.agent.explain import MAX_ANSWERS, explain
from shardwright.knowledge.index import knowledge
from shardwright.knowledge.search import MAX_QUESTION_CHARACTERS
from shardwright.tools.errors import InputError
from shardwright.tools.rules.registry import all_rules


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> str:
    """The standard output of `explain`."""
    assert run(["explain", *arguments]) == status
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("question", ["张量并行", "tensor parallelism", "What is TP?", "TP 是什么"])
def test_a_topic_is_answered_with_text_rules_sources_and_citation(
    question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed([question], capsys)
    section = knowledge().section("tp.what")
    assert section.citation in text
    assert "ShardNode" in text
    assert all(rule in text for rule in section.rules)
    assert "<!--" not in text


@pytest.mark.parametrize("rule", [rule.id for rule in all_rules()])
def test_a_rule_id_gives_its_page_and_the_section_that_teaches_it(rule: str) -> None:
    explanation = explain(rule)
    assert explanation.rule is not None
    assert (explanation.rule.id, explanation.exit_status) == (rule, 0)
    assert rule in explanation.answers[0].rules


@pytest.mark.parametrize("words", ["pp003", "PP003", "rule PP003", "explain pp-003?", "解释 PP003", "规则PP003。"])
def test_a_rule_is_known_however_it_is_asked_for(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed([words], capsys)
    assert text.startswith("PP003 cross-stage shortcut (error)")
    assert "How to mend it" in text


def test_json_is_what_the_function_gives(capsys: pytest.CaptureFixture[str]) -> None:
    payload = json.loads(printed(["--format", "json", "-n", "3", "pipeline bubble"], capsys))
    explanation = shardwright.explain("pipeline bubble", 3)
    assert payload == explanation.model_dump(mode="json")
    assert len(payload["answers"]) == 3
    assert "rule" not in payload
    assert set(payload["answers"][0]) == {"citation", "section", "title", "text", "rules", "sources"}


def test_further_passages_are_shown_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    single, three = printed(["KV cache"], capsys), printed(["-n", "3", "KV cache"], capsys)
    every = printed(["--all", "KV cache"], capsys)
    assert three.startswith(single.rstrip("\n"))
    assert (single.count("\nFrom: "), three.count("\nFrom: ")) == (1, 3)
    assert 3 < every.count("\nFrom: ") <= MAX_ANSWERS


def test_what_is_not_spoken_of_exits_1_with_the_nearest_headings(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(["how to bake sourdough bread"], capsys, status=1)
    assert "does not speak of" in text
    assert " § " in text
    payload = json.loads(printed(["--format", "json", "how to bake sourdough bread"], capsys, status=1))
    assert (payload["answers"], bool(payload["nearest"])) == ([], True)


def test_words_need_no_quotes_and_standard_input_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = printed(["pipeline bubble"], capsys)
    assert printed(["pipeline", "bubble"], capsys) == quoted
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"pipeline bubble\n")))
    assert printed(["-"], capsys) == quoted


def test_the_id_of_a_section_gives_that_section() -> None:
    assert explain("EP.Redundant").answers[0].section == "ep.redundant"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("  ", "nothing was asked"),
        ("x" * (MAX_QUESTION_CHARACTERS + 1), "fewer words"),
        ("PP999", "unknown rule 'PP999'; did you mean"),
    ],
)
def test_a_call_that_asks_for_nothing_or_too_much_is_refused_in_one_line(
    question: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", question]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("limit", [0, MAX_ANSWERS + 1])
def test_the_number_of_answers_is_bounded(limit: int) -> None:
    with pytest.raises(InputError, match=f"from 1 to {MAX_ANSWERS}"):
        explain("KV cache", limit)


def test_control_characters_of_a_question_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in printed(["zzz \x1b[31m qqqq"], capsys, status=1)


def test_half_a_character_is_no_question() -> None:
    with pytest.raises(InputError, match="half a character"):
        explain("what is \ud800?")
