"""Every rule leads to source, section, file and test cases; every normative sentence to a rule or a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardwright.knowledge.generated.traceability_page import case_table, rule_file, traceability_page
from shardwright.knowledge.search import search_index
from shardwright.knowledge.traceability import read_traceability
from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = {"000", "001", "002", "003", "004"}
ENTRIES = read_traceability()


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_nothing_is_missing_in_any_column_of_a_rule(rule: Rule) -> None:
    assert rule.source
    assert search_index().teaching(rule.id)
    assert f'id="{rule.id}"' in (ROOT / rule_file(rule)).read_text(encoding="utf-8")
    assert (ROOT / case_table(rule)).is_file()


def test_every_rule_of_the_design_documents_holds_a_sentence_of_theirs() -> None:
    rules_of_entries = {rule for entry in ENTRIES for rule in entry.rules}
    rules_of_documents = {rule.id for rule in all_rules() if rule.source[:3] in DOCUMENTS}
    # These follow from a listing (of files in 001, of parts in 003), not from a sentence.
    assert rules_of_documents - rules_of_entries == {"EP009", "GP005", "PP007", "TP005"}
    assert rules_of_entries <= rules_of_documents


def test_sentences_are_numbered_from_one_without_a_gap_in_each_section() -> None:
    by_section: dict[str, list[int]] = {}
    for entry in ENTRIES:
        by_section.setdefault(entry.place.source, []).append(entry.place.ordinal)
    assert {
        source: numbers for source, numbers in by_section.items() if numbers != list(range(1, len(numbers) + 1))
    } == {}
    assert {source[:3] for source in by_section} == DOCUMENTS


def test_a_reason_says_something() -> None:
    assert [entry.place for entry in ENTRIES if not entry.rules and len(entry.reason.split()) < 3] == []


def test_the_page_is_what_the_sources_give_today() -> None:
    assert (ROOT / "docs" / "traceability.md").read_text(encoding="utf-8") == traceability_page()
