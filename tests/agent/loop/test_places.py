"""Findings are told from the root downwards, with what is right already; documents that go in circles do no harm."""

from __future__ import annotations

from typing import Any

from shardwright.agent.loop.places import Places, parents_first, right_already
from shardwright.tools.rules.base import Violation

TREE: dict[str, Any] = {
    "nodes": [
        {"id": "leaf", "parent": "middle"},
        {"id": "middle", "parent": "root", "phase": "decode"},
        {"id": "root", "parent": None},
        {"id": "other", "parent": "root", "phase": "prefill"},
    ]
}


def found(rule: str, *nodes: str, edges: tuple[tuple[str, str], ...] = ()) -> Violation:
    return Violation(rule=rule, severity="error", message="m", nodes=nodes, edges=edges)


def test_of_one_rule_the_finding_nearest_the_root_comes_first_and_rules_keep_their_order() -> None:
    given = (found("TP005", "leaf"), found("ST003", "leaf"), found("ST003", "middle"), found("ST003", "root"))
    ordered = parents_first(given, TREE)
    assert [(one.rule, one.nodes[0]) for one in ordered] == [
        ("ST003", "root"), ("ST003", "middle"), ("ST003", "leaf"), ("TP005", "leaf")
    ]  # fmt: skip


def test_nodes_at_the_ends_of_a_faulty_edge_are_not_right() -> None:
    told = right_already([found("ST006", edges=(("leaf", "nobody"),))], TREE)
    assert told == "3 of 4 nodes have no finding: keep them as they are; nothing in prefill is faulty"


def test_a_fault_of_no_node_leaves_the_graph_alone() -> None:
    told = right_already([found("GP001")], TREE)
    assert told is not None and "4 nodes" in told


def test_nothing_is_said_where_nothing_is_wrong_or_there_is_no_graph() -> None:
    assert right_already([], TREE) is None
    assert right_already([found("GP001")], {}) is None
    warning = found("SP004").model_copy(update={"severity": "warning"})
    assert right_already([warning], TREE) is None


def test_nodes_that_hang_in_a_circle_or_are_no_nodes_have_a_place_all_the_same() -> None:
    odd = {"nodes": [{"id": "a", "parent": "b"}, {"id": "b", "parent": "a"}, 7, None, {"id": [], "parent": {}}, {}]}
    places = Places(odd)
    assert places.count == 6
    assert places.depth("a") > 0
    assert places.depth("nobody") == 0
    assert places.phase("a") is None
