"""Every node of a plan is matched with the same node of a reference, whatever its id and parent."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shardwright.tools.autofix.alignment import align
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.examples import base_names, base_plan

from .corrupted import rename


def found_again(author: dict[str, Any], name: str) -> dict[str, str]:
    """Id in the author's plan of each matched node of the base plan `name`."""
    return dict(align(PlanView(author), PlanView(base_plan(name))).author_of)


@pytest.mark.parametrize("name", base_names())
def test_a_plan_with_other_names_in_another_order_is_found_whole(name: str) -> None:
    document = base_plan(name)
    names = rename(document, random.Random(name))
    assert found_again(document, name) == {
        old: new for old, new in names.items() if any(node["id"] == new for node in document["nodes"])
    }


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", base_names())
def test_a_node_in_a_wrong_place_is_found(name: str) -> None:
    rng = random.Random(name)
    for _ in range(6):
        document = base_plan(name)
        moved = rng.choice([node for node in document["nodes"] if node["type"] not in ("RequestNode", "ReplicaNode")])
        moved["parent"] = rng.choice(["request", "nowhere"])
        assert found_again(document, name).get(moved["id"]) == moved["id"], moved


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", base_names())
def test_a_node_whose_own_facts_are_wrong_is_found(name: str) -> None:
    rng = random.Random(name)
    for _ in range(6):
        document = base_plan(name)
        wrong = rng.choice([node for node in document["nodes"] if len(node) > 3 and node["type"] != "PhaseNode"])
        field = rng.choice(sorted(wrong.keys() - {"id", "type", "parent", "kind"}) or ["kind"])
        wrong[field] = None
        assert found_again(document, name) == {node["id"]: node["id"] for node in document["nodes"]}, (wrong, field)


def test_what_has_no_counterpart_stands_for_nothing() -> None:
    document = base_plan("dense-tp2")
    extra = {"id": "extra", "type": "AllReduceNode", "parent": "r0.decode.s0.b0.ffn", "devices": ["n0.g0", "n0.g1"]}
    document["nodes"].insert(0, extra)
    assert "extra" not in found_again(document, "dense-tp2").values()
