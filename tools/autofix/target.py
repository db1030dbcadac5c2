"""The reference in the author's own names: every node and edge that the mended graph has, and what each should say.

Nodes that the author has keep his ids, new ones are named after the scope that they hang in; what an author may decide
inside an operator stays his (`freedoms.py`), and so do the LinearNodes that he shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..plan.document import Rank
from ..plan.view import NodeView, PlanView
from .freedoms import Pair, hosted_experts, shard_devices, shown_hostings
from .reference import Reference

Fields = Mapping[str, Any]
_SHOWN_IN = frozenset({"AttentionNode", "FFNNode", "ExpertNode"})


@dataclass(frozen=True, slots=True)
class Target:
    """What the graph should be. `nodes` by id and `edges` by their ends; `header` is all but these.

    `own` are the ids of nodes that the author has, `shown` those of his LinearNodes, which nothing is asked of but to
    be of the format.
    """

    nodes: Mapping[str, Fields]
    edges: Mapping[tuple[str, str], Fields]
    header: Fields
    own: frozenset[str]
    shown: frozenset[str]


def target_of(author: PlanView, reference: Reference) -> Target:
    """What `author`'s plan should be by `reference`."""
    names = _names(author, reference)
    changed = _decided_inside(author, reference)
    nodes = {
        names[node.id]: {
            **node.raw,
            **changed.get(node.id, {}),
            "id": names[node.id],
            "parent": None if node.parent_id is None else names[node.parent_id],
        }
        for node in reference.view.nodes
    }
    edges: dict[tuple[str, str], Fields] = {}
    for edge in reference.view.edges:
        ends = (names[edge.source_id], names[edge.target_id])
        edges[ends] = {**edge.raw, "source": ends[0], "target": ends[1]}
    return Target(
        nodes=nodes,
        edges=edges,
        header={name: value for name, value in reference.document.items() if name not in ("nodes", "edges")},
        own=frozenset(reference.alignment.reference_of),
        shown=frozenset(_shown(author, nodes)),
    )


def target_from(author: PlanView, document: Mapping[str, Any]) -> Target:
    """The target that `document` is: a whole plan in which ids of `author`'s mean his nodes."""
    nodes: dict[str, Fields] = {node["id"]: node for node in document["nodes"]}
    return Target(
        nodes=nodes,
        edges={(edge["source"], edge["target"]): edge for edge in document["edges"]},
        header={name: value for name, value in document.items() if name not in ("nodes", "edges")},
        own=frozenset(author.by_id.keys() & nodes),
        shown=frozenset(),
    )


def _names(author: PlanView, reference: Reference) -> dict[str, str]:
    """The name of every node of the reference in the author's plan: his own, else one after its parent's."""
    taken = {*author.by_id}
    names: dict[str, str] = {}
    for node in reference.view.nodes:
        own = reference.alignment.author_of.get(node.id)
        if own is None:
            parent = node.parent_id
            last = node.id if parent is None else node.id.removeprefix(parent).lstrip("./")
            wanted = last if parent is None else f"{names[parent]}.{last}"
            own, times = wanted, 1
            while own in taken:
                times += 1
                own = f"{wanted}-{times}"
            taken.add(own)
        names[node.id] = own
    return names


def _decided_inside(author: PlanView, reference: Reference) -> dict[str, dict[str, Any]]:
    """Fields of the reference's nodes that the author decided otherwise, as he may."""
    changed: dict[str, dict[str, Any]] = {}
    many = "redundant_experts" in author.relaxations
    for operator in reference.view.of_type("AttentionNode", "FFNNode", "MoENode"):
        shards = _pairs(author, reference, operator, "ShardNode")
        changed.update({name: {"devices": devices} for name, devices in shard_devices(shards).items()})
    hosting = [_pairs(author, reference, operator, "ExpertNode") for operator in reference.view.of_type("MoENode")]
    shown = shown_hostings(hosting)
    for groups in filter(None, hosting):
        changed.update({name: {"experts": own} for name, own in hosted_experts(groups, shown, many=many).items()})
    return changed


def _pairs(author: PlanView, reference: Reference, operator: NodeView, kind: str) -> list[Pair]:
    own = reference.alignment.author_of
    return [Pair(node, author.by_id.get(own.get(node.id, ""))) for node in operator.children_of_type(kind)]


def _shown(author: PlanView, nodes: Mapping[str, Fields]) -> Iterator[str]:
    """The author's LinearNodes that hang where they may, and are no shard of an expert or of what is not defined."""
    for node in author.of_type("LinearNode"):
        parent = nodes.get(node.parent_id or "")
        if author.by_id[node.id] is not node or parent is None or parent["type"] not in _SHOWN_IN:
            continue
        may_split = Rank.model_fields.keys() if parent["type"] != "ExpertNode" else set[str]()
        if node.devices and node.rank.keys() <= may_split:
            yield node.id
