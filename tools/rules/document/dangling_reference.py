"""ST002: names are unique and lead somewhere: node ids, parents, the ends of edges, the indices of replicas.

Of two edges with the same ends and type one is too many. The spelling of an id means nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import NodeView, PlanView, as_int
from ..base import Edit, Example, Finding, Rule, Violation
from ..findings import Change, Step, steps_of


def _nodes(view: PlanView) -> Iterator[Finding]:
    for node in view.duplicates:
        first = view.by_id[node.id]
        same = node.raw == first.raw
        yield Finding(
            "node-copied" if same else "id-twice",
            f"node id {shown(node.id)} stands again, on {'an exact copy' if same else 'a different node'}",
            where=node,
            value=node.id,
            remedy=f"drop the copy of {shown(node.id)}"
            if same
            else "rename one of the two, and the edges that mean it",
        )
    for node in view.nodes:
        if node.parent_id is not None and node.parent_id not in view.by_id:
            yield Finding(
                "no-such-parent",
                f"parent {shown(node.parent_id)} of {shown(node.id)} does not exist",
                where=node,
                value=node.parent_id,
            )


def _edges(view: PlanView) -> Iterator[Finding]:
    seen: set[tuple[str, str, str]] = set()
    for edge in view.edges:
        key = (edge.source_id, edge.target_id, edge.type)
        if edge.source is None or edge.target is None:
            lost = [end for end in (edge.source_id, edge.target_id) if end not in view.by_id]
            yield Finding(
                "no-such-end",
                f"the edge {shown(edge.source_id)} → {shown(edge.target_id)} names "
                f"{' and '.join(shown(end) for end in lost)}, and no node has that id",
                where=edge,
                value=lost,
                remedy="drop the edge, or name the node that it means",
            )
        elif key in seen:
            yield Finding(
                "edge-twice",
                f"a second {edge.type} edge {shown(edge.source_id)} → {shown(edge.target_id)}",
                where=edge,
                value=list(key),
                remedy="drop the second edge",
            )
        seen.add(key)


def _replicas(view: PlanView) -> Iterator[Finding]:
    replicas = [node for node in view.replicas if view.by_id[node.id] is node]
    indices = [node.index for node in replicas]
    stated = as_int(view.strategy.get("dp")) or 0
    # Some replicas are missing if there are fewer than declared (CO002), each with its own index.
    some_missing = len(set(indices)) == len(indices) < stated and all(index in range(stated) for index in indices)
    if replicas and indices != list(range(len(replicas))) and not some_missing:
        wrong = [node for place, node in enumerate(replicas) if node.index != place]
        yield Finding(
            "replica-indices",
            f"the {len(replicas)} replicas have the indices {indices!r:.120}; they run from 0, each once",
            where=wrong,
            value=indices,
            expected=list(range(len(replicas))),
            remedy="number the replicas from 0",
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every name that occurs twice or leads nowhere."""
    yield from _nodes(view)
    yield from _edges(view)
    yield from _replicas(view)


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Drop copies of a node; rename all but one of different nodes that share an id.

    Which node keeps the id does not depend on the order of the document. Names that lead nowhere are not mended here.
    """
    steps = steps_of(violation.path, view.raw) or ()
    yield from view.once(mend, lambda: _named_apart(view)).get(steps[:2], ())


def _named_apart(view: PlanView) -> dict[tuple[Step, ...], list[Change]]:
    """The changes for the nodes of each duplicate id, by the place of the finding that reports it."""
    again: dict[str, list[NodeView]] = {}
    for node in view.duplicates:
        again.setdefault(node.id, []).append(node)
    changes: dict[tuple[Step, ...], list[Change]] = {}
    for name, nodes in again.items():
        by_content: dict[str, NodeView] = {}
        of_name: list[Change] = []
        for node in (view.by_id[name], *nodes):
            if by_content.setdefault(json.dumps(node.raw, sort_keys=True, default=str), node) is not node:
                of_name.append(Change("remove", ("nodes", node.position), nodes=(name,)))
        for place, content in enumerate(sorted(by_content)[1:], start=2):
            of_name.append(
                Change("set", ("nodes", by_content[content].position, "id"), _free_name(view, f"{name}-{place}"))
            )
        # All changes are made with the first finding of the id; later ones have none.
        changes[("nodes", nodes[0].position)] = of_name
    return changes


def _free_name(view: PlanView, wanted: str) -> str:
    while wanted in view.by_id:
        wanted += "-"
    return wanted


RULE = Rule(
    id="ST002",
    name="dangling or doubled reference",
    requirement=(
        "Node ids are unique; every edge's ends and every parent exist; no two edges have the same ends and type; the "
        "replicas' indices run 0…n−1, each once."
    ),
    rationale="A name that means two nodes, or none, makes the rest of the graph a matter of guessing.",
    source="000 §7",
    remedy="give every node an id of its own and let every reference name one that exists",
    check=check,
    bad=Example(
        "dense-tp2",
        (Edit("add_edge", value={"source": "r0.decode.s0.b0.ffn", "target": "nowhere", "type": "data"}),),
    ),
    mend=mend,
)
