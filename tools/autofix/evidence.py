"""How well a node of one plan answers to a node of another: points for every fact that both state alike.

A node's own facts (index, layers, rank, role), the devices that it and its parts run on, what hangs below it and what
its edges join are evidence, each worth what it is seldom wrong by; an id is none. It decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Set
from functools import cached_property

from ..plan.view import COLLECTIVE_TYPES, NodeView, PlanView

# Ranges compared with ranges; lists of more are no expert groups of anybody.
_MAX_RANGE_PAIRS = 10_000
_CONTAINERS = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode"})


def group_of(node: NodeView) -> str:
    """Nodes of one group may stand for one another: collectives of any kind, else nodes of one type."""
    return "collective" if node.type in COLLECTIVE_TYPES else node.type


def signature(node: NodeView) -> Hashable:
    """All that a node says of itself, and of a run of layers what is below it."""
    return (
        node.type,
        (node.layers, node.period, frozenset(parts_of(node).items())) if node.type == "LayerBlockNode" else None,
        node.role,
        node.offset,
        frozenset((name, place) for name, place in node.rank.items() if place),
        frozenset(node.devices),
        node.expert_ranges,
    )


def parts_of(node: NodeView) -> Counter[Hashable]:
    """What hangs directly below the node: group, offset and layers of each."""
    return Counter((group_of(child), child.offset, child.layers) for child in node.children)


def overlap(one: Set[Hashable], other: Set[Hashable]) -> float:
    """Shared members as a part of all of them; two empty sets share nothing."""
    return len(one & other) / len(one | other) if one and other else 0.0


class Facts:
    """What is read of every node of one plan for comparison: devices below it, the shape of what hangs there."""

    def __init__(self, view: PlanView) -> None:
        self.view = view
        self._parts: dict[int, Counter[Hashable]] = {}

    @cached_property
    def _devices(self) -> Mapping[int, set[str]]:
        found: dict[int, set[str]] = {}
        for node in self.view.nodes:
            if node.devices:
                found.setdefault(node.position, set()).update(node.devices)
                for above in node.ancestors():
                    found.setdefault(above.position, set()).update(node.devices)
        return found

    def devices(self, node: NodeView) -> Set[str]:
        """Devices that the node and what hangs below it name."""
        return self._devices.get(node.position, set())

    def parts(self, node: NodeView) -> Counter[Hashable]:
        """What hangs directly below the node."""
        if node.position not in self._parts:
            self._parts[node.position] = parts_of(node)
        return self._parts[node.position]

    @cached_property
    def cache_writers(self) -> Set[int]:
        """Positions of phases out of which a KV cache is handed to another scope."""
        return self._ends(is_source=True)

    @cached_property
    def cache_readers(self) -> Set[int]:
        """Positions of phases into which a KV cache is handed."""
        return self._ends(is_source=False)

    def _ends(self, *, is_source: bool) -> Set[int]:
        found: set[int] = set()
        for edge in self.view.edges:
            source, target = edge.source, edge.target
            if source is None or target is None or source.type != "KVCacheUpdateNode" or target.type != "AttentionNode":
                continue
            phase = (source if is_source else target).ancestor("PhaseNode")
            if phase is not None and source.parent is not target:
                found.add(phase.position)
        return found


def neighbours(node: NodeView) -> Set[Hashable]:
    """The groups that its edges come from and lead to, with the way of each."""
    found: set[Hashable] = {("in", group_of(edge.source)) for edge in node.edges_in if edge.source is not None}
    found.update(("out", group_of(edge.target)) for edge in node.edges_out if edge.target is not None)
    return found


def score(author: Facts, one: NodeView, reference: Facts, other: NodeView) -> float:
    """Points for `one` of the author's plan standing for `other` of the reference's; both are of one group."""
    points = 4 * overlap(author.devices(one), reference.devices(other))
    if one.type == "PhaseNode":
        return points + _phase_points(author, one, reference, other)
    if one.type in _CONTAINERS:
        points += 2 * (one.index is not None and one.index == other.index)
        points += 4 * _layer_overlap(one, other) + (one.period == other.period)
        return points + 3 * _likeness(author.parts(one), reference.parts(other))
    points += 2 * (one.type == other.type) + (one.offset == other.offset)
    if one.type in COLLECTIVE_TYPES:
        points += 2 * (one.role == other.role)
    if one.type == "ShardNode":
        points += 5 * _rank_points(one, other)
    if one.type == "ExpertNode":
        points += 3 * _expert_overlap(one, other)
    return points + 3 * overlap(neighbours(one), neighbours(other))


def _phase_points(author: Facts, one: NodeView, reference: Facts, other: NodeView) -> float:
    is_decode = other.raw.get("phase") == "decode"
    points = 3.0 * (one.raw.get("phase") == other.raw.get("phase"))
    states_steps = one.raw.get("tokens_per_step") is not None or one.raw.get("recurrence") is not None
    points += 2 * (states_steps == is_decode)
    points += 2 * (one.position in author.cache_readers) * is_decode
    points += 2 * (one.position in author.cache_writers) * (not is_decode)
    return points + 2 * _likeness(author.parts(one), reference.parts(other))


def _likeness(one: Counter[Hashable], other: Counter[Hashable]) -> float:
    total = (one | other).total()
    return (one & other).total() / total if total else 0.0


def _layer_overlap(one: NodeView, other: NodeView) -> float:
    if one.layers is None or other.layers is None:
        return 0.0
    shared = min(one.layers[1], other.layers[1]) - max(one.layers[0], other.layers[0]) + 1
    spanned = max(one.layers[1], other.layers[1]) - min(one.layers[0], other.layers[0]) + 1
    return max(0, shared) / spanned if spanned > 0 else 0.0


def _rank_points(one: NodeView, other: NodeView) -> float:
    names = {name for name, place in [*one.rank.items(), *other.rank.items()] if place}
    if not names:
        return 1.0
    return sum(one.rank.get(name, 0) == other.rank.get(name, 0) for name in names) / len(names)


def _expert_overlap(one: NodeView, other: NodeView) -> float:
    mine, theirs = one.expert_ranges, other.expert_ranges
    if not mine or not theirs or len(mine) * len(theirs) > _MAX_RANGE_PAIRS:
        return 0.0
    shared = sum(max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) for a in mine for b in theirs)
    sizes = sum(last - first + 1 for first, last in (*mine, *theirs))
    return shared / max(1, sizes - shared)
