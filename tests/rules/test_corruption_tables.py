"""Every rule has its table of corruptions; each corruption yields its one finding, with all that a finding states."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from msgspec import Struct, to_builtins

from shardwright.tools.rules.base import Rule, Violation
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.messages import message_ids, stated_ids
from shardwright.tools.rules.registry import all_rules, find_rule
from shardwright.tools.validate import validate

from .corruptions import Corruption, corruptions

ROWS = corruptions("")
# Rows whose rule fires; the others come close to its fault but are legal.
CORRUPT = [row for row in ROWS if row.rule in row.expected]
every_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
MIN_ROWS = 2
MIN_BASES = 6
MAX_ID_CHARS = 32
# A remedy names something concrete: a node, an identifier of the format, a field or a figure.
_CONCRETE = re.compile(
    r"[A-Z][A-Za-z]+Node|'[^']+'|[0-9]|→|edge|device|stage|shard|expert|replica|layer|phase|index|degree|tp\b|ep\b|"
    r"branch|gpu_count|relax|collective|AllGather|AllReduce|construction|step|parent|recurrence|hardware|config|"
    r"dimension|latency|vocabular|DP\b|TP\b|cache|engine|head|\bid\b|count|FFN|schema|field|value"
)


class JudgedRow(Struct, frozen=True):
    """A row, its document, and its findings without the warnings of its untouched base."""

    row: Corruption
    document: dict[str, Any]
    violations: tuple[Violation, ...]

    @property
    def rules(self) -> frozenset[str]:
        """Rules that fire, without the schema's where another rule fires: it may see the same fault."""
        rules = frozenset(violation.rule for violation in self.violations)
        return rules if rules == {"ST001"} else rules - {"ST001"}


@cache
def usual_warnings(base: str) -> frozenset[str]:
    """The rules that warn about the untouched base plan."""
    return frozenset(violation.rule for violation in validate(base_plan(base)).violations)


@cache
def read(rule: str, name: str) -> JudgedRow:
    """The row `name` of `rule`, validated once for all tests."""
    row = next(row for row in ROWS if (row.rule, row.name) == (rule, name))
    document = apply(row.example)
    usual = usual_warnings(row.example.base)
    return JudgedRow(row, document, tuple(fault for fault in validate(document).violations if fault.rule not in usual))


def of_rule(rule: Rule) -> list[JudgedRow]:
    """The rows of `rule`."""
    return [read(row.rule, row.name) for row in ROWS if row.rule == rule.id]


def findings(rule: Rule) -> Iterator[tuple[JudgedRow, Violation]]:
    """Each finding in the rows of `rule`, with its row."""
    for judged in of_rule(rule):
        yield from ((judged, violation) for violation in judged.violations)


def resolve(document: Any, path: str) -> Any:
    """The value at a JSON Pointer; raises if there is none."""
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


@every_rule
def test_every_rule_has_corruptions_of_different_kind(rule: Rule) -> None:
    rows = [row for row in CORRUPT if row.rule == rule.id]
    assert len({row.name for row in rows}) >= MIN_ROWS
    assert len({json.dumps(to_builtins(row.example)) for row in rows}) >= MIN_ROWS


def test_the_corruptions_are_of_many_base_plans() -> None:
    assert len({row.example.base for row in CORRUPT}) >= MIN_BASES
    assert {row.example.base for row in ROWS} <= set(base_names())


def test_no_row_stands_twice() -> None:
    counted = Counter((row.rule, row.name) for row in ROWS)
    assert [key for key, times in counted.items() if times > 1] == []


@pytest.mark.parametrize("name", base_names())
def test_an_untouched_base_plan_has_no_error(name: str) -> None:
    report = validate(base_plan(name))
    assert report.valid and {violation.rule for violation in report.violations} <= {"GP005"}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_corruption_gives_the_findings_that_name_it_and_no_other(row: Corruption) -> None:
    expected = row.expected - usual_warnings(row.example.base)
    assert read(row.rule, row.name).rules == (expected if expected == {"ST001"} else expected - {"ST001"})


