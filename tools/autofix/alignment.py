"""Matches the nodes of an author's plan to the nodes of a reference plan, from the root down.

Inside a container the author's children are matched to the reference's one to one, the best evidence first. Reference
nodes without a match there are looked for among the author's unmatched nodes elsewhere, which need stronger evidence.

Evidence is every fact that two nodes state alike: index, layers, rank and role, the devices that they and their parts
run on, the nodes below them and the ends of their edges. Any plan can be aligned with any; ids are never compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain

from msgspec import Struct

from ..plan.view import COLLECTIVE_TYPES, NodeView, PlanView
from ..rules.reading import is_cache_edge

# With more pairs than this in one container, nodes are paired in order instead of by points.
_MAX_PAIRS = 100_000
# Points that a node must have to be taken from a place where the reference has none of its kind.
_ENOUGH_ELSEWHERE = 5.0
# Always matched by points: what these nodes state themselves is too little to identify them.
_WEIGHED = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode"})
# Pairs of expert ranges that are compared; real expert groups have fewer.
_MAX_RANGE_PAIRS = 10_000
_CONTAINERS = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode"})


class Alignment(Struct, frozen=True):
    """A reference plan, and pairs of nodes: `author_of` by id of its node, `reference_of` by id of the author's."""

    view: PlanView
    author_of: Mapping[str, str]
    reference_of: Mapping[str, str]


def align(author: PlanView, reference: PlanView) -> Alignment:
    """Match `author`'s nodes to `reference`'s. Of nodes that share an id only the first takes part."""
    pairing = _Pairing(author, reference)
    pairing.run()
    author_of = {reference.nodes[at].id: pairing.nodes[author_at].id for at, author_at in pairing.author_of.items()}
    return Alignment(reference, author_of, {author_id: name for name, author_id in author_of.items()})


