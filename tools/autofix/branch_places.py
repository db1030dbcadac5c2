"""Reads a phase branch that one wrong field has misnamed or misplaced as the rest of the plan shows it.

A branch is named by what its KV cache edges show, unless the declared replicas bear its own name out. A replica without
a branch gets back one that hangs below no replica, else one that its own replica has too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..plan.degrees import root_replicas
from ..plan.document import PHASES, Phase
from ..plan.view import NodeView, PhaseView, PlanView, as_int, as_list, as_mapping
from ..rules.reading import is_cache_edge
from .placing import MOST_DEVICES


def branches_in_place(view: PlanView) -> PlanView:
    """`view`, or one of the same document in which every such branch has its name and its replica."""
    fields: dict[int, dict[str, Any]] = {}
    for branch, field, value in (*_named(view), *_placed(view)):
        fields.setdefault(branch.position, {})[field] = value
    if not fields:
        return view
    nodes = [
        {**as_mapping(node), **fields[place]} if place in fields else node
        for place, node in enumerate(as_list(view.raw.get("nodes")))
    ]
    return PlanView({**view.raw, "nodes": nodes})


def declared_replicas(view: PlanView) -> dict[Phase, int]:
    """The replicas that the strategy block states for each phase; only counts that can be."""
    counts: dict[Phase, int | None] = {
        phase: as_int(as_mapping(view.strategy.get(phase)).get("replicas")) for phase in PHASES
    }
    return {phase: count for phase, count in counts.items() if count is not None and 1 <= count <= MOST_DEVICES}


def _named(view: PlanView) -> Iterator[tuple[NodeView, str, str]]:
    """The phase of each branch that is named otherwise."""
    shown = _phases_by_edges(view)
    misnamed = [branch for branch in view.phases if shown.get(branch.node.position, branch.phase) != branch.phase]
    declared = declared_replicas(view)
    counts = {phase: sum(branch.phase == phase for branch in view.phases) for phase in PHASES}
    if not declared or any(counts[phase] != declared[phase] for phase in declared):
        yield from ((branch.node, "phase", shown[branch.node.position]) for branch in misnamed)


def _phases_by_edges(view: PlanView) -> dict[int, Phase]:
    """The phase of each branch, by position, whose KV cache edges to others all lead in, or all out."""
    directions: dict[int, set[Phase]] = {}
    for _, source, target in filter(lambda link: is_cache_edge(link[0]), view.links):
        writer, reader = source.ancestor("PhaseNode"), target.ancestor("PhaseNode")
        if writer is not None and reader is not None and writer is not reader:
            directions.setdefault(writer.position, set()).add("prefill")
            directions.setdefault(reader.position, set()).add("decode")
    return {place: phase for place, phases in directions.items() if len(phases) == 1 for phase in phases}


def _placed(view: PlanView) -> Iterator[tuple[NodeView, str, str]]:
    """The replica of each branch that is to hang below another one."""
    replicas = root_replicas(view)
    bare = [replica for replica in replicas if not replica.children_of_type("PhaseNode")]
    astray = [branch for branch in view.phases if branch.node.parent is not branch.replica]
    for replica in bare:
        # Nodes of one replica stand together in a document.
        ranked = sorted(astray or _surplus(view), key=lambda branch: abs(branch.node.position - replica.position))
        for branch in ranked[:1]:
            yield branch.node, "parent", replica.id
            astray = [other for other in astray if other is not branch]


def _surplus(view: PlanView) -> list[PhaseView]:
    """The branches of replicas that have several, if each replica is declared to serve one phase."""
    if sum(declared_replicas(view).values()) != len(root_replicas(view)):
        return []
    by_replica = [list(chain.from_iterable(phases.values())) for phases in view.served.values()]
    return [branch for branches in by_replica if len(branches) > 1 for branch in branches]
