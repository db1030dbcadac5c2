"""The engine never raises, drops findings that a more specific rule explains, and is deterministic."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.errors import InputError, UnknownNameError
from shardwright.tools.plan.document import Plan
from shardwright.tools.plan.view import PhaseView, PlanView
from shardwright.tools.rules.base import Edit, Example, Finding, Rule
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.precedence import EXPLAINED_ANYWHERE, EXPLAINED_BY
from shardwright.tools.rules.registry import all_rules, find_rule
from shardwright.tools.validate import ValidationReport, find_violations, validate

from ..examples import examples
from .corruptions import damaged_plans, renamed_and_shuffled

CONTRACT_KEYS = {"valid", "errors", "warnings", "violations"}
VIOLATION_KEYS = {"rule", "severity", "message", "nodes", "edges", "path", "fix", "source"}


def _rule(rule_id: str, findings: tuple[Finding, ...]) -> Rule:
    """A rule with the id `rule_id` that always reports `findings`."""
    return replace(find_rule("ST002"), id=rule_id, check=lambda _view: findings)


def _rules_found(*rules: Rule, base: str = "dense-pp2-tp2") -> list[str]:
    return [violation.rule for violation in find_violations(PlanView(base_plan(base)), rules)]


def test_a_rule_that_crashes_becomes_a_finding_of_that_rule_and_hides_no_other() -> None:
    def crash(_view: PlanView) -> Iterator[Finding]:
        yield Finding("found", "found before the crash", where="/nodes/0")
        raise ZeroDivisionError("by\nnothing")

    crashing = replace(find_rule("CO002"), check=crash)
    other = _rule("DP002", (Finding("found", "found by another rule"),))
    violations = find_violations(PlanView(base_plan("dense-1")), [crashing, other])
    assert [(v.rule, v.severity) for v in violations] == [("CO002", "error"), ("CO002", "error"), ("DP002", "error")]
    crashed = next(v for v in violations if "could not be checked" in v.message)
    assert "ZeroDivisionError: by nothing" in crashed.message
    assert crashed.fix == "report"


@cache
def _view() -> PlanView:
    return PlanView(base_plan("dense-pp2-tp2"))


PAIRS = [(rule, stronger) for rule, others in EXPLAINED_BY.items() for stronger in sorted(others)]


@pytest.mark.parametrize(("weaker", "stronger"), PAIRS)
def test_a_finding_is_dropped_where_a_rule_that_explains_it_names_the_same_node(weaker: str, stronger: str) -> None:
    here, there = Finding("found", "here", nodes=("r0.decode.s0",)), Finding("found", "there", nodes=("r0.decode.s1",))
    assert _rules_found(_rule(weaker, (here,)), _rule(stronger, (here,))) == [stronger]
    elsewhere = {stronger} if weaker in EXPLAINED_ANYWHERE else {weaker, stronger}
    assert set(_rules_found(_rule(weaker, (here,)), _rule(stronger, (there,)))) == elsewhere


@pytest.mark.parametrize(("weaker", "stronger"), PAIRS)
def test_a_finding_is_dropped_where_a_rule_that_explains_it_names_the_same_edge(weaker: str, stronger: str) -> None:
    view = _view()
    first_edge, last_edge = view.edges[0], view.edges[-1]
    strong = _rule(stronger, (Finding("found", "here", where=first_edge),))
    assert [
        v.rule for v in find_violations(view, [_rule(weaker, (Finding("found", "here", where=first_edge),)), strong])
    ] == [stronger]
    violations = find_violations(view, [_rule(weaker, (Finding("found", "there", where=last_edge),)), strong])
    assert {v.rule for v in violations} == ({stronger} if weaker in EXPLAINED_ANYWHERE else {weaker, stronger})


def test_a_finding_about_a_field_is_explained_at_the_same_field() -> None:
    count, degree = (
        Finding("found", "x", where="/strategy/gpu_count"),
        Finding("found", "x", where="/strategy/decode/tp"),
    )
    assert _rules_found(_rule("EP008", (count,)), _rule("GP002", (count,))) == ["GP002"]
    assert set(_rules_found(_rule("EP008", (degree,)), _rule("GP002", (count,)))) == {"EP008", "GP002"}


def test_no_rule_explains_itself_or_what_explains_it() -> None:
    pairs = set(PAIRS)
    assert not {(stronger, weaker) for weaker, stronger in pairs} & pairs
    assert {rule for pair in pairs for rule in pair} <= {rule.id for rule in all_rules()}


VISITED_NODES = {
    "phase": lambda view: [phase.node.id for phase in view.phases],
    "stage": lambda view: [stage.node.id for stage in view.stages],
    "node": lambda view: [node.id for node in view.nodes],
    ("MoENode", "RouterNode"): lambda view: [node.id for node in view.nodes if node.type in ("MoENode", "RouterNode")],
}  # fmt: skip


@pytest.mark.parametrize("visits", VISITED_NODES, ids=str)
def test_a_rule_decides_once_about_each_thing_that_it_visits(visits: Any) -> None:
    seen: list[str] = []

    def decide(_view: PlanView, visited: Any) -> Iterator[Finding]:
        seen.append(getattr(visited, "node", visited).id)
        yield Finding("found", "found", where=getattr(visited, "node", visited))

    view = PlanView(base_plan("mla-tp2-ep2-pp2"))
    rule = replace(find_rule("ST002"), check=None, visits=visits, decide=decide)
    named_nodes = [violation.nodes for violation in rule.run(view)]
    assert seen == VISITED_NODES[visits](view) and named_nodes == [(name,) for name in seen]


def test_copies_are_looked_at_where_something_is_found_and_only_there() -> None:
    document = base_plan("dense-dp2-tp2")
    phases = [node["id"] for node in document["nodes"] if node["type"] == "PhaseNode"]
    for finds, expected in ((False, phases[:2]), (True, [*phases[:2], *phases])):
        seen: list[str] = []

        def decide(_view: PlanView, phase: PhaseView, seen: list[str] = seen, finds: bool = finds) -> Iterator[Finding]:
            seen.append(phase.node.id)
            yield from [Finding("found", "found", where=phase.node)] * finds

        rule = replace(find_rule("ST002"), id="PP002", check=None, visits="phase", decide=decide)
        assert len(find_violations(PlanView(document), [rule])) == finds * len(phases)
        assert sorted(seen) == sorted(expected)


def test_two_bad_edges_of_one_node_are_two_faults() -> None:
    view = PlanView(base_plan("dense-tp2"))
    shard = view.by_id["r0.decode.s0.b0.attn.tp0"]
    first, second = shard.edges_out
    rules = [
        _rule("ST006", (Finding("found", "one", where=first),)),
        _rule("PP003", (Finding("found", "two", where=second),)),
    ]
    assert {v.rule for v in find_violations(view, rules)} == {"ST006", "PP003"}


def test_an_edge_yields_to_a_finding_on_a_node_at_its_end() -> None:
    view = PlanView(base_plan("dense-tp2"))
    edge = view.by_id["r0.decode.s0.b0.attn.tp0"].edges_out[0]
    at_its_end = Finding("found", "node", where=edge.source or "")
    rules = [_rule("ST006", (Finding("found", "edge", where=edge),)), _rule("PH002", (at_its_end,))]
    assert [v.rule for v in find_violations(view, rules)] == ["PH002"]


def test_rules_that_no_table_names_stand_side_by_side() -> None:
    here = Finding("found", "here", nodes=("r0",))
    assert _rules_found(_rule("ST002", (here,)), _rule("PP004", (here,))) == ["ST002", "PP004"]


def test_findings_come_by_rule_and_then_by_place_in_the_document() -> None:
    places = tuple(Finding("found", "x", where=f"/nodes/{place}") for place in (10, 9, 100))
    violations = find_violations(PlanView({}), [_rule("PP004", places), _rule("ST002", places), _rule("CO002", places)])
    assert [v.rule for v in violations] == ["ST002"] * 3 + ["CO002"] * 3 + ["PP004"] * 3
    assert [v.path for v in violations][:3] == ["/nodes/9", "/nodes/10", "/nodes/100"]


def test_the_report_has_the_keys_of_the_contract() -> None:
    report = validate(apply(find_rule("CO002").bad)).model_dump(mode="json")
    assert set(report) >= CONTRACT_KEYS
    assert report["valid"] is False and report["errors"] == len(report["violations"]) == 1
    assert set(report["violations"][0]) >= VIOLATION_KEYS


def test_warnings_do_not_make_a_plan_invalid() -> None:
    report = validate(base_plan("moe-shared-tp2-ep4"))
    assert report.valid and report.errors == 0 and report.warnings == len(report.violations) > 0


def test_relaxations_in_force_are_shown() -> None:
    assert validate(base_plan("relaxed-kv-sp2")).relaxations == ("kv_sequence_decode",)
    assert validate(base_plan("dense-1")).relaxations == ()
    document = base_plan("relaxed-kv-sp2")
    document["policy"]["relaxations"] += ["no such relaxation", "\ud800"]
    assert validate(document).relaxations == ("kv_sequence_decode",)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", base_names())
def test_a_document_is_judged_alike_in_every_form(name: str, tmp_path: Path) -> None:
    document = base_plan(name)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    report = validate(document)
    for form in (json.dumps(document), file, str(file), Plan.model_validate(document)):
        assert validate(form) == report


def test_a_file_that_is_not_there_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no-such-plan"):
        validate(Path("no-such-plan.json"))


@pytest.mark.parametrize("text", ["{", "[]", "[1, 2]", '{"nodes": ', "[" * 5000])
def test_a_text_without_a_plan_in_it_is_one_schema_fault(text: str) -> None:
    report = validate(text)
    assert [v.rule for v in report.violations] == ["ST001"] and not report.valid


def test_a_fault_of_one_element_names_the_node() -> None:
    document = base_plan("dense-1")
    document["nodes"][5]["colour"] = "red"
    (violation,) = validate(document).violations
    assert violation.rule == "ST001" and violation.nodes == (document["nodes"][5]["id"],)
    assert violation.path.startswith("/nodes/5")


def test_a_document_that_breaks_the_schema_is_judged_as_far_as_it_can_be_read() -> None:
    document = apply(find_rule("PP004").bad)
    document["workload"]["input_tokens"] = "many"
    assert {"ST001", "PP004"} <= {v.rule for v in validate(document).violations}


def test_half_a_surrogate_pair_can_be_reported() -> None:
    document = base_plan("dense-1")
    document["nodes"].append({"id": "\ud800", "type": "LinearNode", "parent": "\udfff", "devices": ["\ud800"]})
    json.loads(validate(document).model_dump_json())


def _values(depth: int) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    words = st.sampled_from(["nodes", "edges", "id", "type", "parent", "source", "target", "strategy", "config"])
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=3), inner, max_size=4),
        max_leaves=depth,
    )


@examples(80)
@given(st.dictionaries(st.sampled_from([*Plan.model_fields, "x"]), _values(12)))
def test_any_json_object_at_all_gets_a_report(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    report = validate(document)
    assert not report.valid
    assert repr(document) == repr(before)
    report.model_dump_json()


@examples(60)
@given(_values(10))
def test_any_json_text_at_all_gets_a_report(value: Any) -> None:
    text = json.dumps({"nodes": value} if not isinstance(value, dict) else value)
    assert isinstance(validate(text), ValidationReport)


@examples(60)
@given(damaged_plans())
def test_the_same_document_gets_the_same_report(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    report = validate(document)
    assert repr(document) == repr(before)
    assert validate(copy.deepcopy(document)) == report
    assert not [v.message for v in report.violations if "could not be checked" in v.message]


@examples(40)
@given(st.sampled_from([rule.id for rule in all_rules()]), st.integers(0, 1 << 32))
def test_ids_and_order_change_no_verdict(rule_id: str, seed: int) -> None:
    document = apply(find_rule(rule_id).bad)
    # A duplicate or dangling id cannot be renamed one to one.
    if rule_id in ("ST002", "ST001"):
        return
    expected = {v.rule for v in validate(document).violations}
    assert {v.rule for v in validate(renamed_and_shuffled(document, random.Random(seed))).violations} == expected


def test_an_edit_of_what_is_not_there_is_refused() -> None:
    for edit in (
        Edit("set", "no such node", "layers", [0, 1]),
        Edit("remove_node", "no such node"),
        Edit("remove_edge", value={"source": "no such node"}),
        Edit("set_top", field="/no/such/place", value=1),
    ):
        with pytest.raises(InputError, match="the plan has no"):
            apply(Example("dense-1", (edit,)))
    with pytest.raises(UnknownNameError):
        base_plan("no such base")


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="PP00"):
        find_rule("PP01")


def test_a_removed_node_takes_what_hangs_below_it_and_its_edges() -> None:
    document = apply(Example("dense-tp2", (Edit("remove_node", "r0.decode.s0.b0.attn"),)))
    removed = "r0.decode.s0.b0.attn"
    assert not [node for node in document["nodes"] if node["id"].startswith(removed)]
    ends = [end for edge in document["edges"] for end in (edge["source"], edge["target"])]
    assert ends and not [end for end in ends if end.startswith(removed)]
