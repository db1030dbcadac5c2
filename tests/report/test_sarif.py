"""SARIF has every finding of a report in full, in the standard's form, with fingerprints that ignore order."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from shardwright.agent.cli.app import run
from shardwright.agent.report.sarif import FINGERPRINT, Checked, sarif_log
from shardwright.tools.rules.examples import apply
from shardwright.tools.rules.registry import all_rules, find_rule
from shardwright.tools.validate import ValidationReport, validate

from ..examples import examples
from ..rules.corruptions import damaged_plans

ESSENTIALS = json.loads((Path(__file__).parents[1] / "cases" / "sarif_essentials.schema.json").read_text("utf-8"))
CHECK = Draft202012Validator(ESSENTIALS)


def as_read(report: ValidationReport, uri: str | None = "plan.json") -> dict[str, Any]:
    """The SARIF log as another program reads it."""
    return json.loads(sarif_log([Checked(report, uri)], version="1.2.3").to_json())


def fingerprints(document: dict[str, Any]) -> list[str]:
    results = as_read(validate(document))["runs"][0]["results"]
    return sorted(result["partialFingerprints"][FINGERPRINT] for result in results)


def test_the_essentials_are_a_schema_and_refuse_what_is_no_sarif() -> None:
    Draft202012Validator.check_schema(ESSENTIALS)
    log = as_read(validate(apply(find_rule("PP003").bad)))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not CHECK.is_valid(log)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_finding_goes_over_and_back(rule: Any) -> None:
    report = validate(apply(rule.bad))
    log = as_read(report)
    CHECK.validate(log)
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert len(sarif_run["results"]) == len(report.violations)
    for result, violation in zip(sarif_run["results"], report.violations, strict=True):
        assert result["ruleId"] == violation.rule == rules[result["ruleIndex"]]["id"]
        assert result["level"] == violation.severity
        assert result["message"]["text"] == violation.message
        assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == violation.path
        fields = json.loads(violation.model_dump_json())
        for name in ("message_id", "nodes", "edges", "value", "expected", "remedy", "fix", "source"):
            assert result["properties"].get(name, fields[name]) == fields[name]
        assert result["properties"]["message_id"] == violation.message_id
        assert result["properties"]["remedy"] == violation.remedy


def test_every_rule_is_described_with_both_examples() -> None:
    rules = as_read(validate(apply(find_rule("PP003").good)))["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in all_rules()]
    for described, rule in zip(rules, all_rules(), strict=True):
        assert described["defaultConfiguration"]["level"] == rule.severity
        assert described["fullDescription"]["text"] == rule.requirement
        assert rule.bad.base in described["help"]["text"] and rule.good.base in described["help"]["text"]
    assert {rule["name"] for rule in rules} >= {"CrossStageShortcut", "ReplicatedKVHeads"}


@pytest.mark.parametrize("rule_id", ["PP003", "TP002", "GP001", "EP005", "DE003"])
def test_a_fingerprint_outlasts_another_order_and_tells_findings_apart(rule_id: str) -> None:
    document = apply(find_rule(rule_id).bad)
    marks = fingerprints(document)
    random.Random(1).shuffle(document["nodes"])
    random.Random(2).shuffle(document["edges"])
    assert fingerprints(document) == marks
    assert len(set(marks)) == len(marks)
    other = fingerprints(apply(find_rule("ME001").bad))
    assert not set(marks) & set(other)


@examples(25)
@given(plan=damaged_plans())
def test_findings_of_any_document_are_sarif(plan: dict[str, Any]) -> None:
    CHECK.validate(as_read(validate(plan)))


def test_a_value_that_json_cannot_hold_is_written_as_null() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    report = validate(apply(find_rule("GP001").bad))
    odd = tuple(violation.model_copy(update={"value": [float("nan")]}) for violation in report.violations)
    report = report.model_copy(update={"violations": odd})
    CHECK.validate(json.loads(sarif_log([Checked(report, None)], version="1").to_json(), parse_constant=refuse))


def test_the_command_writes_it_for_a_file_and_for_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = json.dumps(apply(find_rule("PP003").bad))
    (tmp_path / "a plan.json").write_text(bad)
    monkeypatch.chdir(tmp_path)
    assert run(["validate", "a plan.json", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    CHECK.validate(log)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20plan.json"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bad.encode())))
    assert run(["validate", "-", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    CHECK.validate(log)
    assert log["runs"][0]["artifacts"] == [{"location": {"description": {"text": "standard input"}}}]


def test_other_commands_have_no_such_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--format", "sarif"]) == 2
    assert "sarif" in capsys.readouterr().err


def test_the_report_says_its_format_and_version() -> None:
    report = json.loads(validate(apply(find_rule("PP003").bad)).model_dump_json())
    assert (report["format"], report["version"]) == ("shardwright/validation", "1")
