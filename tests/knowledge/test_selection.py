"""The selection of texts is deterministic, begins with a prefix common to all, fits its budget and gives reasons."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.knowledge.index import knowledge
from shardwright.knowledge.selection import DEFAULT_BUDGET_TOKENS, select
from shardwright.knowledge.situation import CONDITIONS, Situation
from shardwright.knowledge.tokens import estimate_tokens
from shardwright.tools.errors import InputError
from shardwright.tools.rules.registry import all_rules

from ..examples import examples
from .situations import REQUESTS, situation

RULES = [rule.id for rule in all_rules()]
SITUATIONS = st.builds(Situation, **{name.replace("-", "_"): st.booleans() for name in CONDITIONS})
BROKEN = st.lists(st.sampled_from(RULES), max_size=6)


@cache
def core_text() -> str:
    return select(Situation()).core_text


@pytest.mark.parametrize("name", REQUESTS)
def test_a_typical_request_gets_half_or_more_of_what_it_calls_for_within_the_budget(name: str) -> None:
    selection = select(situation(name))
    assert selection.tokens <= DEFAULT_BUDGET_TOKENS
    assert len(selection.left_out) <= (len(selection.chosen) + len(selection.left_out)) / 2


def test_nothing_is_left_out_for_a_dense_request() -> None:
    assert select(situation("dense")).left_out == ()


def test_how_documents_are_written_is_read_on_demand_alone() -> None:
    selection = select(Situation(**dict.fromkeys((name.replace("-", "_") for name in CONDITIONS), True)), 10**6)
    assert not [selected.section.id for selected in selection.chosen if selected.section.id.startswith("dag.")]


@examples(20)
@given(SITUATIONS, BROKEN, st.integers(7_000, 30_000))
def test_every_selection_begins_with_the_same_core_keeps_its_budget_and_loses_nothing(
    drawn: Situation, broken: list[str], budget_tokens: int
) -> None:
    selection = select(drawn, budget_tokens, broken)
    assert selection.text.startswith(core_text())
    assert selection.core_text == core_text()
    assert selection.tokens == estimate_tokens(selection.text) <= budget_tokens
    assert selection == select(drawn, budget_tokens, broken)
    complete = select(drawn, 10**6, broken)
    assert not complete.left_out
    ids = [selected.section.id for selected in complete.chosen]
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted(selected.section.id for selected in (*selection.chosen, *selection.left_out))
    assert all(selected.reason for selected in complete.chosen)


@examples(15)
@given(SITUATIONS, st.sampled_from(CONDITIONS))
def test_one_more_condition_only_adds_sections(drawn: Situation, condition: str) -> None:
    conditions = {name.replace("-", "_"): True for name in (*drawn.holding(), condition)}
    before = {selected.section.id for selected in select(drawn, 10**6).chosen}
    after = {selected.section.id for selected in select(Situation(**conditions), 10**6).chosen}
    assert before <= after


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_pulls_in_a_section_that_is_about_it(rule: str) -> None:
    selection = select(Situation(), rules=[rule])
    reasons = [selected.reason for selected in selection.chosen if rule in selected.section.rules]
    assert any(f"rule {rule} was broken" in reason for reason in reasons)


def test_broken_rules_go_before_conditions_where_the_budget_does_not_do() -> None:
    budget_tokens = select(Situation()).core_tokens + 700
    selection = select(Situation(moe=True, multi_node=True), budget_tokens, ["EP005"])
    assert any("EP005" in selected.reason for selected in selection.chosen)
    assert selection.left_out


def test_reasons_name_the_conditions() -> None:
    reasons = {selected.reason for selected in select(Situation(moe=True, multi_node=True), 10**6).chosen}
    assert {"core", "because moe holds", "because multi-node holds", "because moe and multi-node hold"} <= reasons


def test_a_budget_below_the_core_is_refused_with_the_figure_that_would_do() -> None:
    with pytest.raises(InputError, match=f"{select(Situation()).core_tokens:,}"):
        select(Situation(), 100)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match="XX999"):
        select(Situation(), rules=["XX999"])


@pytest.mark.thorough
def test_another_process_selects_the_same() -> None:
    code = (
        "import hashlib; from shardwright.knowledge.selection import select; "
        "from shardwright.knowledge.situation import Situation; "
        "print(hashlib.sha256(select(Situation(moe=True, limits=True), rules=['EP003']).text.encode()).hexdigest())"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        timeout=300,
    )
    text = select(Situation(moe=True, limits=True), rules=["EP003"]).text
    assert process.stdout.strip() == hashlib.sha256(text.encode()).hexdigest()


def test_every_section_can_be_chosen_or_is_for_reference() -> None:
    everything = Situation(**{name.replace("-", "_"): True for name in CONDITIONS})
    chosen = {selected.section.id for selected in select(everything, 10**6).chosen}
    assert {section.id for section in knowledge().sections if section.when != ("reference",)} == chosen
