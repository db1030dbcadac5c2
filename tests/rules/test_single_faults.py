"""Exactly one rule names each single fault, wherever it is made.

Faults are made at the first and the last place of each kind, and nightly at every place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

from ..examples import of_each_kind

Document = dict[str, Any]
BASES = (
    "dense-1", "dense-pp2-tp2", "dense-sp2-tp2", "dense-dp2-tp2", "moe-1", "moe-ep2", "mla-tp2-ep2-pp2", "sliding-tp2",
    "disaggregated-tp2", "relaxed-attention-dp4", "relaxed-tp-in-expert", "relaxed-kv-sp2",
)  # fmt: skip


def _edges(document: Document, change: Callable[[list[Any], int], None]) -> Iterator[Document]:
    types = {node["id"]: node["type"] for node in document["nodes"]}

    def kind(place: int) -> tuple[str, ...]:
        edge = document["edges"][place]
        return edge["type"], types[edge["source"]], types[edge["target"]]

    for place in of_each_kind(range(len(document["edges"])), kind):
        edges = [dict(edge) for edge in document["edges"]]
        change(edges, place)
        yield {**document, "edges": edges}


def dropped_edges(document: Document) -> Iterator[Document]:
    """Plans, each without one edge."""
    yield from _edges(document, lambda edges, place: edges.pop(place))


def dangling_edges(document: Document) -> Iterator[Document]:
    """Plans, each with one edge to a node that does not exist."""
    yield from _edges(document, lambda edges, place: edges[place].update(target="no such node"))


def doubled_edges(document: Document) -> Iterator[Document]:
    """Plans, each with one edge twice."""
    yield from _edges(document, lambda edges, place: edges.append(dict(edges[place])))


def mistyped_edges(document: Document) -> Iterator[Document]:
    """Plans, each with another type of one edge."""
    others = {"data": "synchronization", "synchronization": "pipeline", "pipeline": "data"}
    yield from _edges(document, lambda edges, place: edges[place].update(type=others[edges[place]["type"]]))


def edges_out_of_their_scope(document: Document) -> Iterator[Document]:
    """Plans, each with one edge to the root."""
    yield from _edges(document, lambda edges, place: edges[place].update(target="request"))


def _nodes(document: Document, change: Callable[[Document], None], *types: str) -> Iterator[Document]:
    nodes = document["nodes"]
    for place in of_each_kind(range(len(nodes)), lambda place: (nodes[place]["type"], *sorted(nodes[place]))):
        if not types or nodes[place]["type"] in types:
            changed = copy.deepcopy(nodes[place])
            change(changed)
            yield {**document, "nodes": [*nodes[:place], changed, *nodes[place + 1 :]]}


def orphans(document: Document) -> Iterator[Document]:
    """Plans, each with one node below the root that lost its parent."""
    for changed in _nodes(document, lambda node: node.update(parent=None)):
        if changed != document:
            yield changed


def lost_parents(document: Document) -> Iterator[Document]:
    """Plans, each with one node whose parent does not exist."""
    for changed in _nodes(document, lambda node: node.update(parent="no such node")):
        if all(node["type"] != "RequestNode" or node["parent"] is None for node in changed["nodes"]):
            yield changed


def strange_devices(document: Document) -> Iterator[Document]:
    """Plans, each with one node whose first device is not in the inventory."""
    for changed in _nodes(document, lambda node: node.get("devices", [""]).__setitem__(0, "n9.g9")):
        if changed != document:
            yield changed


def repeated_devices(document: Document) -> Iterator[Document]:
    """Plans, each with one list of devices whose second is the first again."""

    def repeat(node: Document) -> None:
        if len(node.get("devices", ())) > 1:
            node["devices"][1] = node["devices"][0]

    for changed in _nodes(document, repeat):
        if changed != document:
            yield changed


def dropped_leaves(document: Document) -> Iterator[Document]:
    """Plans, each without one childless node and its edges."""
    holders = {node["parent"] for node in document["nodes"]}
    leaves = [node for node in document["nodes"] if node["id"] not in holders]
    for leaf in of_each_kind(leaves, lambda node: node["type"]):
        nodes = [node for node in document["nodes"] if node is not leaf]
        edges = [edge for edge in document["edges"] if leaf["id"] not in (edge["source"], edge["target"])]
        yield {**document, "nodes": nodes, "edges": edges}


FAULTS = (
    dropped_edges, dangling_edges, doubled_edges, mistyped_edges, edges_out_of_their_scope, orphans, lost_parents,
    strange_devices, repeated_devices, dropped_leaves,
)  # fmt: skip


@pytest.mark.one_in(11)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("base", BASES)
def test_a_single_fault_is_named_by_one_rule(base: str, fault: Callable[[Document], Iterator[Document]]) -> None:
    for document in fault(base_plan(base)):
        errors = [violation for violation in validate(document).violations if violation.severity == "error"]
        assert len({violation.rule for violation in errors}) == 1, [violation.message for violation in errors]