def test_one_fault_is_one_finding() -> None:
    """Beside its own rule a corruption may break the schema, and may leave devices idle."""
    for row in CORRUPT:
        assert row.expected - {row.rule, "ST001", "GP005"} <= ALSO.get((row.rule, row.name), frozenset()), str(row)


# Corruptions with a second, different fault: an engine that refuses a layout for two reasons, a part of EP or SP that
# is neither in its operator nor in the tree.
ALSO: dict[tuple[str, str], frozenset[str]] = {
    ("CO002", "a declaration that no part of a damaged operator bears out"): frozenset({"TP002"}),
    ("CO008", "a TP group that leaves its node"): frozenset({"TP007"}),
    ("EP001", "a router in the block"): frozenset({"ST003"}),
    ("EP001", "an expert in attention"): frozenset({"ST003"}),
    ("SP001", "a sequence shard in an expert"): frozenset({"CO003"}),
    ("EP005", "more experts than anyone lists"): frozenset({"ME001"}),
    ("EN005", "the same in SGLang"): frozenset({"EN009"}),
    ("EN008", "exchanged heads"): frozenset({"EN010"}),
    ("EN008", "gathered keys and values where the engine exchanges heads"): frozenset({"EN007"}),
    ("EN009", "a shared expert narrower than its stage"): frozenset({"EN005"}),
}


@every_rule
def test_a_finding_points_to_what_is_there(rule: Rule) -> None:
    for judged in of_rule(rule):
        ids = {node.get("id") for node in judged.document["nodes"]}
        ends = {(edge.get("source"), edge.get("target")) for edge in judged.document["edges"]}
        for violation in judged.violations:
            assert is_left_out(violation) or resolve(judged.document, violation.path) is not None
            assert set(violation.nodes) <= ids
            assert set(violation.edges) <= ends


@every_rule
def test_a_finding_names_the_node_or_the_edge_that_it_points_to(rule: Rule) -> None:
    for judged, violation in findings(rule):
        part, _, inside = violation.path.removeprefix("/").partition("/")
        if violation.rule == "ST001" or part not in ("nodes", "edges") or not inside:
            continue
        target = resolve(judged.document, "/".join(violation.path.split("/")[:3]))
        if part == "nodes":
            assert target["id"] in violation.nodes
        else:
            assert (target["source"], target["target"]) in violation.edges


def is_left_out(violation: Violation) -> bool:
    """Whether the place may be absent: a degree or a list that is left out has its default."""
    return violation.value in (None, [], 1) and violation.path.startswith(("/strategy/", "/construction"))


@every_rule
def test_a_finding_says_how_to_mend_it_in_one_line_that_names_something(rule: Rule) -> None:
    for judged, violation in findings(rule):
        violated = find_rule(violation.rule)
        assert violation.remedy.strip() and "\n" not in violation.remedy
        assert _CONCRETE.search(violation.remedy), violation.remedy
        assert "\n" not in violation.message and violation.message.strip()
        assert violation.source == violated.source and violation.fix == (judged.row.fix or violated.fix)


# Ids of messages that the validator itself adds for any rule.
OF_ANY_RULE = {"not-checked", "not-judged", "further-findings"}


@every_rule
def test_the_ids_of_messages_are_well_formed_and_each_is_stated_once(rule: Rule) -> None:
    """A fault that shows both in a graph and in degrees alone is one `Finding` and one `Fault`."""
    assert message_ids(rule)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) and len(name) <= MAX_ID_CHARS for name in message_ids(rule))
    assert [stated for stated, times in Counter(stated_ids(rule)).items() if times > 1] == []
    assert OF_ANY_RULE.isdisjoint(message_ids(rule))


@every_rule
def test_the_corruptions_reach_every_message_of_a_rule_and_no_other(rule: Rule) -> None:
    reached = {
        violation.message_id
        for row in ROWS
        if rule.id in row.expected
        for violation in read(row.rule, row.name).violations
        if violation.rule == rule.id
    }  # fmt: skip
    assert reached - OF_ANY_RULE == set(message_ids(rule))


@every_rule
def test_a_finding_gives_the_value_or_what_would_pass(rule: Rule) -> None:
    for _, violation in findings(rule):
        assert violation.value is not None or violation.expected is not None, violation.message
