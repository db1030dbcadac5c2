"""The explanation of a rule draws its examples small, and the page of all rules is up to date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from shardwright.agent.cli.app import run
from shardwright.agent.facts import rule_facts
from shardwright.agent.report.drawing import MAX_LINES, Focus, draw
from shardwright.agent.report.rule_reference import FAMILY_TITLES, rule_reference
from shardwright.knowledge.generated.relaxations import relaxed_rules
from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.rules.registry import FAMILIES, all_rules, find_rule

from ..examples import examples
from ..rules.corruptions import damaged_plans

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


@pytest.mark.one_in(8)
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_both_examples_of_a_rule_are_drawn_and_the_bad_one_is_marked(rule: Rule) -> None:
    facts = rule_facts(rule, with_examples=True)
    assert facts.bad is not None and facts.good is not None
    assert any(f"◄ {rule.id}" in line for line in facts.bad.drawing)
    assert 0 < len(facts.bad.drawing) <= MAX_LINES
    assert len(facts.good.drawing) <= MAX_LINES
    assert not any("◄" in line for line in facts.good.drawing)


def test_the_drawing_shows_the_shortcut_its_stages_and_the_way_from_the_root() -> None:
    drawing = rule_facts(find_rule("PP003"), with_examples=True).bad
    assert drawing is not None
    text = "\n".join(drawing.drawing)
    assert text.startswith("request RequestNode\n└─ r0 ReplicaNode index 0\n")
    assert "→ r0.prefill.s1.b0 data ◄ PP003" in text
    assert text.count("PipelineStageNode") == 2
    assert "r0.decode" not in text


def test_a_place_of_the_document_is_shown_with_its_value_in_both_examples() -> None:
    facts = rule_facts(find_rule("GP001"), with_examples=True)
    assert facts.bad is not None and facts.good is not None
    assert "/strategy/gpu_count = 5 ◄ GP001" in facts.bad.drawing
    assert "/strategy/gpu_count = 4" in facts.good.drawing


@examples(60)
@given(plan=damaged_plans())
def test_any_document_is_drawn_within_bounds_and_each_node_once(plan: dict[str, Any]) -> None:
    names = tuple(node["id"] for node in plan["nodes"] if isinstance(node, dict) and isinstance(node.get("id"), str))
    for focus in (names[:3], names[-3:], ("nobody",)):
        lines = draw(plan, Focus(nodes=focus, places=("/nodes/0/id", "/nodes/x/y", "/strategy/dp")))
        assert len(lines) <= MAX_LINES
        assert all(len(line) < 1000 for line in lines)


def test_a_cycle_of_parents_is_drawn_once() -> None:
    plan = base_plan("dense-1")
    ids = ("r0", "r0.prefill")
    next(node for node in plan["nodes"] if node["id"] == "r0")["parent"] = "r0.prefill"
    lines = draw(plan, Focus(nodes=ids, places=()))
    assert sum("ReplicaNode" in line for line in lines) == 1
    assert sum(" PhaseNode phase prefill" in line for line in lines) == 1


@pytest.mark.parametrize("columns", ["60", "100"])
def test_a_drawing_keeps_to_the_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["rules", "TP002"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert max(map(len, lines)) <= int(columns)
    assert any("├─" in line for line in lines)


def test_the_drawing_is_in_the_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "pp003", "--format", "json"]) == 0
    assert "◄ PP003" in "\n".join(json.loads(capsys.readouterr().out)["bad"]["drawing"])


def test_the_page_of_the_rules_is_what_the_rules_give_today() -> None:
    assert PAGE.read_text(encoding="utf-8") == rule_reference()


def test_the_page_has_every_rule_under_its_family() -> None:
    page = rule_reference()
    for rule in all_rules():
        assert page.count(f'<a id="{rule.id.lower()}"></a>') == 1
        assert f"[{rule.id}](#{rule.id.lower()})" in page
    assert set(FAMILY_TITLES) == set(FAMILIES)


def test_each_relaxation_lifts_the_rule_that_forbids_it() -> None:
    assert relaxed_rules() == {
        "attention_dp": ("DP001",),
        "kv_sequence_decode": ("SP003",),
        "redundant_experts": ("EP005",),
        "tp_in_expert": ("TP006",),
        "vocab_parallel": ("TP001",),
    }
