"""Broken plans of the dataset break exactly the rules that they name, every rule is covered, requests read right."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from shardwright.agent.evaluation.case import Case
from shardwright.agent.intent.complete import complete
from shardwright.tools.language.request import read_request
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.rules.registry import all_rules, find_rule
from shardwright.tools.validate import validate


def cases(name: str) -> list[Case]:
    """The cases of a file of the dataset."""
    text = files("shardwright.agent.evaluation").joinpath("cases", name).read_text(encoding="utf-8")
    return [Case.model_validate(case) for case in json.loads(text)["cases"]]


RULES = cases("broken_rules.json")
TEXTS = cases("broken_texts.json")


def broken(case: Case) -> dict[str, Any]:
    """The document that `case` proposes."""
    assert case.proposal is not None and case.proposal.base is not None
    return edited(base_plan(case.proposal.base), case.proposal.edits)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", RULES, ids=lambda case: case.id)
def test_a_broken_plan_breaks_the_rules_that_it_names_and_no_other(case: Case) -> None:
    violations = validate(broken(case)).violations
    errors = {violation.rule for violation in violations if violation.severity == "error"}
    if "warning" in case.tags:
        assert not errors
        assert set(case.rules) <= {violation.rule for violation in violations}
    else:
        assert errors == set(case.rules)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", RULES, ids=lambda case: case.id)
def test_a_case_says_where_its_edits_ask_another_question(case: Case) -> None:
    assert case.proposal is not None and case.proposal.base is not None
    before, after = base_plan(case.proposal.base), broken(case)
    blocks = ("model", "hardware", "workload", "precision", "policy", "serving")
    changed = any(before.get(block) != after.get(block) for block in blocks)
    assert changed or case.asks == "base"
    # A number written as a text is no other question: its author meant the base plan.
    if changed and "ST001" not in case.rules:
        assert case.asks == "proposal"
        assert not any(golden.base for golden in case.goldens)


def test_every_rule_is_broken_by_some_case() -> None:
    assert {rule.id for rule in all_rules()} == {rule for case in RULES for rule in case.rules}


def test_no_rule_is_named_that_there_is_not() -> None:
    for case in (*RULES, *TEXTS):
        for rule in (*case.rules, *case.decided_by):
            assert find_rule(rule).id == rule


@pytest.mark.parametrize("base", sorted({golden.base for case in RULES for golden in case.goldens if golden.base}))
def test_a_base_plan_that_is_called_right_is_right(base: str) -> None:
    assert validate(base_plan(base)).valid


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_a_request_is_read_as_its_case_says(case: Case) -> None:
    assert case.request is not None
    intent = complete(read_request(case.request)).model_dump(mode="json")
    for path, wanted in case.intent.items():
        value: Any = intent
        for name in path.split("."):
            value = value[name]
        assert value == wanted, path


def test_each_case_has_an_id_of_its_own() -> None:
    ids = [case.id for case in (*RULES, *TEXTS)]
    assert len(ids) == len(set(ids))


def test_each_golden_says_why_it_is_right() -> None:
    assert all(golden.source for case in (*RULES, *TEXTS) for golden in case.goldens)
