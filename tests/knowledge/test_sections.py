"""The knowledge base is complete, in its format, and within its budgets."""

from __future__ import annotations

import pytest

from shardwright.knowledge.index import FILES, knowledge, knowledge_files
from shardwright.knowledge.section import Section
from shardwright.knowledge.tokens import estimate_tokens
from shardwright.tools.rules.registry import all_rules

SECTIONS = knowledge().sections
RULINGS = {f"R{number}" for number in range(1, 18)}
# Limits of a section that answers at a glance, and of one that holds an example document or a generated table.
MAX_SECTION_TOKENS, MAX_WHOLE_TOKENS = 600, 2_700
MAX_LINE = 160


def test_the_files_are_those_of_the_reading_order() -> None:
    assert knowledge_files() == FILES


@pytest.mark.parametrize("section", SECTIONS, ids=[section.id for section in SECTIONS])
def test_a_section_is_short_and_names_only_rules_that_exist(section: Section) -> None:
    known = {rule.id for rule in all_rules()}
    assert set(section.rules) <= known
    is_whole = "<!-- example" in section.body or "<!-- generated" in section.body
    assert section.tokens <= (MAX_WHOLE_TOKENS if is_whole else MAX_SECTION_TOKENS)
    assert 3 <= len(section.keywords) <= 12
    assert all(len(line) <= MAX_LINE or line.startswith("|") for line in section.text.splitlines())
    rulings = {source for source in section.sources if source.startswith("R") and source[1:].isdecimal()}
    assert rulings <= RULINGS


def test_every_rule_is_taught_by_a_section() -> None:
    taught = {rule for section in SECTIONS for rule in section.rules}
    assert {rule.id for rule in all_rules()} - taught == set()


def test_headings_differ_within_a_file_so_that_a_citation_names_one_section() -> None:
    citations = [section.citation for section in SECTIONS]
    assert len(citations) == len(set(citations))


def test_every_section_has_words_in_both_languages_to_be_found_by() -> None:
    def has_chinese(section: Section) -> bool:
        return any("\u4e00" <= sign <= "\u9fff" for sign in " ".join((section.title, *section.keywords)))

    assert [section.id for section in SECTIONS if not has_chinese(section)] == []


def test_the_text_that_is_read_has_no_comment_left() -> None:
    assert [section.id for section in SECTIONS if "<!--" in section.text or "-->" in section.text] == []


def test_the_core_is_under_three_thousand_tokens() -> None:
    assert 1_500 < sum(section.tokens for section in knowledge().core) < 3_000


def test_the_token_estimate_lies_above_the_published_ratios() -> None:
    english = "Each shard computes a part of every operator, and one collective joins the parts again."
    chinese = "张量并行把每个算子切到多个设备上，然后用一次集合通信汇合。"
    assert 0.18 * len(english) < estimate_tokens(english) < 0.35 * len(english)
    assert 0.6 * len(chinese) < estimate_tokens(chinese) < 1.2 * len(chinese)
    assert estimate_tokens("") == 0
    assert estimate_tokens('{"tp": 1234567}') >= 9