class _Pairing:
    def __init__(self, author: PlanView, reference: PlanView) -> None:
        self.nodes = {node.position: node for node in author.nodes if author.by_id.get(node.id) is node}
        self.facts, self.reference_facts = _Facts(author), _Facts(reference)
        self.reference = reference
        # By position: ranks that the author counts from another number, counted as the reference does.
        self.ranks: dict[int, dict[str, int]] = {}
        # The author's position by the reference's, and the other way round.
        self.author_of: dict[int, int] = {}
        self.reference_of: dict[int, int] = {}

    def run(self) -> None:
        roots = [node for node in self.reference.nodes if node.parent is None]
        self._assign([node for node in self.nodes.values() if node.parent_id is None], roots, 0.0)
        self._assign(self._free(), [node for node in roots if node.position not in self.author_of], 0.0)
        self._pair_below(roots)
        # Only now is it known which nodes have no match in their own place.
        for level in self._levels(roots):
            self._pair_below(self._find_elsewhere([child for parent in level for child in parent.children]))

    @staticmethod
    def _levels(roots: Sequence[NodeView]) -> Iterable[Sequence[NodeView]]:
        level = list(roots)
        while level:
            yield level
            level = [child for node in level for child in node.children]

    def _free(self) -> list[NodeView]:
        return [node for node in self.nodes.values() if node.position not in self.reference_of]

    def _pair_below(self, roots: Sequence[NodeView]) -> None:
        for parent in chain.from_iterable(self._levels(roots)):
            author_at = self.author_of.get(parent.position)
            children = [] if author_at is None else self.nodes[author_at].children
            free = [node for node in children if node.position in self.nodes and node.position not in self.reference_of]
            self._assign(free, parent.children, 0.0)

    def _find_elsewhere(self, wanted: Sequence[NodeView]) -> list[NodeView]:
        """Match the unmatched nodes of `wanted` with the author's unmatched nodes; return those that found one."""
        missing = [node for node in wanted if node.position not in self.author_of]
        if missing:
            groups = {_group_of(node) for node in missing}
            strays = [node for node in self._free() if _group_of(node) in groups]
            self._assign(strays, missing, _ENOUGH_ELSEWHERE)
        return [node for node in missing if node.position in self.author_of]

    def _assign(self, nodes: Sequence[NodeView], references: Sequence[NodeView], min_points: float) -> None:
        groups: dict[str, tuple[list[NodeView], list[NodeView]]] = {}
        for place, side in enumerate((references, nodes)):
            for node in side:
                groups.setdefault(_group_of(node), ([], []))[place].append(node)
        for in_reference, in_author in groups.values():
            self._assign_group(in_author, in_reference, min_points)

    def _assign_group(self, nodes: Sequence[NodeView], references: Sequence[NodeView], min_points: float) -> None:
        if not nodes or not references:
            return
        if nodes[0].type == "ShardNode" and not min_points:
            self.ranks.update(_counted_alike(nodes, references))
        if nodes[0].type not in _WEIGHED and not min_points:
            nodes, references = self._take_alike(nodes, references)
        if len(nodes) * len(references) > _MAX_PAIRS:
            if not min_points:
                for node, reference in zip(sorted(nodes, key=_order), sorted(references, key=_order), strict=False):
                    self._take(node, reference)
            return
        ranked = sorted(
            (-self._points(node, wanted, elsewhere=min_points > 0), place, node.id, node.position, wanted.position)
            for node in nodes
            for place, wanted in enumerate(references)
        )
        for points, _, _, author_at, reference_at in ranked:
            if -points >= min_points and author_at not in self.reference_of and reference_at not in self.author_of:
                self._take(self.nodes[author_at], self.reference.nodes[reference_at])

    def _take_alike(
        self, nodes: Sequence[NodeView], references: Sequence[NodeView]
    ) -> tuple[Sequence[NodeView], Sequence[NodeView]]:
        """Pair nodes whose signature is unique on both sides; return the others."""
        signatures = {node.position: _signature(node, self.ranks.get(node.position, node.rank)) for node in nodes}
        author_counts = Counter(signatures.values())
        by_signature: dict[Hashable, NodeView] = {signatures[node.position]: node for node in nodes}
        reference_counts = Counter(_signature(reference, reference.rank) for reference in references)
        for reference in references:
            signature = _signature(reference, reference.rank)
            if author_counts[signature] == reference_counts[signature] == 1:
                self._take(by_signature[signature], reference)
        return (
            [node for node in nodes if node.position not in self.reference_of],
            [node for node in references if node.position not in self.author_of],
        )

    def _take(self, node: NodeView, reference: NodeView) -> None:
        self.author_of[reference.position] = node.position
        self.reference_of[node.position] = reference.position

    def _points(self, node: NodeView, reference: NodeView, *, elsewhere: bool) -> float:
        points = _score(self.facts, node, self.reference_facts, reference) + self._linked(node, reference)
        if node.type == "ShardNode":
            points += 5 * _rank_points(self.ranks.get(node.position, node.rank), reference.rank)
        if elsewhere:
            # A point for every ancestor of the reference's node that matches an ancestor of the author's.
            around = {self.reference_of.get(scope.position) for scope in node.ancestors()}
            points += sum(scope.position in around for scope in reference.ancestors())
        return points

    def _linked(self, node: NodeView, reference: NodeView) -> float:
        """Points for edges that join both nodes to ends that are matched."""
        if not node.edges_in and not node.edges_out:
            return 0.0
        ends = {self.reference_of.get(edge.source.position) for edge in node.edges_in if edge.source is not None}
        ends |= {self.reference_of.get(edge.target.position) for edge in node.edges_out if edge.target is not None}
        reference_ends = {edge.source.position for edge in reference.edges_in if edge.source is not None}
        reference_ends |= {edge.target.position for edge in reference.edges_out if edge.target is not None}
        return 3.0 * len(ends & reference_ends) / len(reference_ends) if reference_ends else 0.0


def _order(node: NodeView) -> tuple[int, tuple[int, int], tuple[tuple[str, int], ...], tuple[str, ...], str]:
    """Sort key of nodes that are paired in order: index, layers, rank, devices, name."""
    index = node.index if node.index is not None else 1 << 60
    return index, node.layers or (1 << 60, 0), tuple(sorted(node.rank.items())), node.devices, node.id


class _Facts:
    """Facts of a plan's nodes by position: the parts directly below each, and the devices at and below it.

    `cache_writers` and `cache_readers` are the positions of phases that send, and receive, a KV cache.
    """

    def __init__(self, view: PlanView) -> None:
        self.parts = {node.position: _parts_of(node) for node in view.nodes}
        self.devices: dict[int, set[str]] = {node.position: set(node.devices) for node in view.nodes}
        for node in view.nodes:
            for above in node.ancestors() if node.devices else ():
                self.devices.setdefault(above.position, set()).update(node.devices)
        self.cache_writers: set[int] = set()
        self.cache_readers: set[int] = set()
        for _, source, target in filter(lambda link: is_cache_edge(link[0]), view.links):
            for end, phases in ((source, self.cache_writers), (target, self.cache_readers)):
                phase = end.ancestor("PhaseNode")
                if phase is not None:
                    phases.add(phase.position)


def _group_of(node: NodeView) -> str:
    """Nodes of one group may stand for one another: collectives of any kind, else nodes of one type."""
    return "collective" if node.type in COLLECTIVE_TYPES else node.type


