"""A question finds the section that answers it, in English and Chinese; one without an answer finds none.

The table of questions has four sets, each written by someone who had not seen the headings; the sections that answer
were named afterwards, by reading them, and questions that no section answers were left out. Sections with the same
answer are all named. Where sections were merged, the merged one took their place.

first   questions of engineers and newcomers. Some were known when those that sections are `asked` and the glossary were
        written, so that the search is at its best here; it was last read at 86% before wording counted.
second  written later, known to nobody before its first reading: 63%. It was then read while the search was improved.
third   written with the second; its first reading was 68%. Nobody improved the search by its rows.
fourth  written and read when all else was done: 78% first, 91% among the first three, two of 76 without an answer.
        Nothing was changed after it: it says what to expect of a new question.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.knowledge import phrases
from shardwright.knowledge.index import knowledge
from shardwright.knowledge.search import search_index, search_sections
from shardwright.knowledge.words import atoms, glossary, reading, runs_of_atoms
from shardwright.tools.errors import InputError
from shardwright.tools.rules.registry import all_rules

from ..examples import examples

CASES = Path(__file__).resolve().parents[1] / "cases"


def cases(name: str) -> Any:
    """A table of cases."""
    return json.loads((CASES / f"knowledge_{name}.json").read_text(encoding="utf-8"))


QUESTIONS = cases("questions")
TOPICS = cases("topics")


def first(question: str) -> str | None:
    """The id of the best section for a question."""
    hits = search_sections(question, 1).hits
    return hits[0].section.id if hits else None


def share_found(name: str, limit: int) -> float:
    """The share of a set's questions with an answering section among the first `limit` hits."""
    rows = [row for row in QUESTIONS if row["set"] == name]
    hits_by_row = [{hit.section.id for hit in search_sections(row["question"], limit).hits} for row in rows]
    return sum(bool(ids & set(row["sections"])) for ids, row in zip(hits_by_row, rows, strict=True)) / len(rows)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "least_first", "least_among_three"),
    [("first", 0.9, 0.98), ("second", 0.75, 0.9), ("third", 0.65, 0.8), ("fourth", 0.75, 0.9)],
)
def test_questions_find_a_section_that_answers(name: str, least_first: float, least_among_three: float) -> None:
    assert share_found(name, 1) >= least_first
    assert share_found(name, 3) >= least_among_three


def test_nine_of_ten_of_forty_questions_find_a_section_that_answers_first() -> None:
    forty = [row for row in QUESTIONS if row["set"] == "first"][:40]
    missed = [row["question"] for row in forty if first(row["question"]) not in row["sections"]]
    assert len(missed) <= 4, missed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("row", QUESTIONS, ids=[row["question"][:40] for row in QUESTIONS])
def test_every_question_is_answered_and_its_sections_exist(row: dict[str, Any]) -> None:
    assert all(knowledge().has(section) for section in row["sections"])
    assert row["set"] == "fourth" or search_sections(row["question"], 1).hits


STORY = "Yesterday evening my colleague, who had been on holiday for three weeks, rang and complained bitterly that "


@pytest.mark.parametrize(
    ("question", "section"),
    [("the pipeline bubble spoils his speculative decoding", "pp.bubble"), ("流水线气泡和投机解码打架", "pp.bubble")],
)
def test_a_long_story_around_two_concepts_of_the_field_is_no_reason_not_to_answer(question: str, section: str) -> None:
    sections = {hit.section.id for hit in search_sections(STORY + question, 3).hits}
    assert section in sections


def test_neighbouring_words_count_the_small_ones_too() -> None:
    connection = sqlite3.connect(":memory:")
    texts = ("how many of them. Is it legal", "legal is of many how it")
    phrases.create(connection, [list(runs_of_atoms(text)) for text in texts])
    assert phrases.likeness(connection, "how many of them?") == {0: 1.0}
    assert phrases.likeness(connection, "them is") == {}  # the end of a sentence lies between
    assert phrases.likeness(connection, "legal") == {}


@pytest.mark.parametrize("number", ["327680", "327,680", "327_680"])
def test_a_number_is_one_word_with_or_without_separators(number: str) -> None:
    assert [atom.text for atom in atoms(f"{number} bytes")] == ["327680", "bytes"]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_finds_its_section_in_either_language_and_misspelt(topic: str) -> None:
    assert first(topic) in TOPICS[topic]


@pytest.mark.parametrize("question", cases("off_topic"))
def test_what_the_base_does_not_speak_of_gets_no_answer_but_the_nearest_headings(question: str) -> None:
    answer = search_sections(question)
    assert answer.hits == ()
    assert answer.nearest


@pytest.mark.one_in(2)
@pytest.mark.parametrize("section", knowledge().sections, ids=lambda section: section.id)
def test_a_heading_finds_its_own_section_among_the_first(section: Any) -> None:
    assert section.id in {hit.section.id for hit in search_sections(section.title, 2).hits}


@pytest.mark.parametrize("rule", [rule.id for rule in all_rules()])
def test_a_rule_is_taught_by_sections_that_are_about_it(rule: str) -> None:
    teaching = search_index().teaching(rule)
    assert teaching
    assert all(rule in section.rules for section in teaching)
    assert not teaching[0].id.startswith("rules.") or len(teaching) == 1


@examples(60)
@given(st.sampled_from(QUESTIONS), st.sampled_from(["upper", "lower", "blanks", "hyphens", "wide"]))
def test_spelling_makes_no_difference(row: dict[str, Any], change: str) -> None:
    changed = {
        "upper": str.upper,
        "lower": str.lower,
        "blanks": lambda text: f"  {text}\t?",
        "hyphens": lambda text: text.replace("-", "‐"),
        "wide": lambda text: text.replace("?", "？").replace(",", "，"),
    }[change](row["question"])
    if change == "upper" and atoms(changed) != atoms(row["question"]):
        return  # the joints of CamelCase are lost
    assert first(changed) == first(row["question"])


@examples(80)
@given(st.text(max_size=300))
def test_any_text_is_answered_or_refused_within_bounds_and_always_alike(text: str) -> None:
    answer = search_sections(text, 3)
    assert answer == search_sections(text, 3)
    assert len(answer.hits) <= 3
    assert bool(answer.hits) != bool(answer.nearest)


@pytest.mark.parametrize(
    "text", ['"', "a AND b", "NEAR(x, 2)", "title: x", "* OR *", "'; DROP TABLE sections; --", "\x00"]
)
def test_the_language_of_the_engine_is_not_the_question_s(text: str) -> None:
    search_sections(f"{text} tensor parallelism {text}")
    assert first("tensor parallelism") == "tp.what"


def test_a_concept_is_one_however_it_is_named() -> None:
    for form in ("tensor parallelism", "Tensor-Parallel", "tensor_parallel_size", "TP", "张量并行", "TP8"):
        assert "tensor-parallelism" in reading(form).concepts, form
    assert reading("stoppage").concepts == ()


def test_no_form_of_the_glossary_stands_for_two_concepts() -> None:
    assert len(glossary()) > 80


def test_an_unknown_rule_teaches_nothing() -> None:
    with pytest.raises(InputError, match="XX999"):
        search_index().teaching("XX999")
