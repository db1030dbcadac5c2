"""The contract of all rules, checked for every registered rule without naming any."""

from __future__ import annotations

import copy
import json
import pkgutil
import re
from pathlib import Path

import pytest

from shardwright.tools import rules as package
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import FAMILIES, all_rules, find_rule, rule_order
from shardwright.tools.validate import ValidationReport, validate

every_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)


def rules_that_fire(report: ValidationReport) -> set[str]:
    return {violation.rule for violation in report.violations}


@pytest.mark.parametrize("name", base_names())
def test_every_base_plan_is_valid(name: str) -> None:
    report = validate(base_plan(name))
    assert [violation.message for violation in report.violations if violation.severity == "error"] == []


@pytest.mark.one_in(4)
@every_rule
def test_the_good_example_has_no_finding_of_its_rule_and_no_error(rule: Rule) -> None:
    report = validate(apply(rule.good))
    assert report.valid
    assert rule.id not in rules_that_fire(report)


@pytest.mark.one_in(1)
@every_rule
def test_the_bad_example_yields_its_rule_alone(rule: Rule) -> None:
    fired = rules_that_fire(validate(apply(rule.bad)))
    # A base plan may leave devices idle, which is a separate warning; the schema may see the fault too.
    allowed = rules_that_fire(validate(base_plan(rule.bad.base))) | {"ST001"}
    assert rule.id in fired
    assert fired - allowed <= {rule.id}


@pytest.mark.one_in(4)
@every_rule
def test_the_bad_example_is_reported_with_all_that_a_person_needs(rule: Rule) -> None:
    for violation in validate(apply(rule.bad)).violations:
        if violation.rule != rule.id:
            continue
        assert violation.severity == rule.severity
        assert violation.fix == rule.fix
        assert violation.source == rule.source
        assert violation.remedy
        assert violation.message and "\n" not in violation.message
        assert violation.path == "" or violation.path.startswith("/")


@pytest.mark.one_in(4)
@every_rule
def test_a_check_changes_neither_the_document_nor_the_view(rule: Rule) -> None:
    for example in (rule.good, rule.bad):
        document = apply(example)
        before = copy.deepcopy(document)
        view = PlanView(document)
        first = list(rule.run(view))
        assert document == before
        assert list(rule.run(view)) == first


@every_rule
def test_a_document_with_nothing_in_it_breaks_no_rule(rule: Rule) -> None:
    for document in ({}, {"nodes": None, "edges": {}}, {"nodes": [{}, {"id": "x"}], "edges": [{"source": "x"}]}):
        list(rule.run(PlanView(document)))


@every_rule
def test_the_metadata_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z]{2}[0-9]{3}", rule.id)
    assert rule.id[:2] in FAMILIES
    for text in (rule.name, rule.requirement, rule.rationale, rule.source, rule.remedy):
        assert text == text.strip() and text
    assert rule.requirement.endswith(".") and rule.rationale.endswith(".")
    assert rule.severity in ("error", "warning") and rule.fix in ("local", "re-plan", "report", "none")
    # Named for the offence: "allow <name>" reads as English.
    assert not rule.name.lower().startswith(("must", "no ", "do not", "check", "ensure", "each", "every"))
    assert not rule.name.endswith(".")


def test_ids_are_unique_and_in_the_order_of_a_report() -> None:
    ids = [rule.id for rule in all_rules()]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids, key=rule_order)
    assert [family for family in FAMILIES if any(i.startswith(family) for i in ids)] == list(
        dict.fromkeys(rule_id[:2] for rule_id in ids)
    )


def test_every_rule_is_found_by_its_id() -> None:
    for rule in all_rules():
        assert find_rule(rule.id.lower()) is rule


def test_every_rule_file_holds_its_rules() -> None:
    """A module of a family with neither `RULE` nor `RULES` is a helper of the others."""
    root = Path(package.__path__[0])
    modules = {rule.module for rule in all_rules()}
    for family in pkgutil.iter_modules([str(root)]):
        if not family.ispkg:
            continue
        for module in pkgutil.iter_modules([str(root / family.name)]):
            text = (root / family.name / f"{module.name}.py").read_text(encoding="utf-8")
            name = f"{package.__name__}.{family.name}.{module.name}"
            assert (name in modules) == ("RULE = Rule(" in text or "\nRULES = " in text), name


@pytest.mark.thorough
def test_a_report_is_json() -> None:
    for rule in all_rules():
        report = validate(apply(rule.bad))
        assert json.loads(report.model_dump_json()) == report.model_dump(mode="json")