def _counted_alike(nodes: Sequence[NodeView], references: Sequence[NodeView]) -> dict[int, dict[str, int]]:
    """Ranks of the author's nodes by position, counted as the reference's; empty unless all differ by one offset."""
    shifts: dict[str, int] = {}
    for name in {name for node in (*nodes, *references) for name in node.rank}:
        ranks, wanted = (sorted(node.rank.get(name, 0) for node in side) for side in (nodes, references))
        offsets = {rank - reference for rank, reference in zip(ranks, wanted, strict=False)}
        if len(ranks) == len(wanted) and len(offsets) == 1:
            shifts[name] = offsets.pop()
    if not any(shifts.values()):
        return {}
    return {
        node.position: {**node.rank, **{name: node.rank.get(name, 0) - shift for name, shift in shifts.items()}}
        for node in nodes
    }


def _signature(node: NodeView, rank: Mapping[str, int]) -> Hashable:
    """Everything that a node with this `rank` states itself; for a run of layers also its parts."""
    return (
        node.type,
        (node.layers, node.period, _parts_of(node)) if node.type == "LayerBlockNode" else None,
        node.role,
        node.offset,
        frozenset((name, place) for name, place in rank.items() if place),
        frozenset(node.devices),
        node.expert_ranges,
    )


def _parts_of(node: NodeView) -> frozenset[Hashable]:
    """Group, offset and layers of each child; equal children are numbered."""
    times: Counter[Hashable] = Counter()
    parts: list[Hashable] = []
    for child in node.children:
        part = _group_of(child), child.offset, child.layers
        times[part] += 1
        parts.append((part, times[part]))
    return frozenset(parts)


def _overlap(first: Set[Hashable], second: Set[Hashable]) -> float:
    """The share of all members that both sets have, 0 to 1; two empty sets share nothing."""
    return len(first & second) / len(first | second) if first and second else 0.0


def _neighbours(node: NodeView) -> Set[Hashable]:
    """The groups that the node's edges come from and lead to, each with its direction."""
    groups: set[Hashable] = {("in", _group_of(edge.source)) for edge in node.edges_in if edge.source is not None}
    groups.update(("out", _group_of(edge.target)) for edge in node.edges_out if edge.target is not None)
    return groups


def _score(facts: _Facts, node: NodeView, reference_facts: _Facts, reference: NodeView) -> float:
    """Points for matching the author's `node` with `reference`; both are of one group."""
    points = 4 * _overlap(facts.devices[node.position], reference_facts.devices[reference.position])
    if node.type == "PhaseNode":
        return points + _phase_points(facts, node, reference_facts, reference)
    if node.type in _CONTAINERS:
        points += 2 * (node.index is not None and node.index == reference.index)
        points += 4 * _layer_overlap(node, reference) + (node.period == reference.period)
        return points + 3 * _overlap(facts.parts[node.position], reference_facts.parts[reference.position])
    points += 2 * (node.type == reference.type) + (node.offset == reference.offset)
    if node.type in COLLECTIVE_TYPES:
        points += 2 * (node.role == reference.role)
    if node.type == "ExpertNode":
        points += 3 * _expert_overlap(node, reference)
    return points + 3 * _overlap(_neighbours(node), _neighbours(reference))


def _phase_points(facts: _Facts, node: NodeView, reference_facts: _Facts, reference: NodeView) -> float:
    is_decode = reference.raw.get("phase") == "decode"
    points = 3.0 * (node.raw.get("phase") == reference.raw.get("phase"))
    states_steps = node.raw.get("tokens_per_step") is not None or node.raw.get("recurrence") is not None
    points += 2 * (states_steps == is_decode)
    points += 2 * (node.position in facts.cache_readers) * is_decode
    points += 2 * (node.position in facts.cache_writers) * (not is_decode)
    return points + 2 * _overlap(facts.parts[node.position], reference_facts.parts[reference.position])


def _layer_overlap(node: NodeView, reference: NodeView) -> float:
    if node.layers is None or reference.layers is None:
        return 0.0
    shared = min(node.layers[1], reference.layers[1]) - max(node.layers[0], reference.layers[0]) + 1
    spanned = max(node.layers[1], reference.layers[1]) - min(node.layers[0], reference.layers[0]) + 1
    return max(0, shared) / spanned if spanned > 0 else 0.0


def _rank_points(rank: Mapping[str, int], reference: Mapping[str, int]) -> float:
    names = {name for name, place in [*rank.items(), *reference.items()] if place}
    if not names:
        return 1.0
    return sum(rank.get(name, 0) == reference.get(name, 0) for name in names) / len(names)


def _expert_overlap(node: NodeView, reference: NodeView) -> float:
    ranges, reference_ranges = node.expert_ranges, reference.expert_ranges
    if not ranges or not reference_ranges or len(ranges) * len(reference_ranges) > _MAX_RANGE_PAIRS:
        return 0.0
    shared = sum(max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) for a in ranges for b in reference_ranges)
    sizes = sum(last - first + 1 for first, last in (*ranges, *reference_ranges))
    return shared / max(1, sizes - shared)
