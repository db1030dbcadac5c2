"""ST003: `parent` forms one tree below the only RequestNode, each type below a type that may hold it.

A misplaced strategy (a shard on a stage, experts outside a MoE operator, a replica inside a phase) is reported by the
rule of that strategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..tree import PARENTS, allowed_parents


def _roots(view: PlanView) -> Iterator[Finding]:
    requests = [node for node in view.of_type("RequestNode") if view.by_id[node.id] is node]
    if not requests:
        yield Finding(
            "no-root",
            "the graph has no RequestNode",
            where="/nodes",
            expected="RequestNode",
            remedy="add the RequestNode",
        )
    for node in requests[1:]:
        yield Finding(
            "second-root",
            f"{label(node)} is a second RequestNode beside {label(requests[0])}", where=node, nodes=(requests[0],),
            value=len(requests), expected=1, remedy=f"drop {label(node)}, and hang what is below it elsewhere",
        )  # fmt: skip


def _parent_fault(view: PlanView, node: NodeView) -> Finding | None:
    allowed = allowed_parents(view, node)
    if node.parent is not None and node.parent.type in allowed:
        return None
    expected = sorted(allowed)
    if node.parent_id is None:
        if node.type == "RequestNode":
            return None
        return Finding(
            "no-parent", f"{label(node)} ({node.type}) has no parent; it hangs below a {' or '.join(expected)}",
            where=node, expected=expected, remedy=_remedy(node, expected),
        )  # fmt: skip
    parent = node.parent
    if parent is None or parent.type not in PARENTS or parent.type in allowed:
        return None
    if node.type == "RequestNode":
        return Finding(
            "root-with-parent", f"{label(node)} is the root: its parent is null", where=node, value=node.parent_id,
            remedy=f"set the parent of {label(node)} to null",
        )  # fmt: skip
    return Finding(
        "wrong-parent", f"{label(node)} ({node.type}) hangs below {label(parent)} ({parent.type}); it belongs below "
        f"a node of type {' or '.join(expected)}",
        where=node, value=parent.type, expected=expected, remedy=_remedy(node, expected),
    )  # fmt: skip


def _remedy(node: NodeView, expected: list[str]) -> str:
    return f"hang {label(node)} below a node of type {' or '.join(expected)}"


def _circles(view: PlanView) -> Iterator[Finding]:
    """Each cycle of parents once. Every node has one parent, so a walk that enters a new cycle ends in it."""
    walk_of: dict[int, int] = {}
    for start in view.nodes:
        path: list[NodeView] = []
        node: NodeView | None = start
        while node is not None and node.position not in walk_of:
            walk_of[node.position] = start.position
            path.append(node)
            node = view.by_id.get(node.parent_id) if node.parent_id is not None else None
        if node is not None and walk_of[node.position] == start.position and node in path:
            circle = path[path.index(node) :]
            names = " → ".join(shown(member.id) for member in circle[:4])
            yield Finding(
                "circle-of-parents",
                f"the parents of {names} lead in a circle", where=circle[0], nodes=circle, value=circle[0].parent_id,
                remedy=f"hang {shown(circle[0].id)} below a node outside of the circle",
            )  # fmt: skip


def check(view: PlanView) -> Iterator[Finding | None]:
    """Yield every node that is not in its place in the tree."""
    yield from _roots(view)
    circled: set[str] = set()
    for finding in _circles(view):
        circled.update(finding.node_ids)
        yield finding
    named = circled | {node.id for node in view.of_type("RequestNode")[1:]}
    for node in view.nodes:
        if node.type in PARENTS and node.id not in named:
            yield _parent_fault(view, node)


_STRAY = {"id": "stray", "type": "LinearNode", "parent": "r0.decode.s0", "devices": ["n0.g0"]}

RULE = Rule(
    id="ST003",
    name="misplaced node",
    requirement="`parent` forms one tree rooted at the only RequestNode, each type under a type that may hold it.",
    rationale=(
        "The tree is how scopes are read: what a phase, a stage or an operator consists of. A node outside it belongs "
        "to nothing and is computed by nobody."
    ),
    source="002 §2",
    remedy="hang the node below the type that holds it",
    visits="parts",
    check=check,
    bad=Example("dense-tp2", (Edit("add_node", value=_STRAY),)),
)
