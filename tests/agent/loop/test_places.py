"""Findings are reported from the root down, with what is right already; cyclic documents do no harm."""

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


def fault(rule: str, *nodes: str, edges: tuple[tuple[str, str], ...] = ()) -> Violation:
    return Violation(rule=rule, severity="error", message="m", nodes=nodes, edges=edges)


def test_of_one_rule_the_finding_nearest_the_root_comes_first_and_rules_keep_their_order() -> None:
    unordered = (fault("TP005", "leaf"), fault("ST003", "leaf"), fault("ST003", "middle"), fault("ST003", "root"))
    ordered = parents_first(unordered, TREE)
    assert [(ranked.rule, ranked.nodes[0]) for ranked in ordered] == [
        ("ST003", "root"), ("ST003", "middle"), ("ST003", "leaf"), ("TP005", "leaf")
    ]  # fmt: skip


def test_nodes_at_the_ends_of_a_faulty_edge_are_not_right() -> None:
    right = right_already([fault("ST006", edges=(("leaf", "nobody"),))], TREE)
    assert right == "3 of 4 nodes have no finding: keep them as they are; nothing in prefill is faulty"


def test_a_fault_of_no_node_leaves_the_graph_alone() -> None:
    right = right_already([fault("GP001")], TREE)
    assert right is not None and "4 nodes" in right


def test_nothing_is_said_where_nothing_is_wrong_or_there_is_no_graph() -> None:
    assert right_already([], TREE) is None
    assert right_already([fault("GP001")], {}) is None
    warning = fault("SP004").model_copy(update={"severity": "warning"})
    assert right_already([warning], TREE) is None


def test_nodes_that_hang_in_a_circle_or_are_no_nodes_have_a_place_all_the_same() -> None:
    odd = {"nodes": [{"id": "a", "parent": "b"}, {"id": "b", "parent": "a"}, 7, None, {"id": [], "parent": {}}, {}]}
    places = Places(odd)
    assert places.count == 6
    assert places.depth("a") > 0
    assert places.depth("nobody") == 0
    assert places.phase("a") is None
