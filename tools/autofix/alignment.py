"""Which node of an author's plan stands for which node of a reference plan, found from the root down.

Inside a container the author's children are assigned to the reference's one to one, the best evidence first. Nodes of
the reference that find none there are looked for among the author's nodes that hang elsewhere and stand for nothing
yet: those must have evidence of their own.

Evidence is every fact that two nodes state alike: index, layers, rank and role, the devices that they and their parts
run on, what hangs below them and what their edges join. Any plan can be aligned with any; ids are never looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain

from msgspec import Struct

from ..plan.view import COLLECTIVE_TYPES, NodeView, PlanView
from ..rules.reading import is_cache_edge

# More pairs than this in one container are not weighed one by one: they are paired in order.
_MAX_PAIRS = 100_000
# Points that a node must have to be taken from a place where the reference has none of its kind.
_ENOUGH_ELSEWHERE = 5.0
# Weighed always: what one of them says of itself is too little to tell it by.
_WEIGHED = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode"})
# Ranges compared with ranges; lists of more are no expert groups of anybody.
_MAX_RANGE_PAIRS = 10_000
_CONTAINERS = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode"})


class Alignment(Struct, frozen=True):
    """A reference plan, and pairs of nodes: `author_of` by id of its node, `reference_of` by id of the author's."""

    view: PlanView
    author_of: Mapping[str, str]
    reference_of: Mapping[str, str]


def align(author: PlanView, reference: PlanView) -> Alignment:
    """The assignment of `author`'s nodes to `reference`'s. Of nodes with one id only the first takes part."""
    pairing = _Pairing(author, reference)
    pairing.run()
    author_of = {reference.nodes[there].id: pairing.own[here].id for there, here in pairing.author_of.items()}
    return Alignment(reference, author_of, {here: there for there, here in author_of.items()})


class _Pairing:
    def __init__(self, author: PlanView, reference: PlanView) -> None:
        self.own = {node.position: node for node in author.nodes if author.by_id.get(node.id) is node}
        self.facts, self.reference_facts = _Facts(author), _Facts(reference)
        self.reference = reference
        # By position: ranks of the author's that are counted from another number, as they are meant.
        self.ranks: dict[int, dict[str, int]] = {}
        # By position: of the reference's node, the author's.
        self.author_of: dict[int, int] = {}
        self.taken: dict[int, int] = {}

    def run(self) -> None:
        roots = [node for node in self.reference.nodes if node.parent is None]
        self._assign([node for node in self.own.values() if node.parent_id is None], roots, 0.0)
        self._assign(self._free(), [node for node in roots if node.position not in self.author_of], 0.0)
        self._pair_below(roots)
        # Only now is it known what stands for nothing where it hangs.
        for level in self._levels(roots):
            self._pair_below(self._find_elsewhere([child for parent in level for child in parent.children]))

    @staticmethod
    def _levels(roots: Sequence[NodeView]) -> Iterable[Sequence[NodeView]]:
        level = list(roots)
        while level:
            yield level
            level = [child for node in level for child in node.children]

    def _free(self) -> list[NodeView]:
        return [node for node in self.own.values() if node.position not in self.taken]

    def _pair_below(self, roots: Sequence[NodeView]) -> None:
        for parent in chain.from_iterable(self._levels(roots)):
            here = self.author_of.get(parent.position)
            mine = [] if here is None else self.own[here].children
            free = [child for child in mine if child.position in self.own and child.position not in self.taken]
            self._assign(free, parent.children, 0.0)

    def _find_elsewhere(self, wanted: Sequence[NodeView]) -> list[NodeView]:
        """Look for what a level of the reference lacks among the author's nodes that stand for nothing yet."""
        missing = [node for node in wanted if node.position not in self.author_of]
        if missing:
            groups = {_group_of(node) for node in missing}
            strays = [node for node in self._free() if _group_of(node) in groups]
            self._assign(strays, missing, _ENOUGH_ELSEWHERE)
        return [node for node in missing if node.position in self.author_of]

    def _assign(self, mine: Sequence[NodeView], theirs: Sequence[NodeView], least: float) -> None:
        groups: dict[str, tuple[list[NodeView], list[NodeView]]] = {}
        for place, nodes in enumerate((theirs, mine)):
            for node in nodes:
                groups.setdefault(_group_of(node), ([], []))[place].append(node)
        for targets, own in groups.values():
            self._assign_group(own, targets, least)

    def _assign_group(self, mine: Sequence[NodeView], theirs: Sequence[NodeView], least: float) -> None:
        if not mine or not theirs:
            return
        if mine[0].type == "ShardNode" and not least:
            self.ranks.update(_counted_alike(mine, theirs))
        if mine[0].type not in _WEIGHED and not least:
            mine, theirs = self._take_alike(mine, theirs)
        if len(mine) * len(theirs) > _MAX_PAIRS:
            if not least:
                for one, other in zip(sorted(mine, key=_order), sorted(theirs, key=_order), strict=False):
                    self._take(one, other)
            return
        ranked = sorted(
            (-self._points(one, other, elsewhere=least > 0), place, one.id, one.position, other.position)
            for one in mine
            for place, other in enumerate(theirs)
        )
        for points, _, _, here, there in ranked:
            if -points >= least and here not in self.taken and there not in self.author_of:
                self._take(self.own[here], self.reference.nodes[there])

    def _take_alike(
        self, mine: Sequence[NodeView], theirs: Sequence[NodeView]
    ) -> tuple[Sequence[NodeView], Sequence[NodeView]]:
        """Pair nodes that say the same where nobody else does; gives back the others."""
        said_by = {node.position: _signature(node, self.ranks.get(node.position, node.rank)) for node in mine}
        times = Counter(said_by.values())
        here: dict[Hashable, NodeView] = {said_by[node.position]: node for node in mine}
        there = Counter(_signature(other, other.rank) for other in theirs)
        for other in theirs:
            said = _signature(other, other.rank)
            if times[said] == there[said] == 1:
                self._take(here[said], other)
        return (
            [node for node in mine if node.position not in self.taken],
            [node for node in theirs if node.position not in self.author_of],
        )

    def _take(self, one: NodeView, other: NodeView) -> None:
        self.author_of[other.position] = one.position
        self.taken[one.position] = other.position

    def _points(self, one: NodeView, other: NodeView, *, elsewhere: bool) -> float:
        points = _score(self.facts, one, self.reference_facts, other) + self._linked(one, other)
        if one.type == "ShardNode":
            points += 5 * _rank_points(self.ranks.get(one.position, one.rank), other.rank)
        if elsewhere:
            # A point for every scope around the reference's node that what is around the author's stands for.
            around = {self.taken.get(node.position) for node in one.ancestors()}
            points += sum(node.position in around for node in other.ancestors())
        return points

    def _linked(self, one: NodeView, other: NodeView) -> float:
        """Points for edges that join both to nodes that stand for one another."""
        if not one.edges_in and not one.edges_out:
            return 0.0
        mine = {self.taken.get(edge.source.position) for edge in one.edges_in if edge.source is not None}
        mine |= {self.taken.get(edge.target.position) for edge in one.edges_out if edge.target is not None}
        theirs = {edge.source.position for edge in other.edges_in if edge.source is not None}
        theirs |= {edge.target.position for edge in other.edges_out if edge.target is not None}
        return 3.0 * len(mine & theirs) / len(theirs) if theirs else 0.0


def _order(node: NodeView) -> tuple[int, tuple[int, int], tuple[tuple[str, int], ...], tuple[str, ...], str]:
    """Sort key of nodes that are paired in order: index, layers, rank, devices, name."""
    index = node.index if node.index is not None else 1 << 60
    return index, node.layers or (1 << 60, 0), tuple(sorted(node.rank.items())), node.devices, node.id


class _Facts:
    """What is read of a plan for comparison, by position of the node: devices at and below it, and what hangs there.

    `cache_writers` and `cache_readers` are the phases out of which, and into which, a KV cache is handed.
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
            for end, found in ((source, self.cache_writers), (target, self.cache_readers)):
                phase = end.ancestor("PhaseNode")
                if phase is not None:
                    found.add(phase.position)


def _group_of(node: NodeView) -> str:
    """Nodes of one group may stand for one another: collectives of any kind, else nodes of one type."""
    return "collective" if node.type in COLLECTIVE_TYPES else node.type


def _counted_alike(mine: Sequence[NodeView], theirs: Sequence[NodeView]) -> dict[int, dict[str, int]]:
    """The ranks of `mine`, by position, counted from where `theirs` are where all differ by the same."""
    shifts: dict[str, int] = {}
    for name in {name for node in (*mine, *theirs) for name in node.rank}:
        own, wanted = (sorted(node.rank.get(name, 0) for node in nodes) for nodes in (mine, theirs))
        apart = {one - other for one, other in zip(own, wanted, strict=False)}
        if len(own) == len(wanted) and len(apart) == 1:
            shifts[name] = apart.pop()
    if not any(shifts.values()):
        return {}
    return {
        node.position: {**node.rank, **{name: node.rank.get(name, 0) - shift for name, shift in shifts.items()}}
        for node in mine
    }


def _signature(node: NodeView, rank: Mapping[str, int]) -> Hashable:
    """All that a node of such a `rank` says of itself, and of a run of layers what is below it."""
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
    """What hangs directly below the node: group, offset and layers of each, those that are alike numbered."""
    times: Counter[Hashable] = Counter()
    parts: list[Hashable] = []
    for child in node.children:
        part = _group_of(child), child.offset, child.layers
        times[part] += 1
        parts.append((part, times[part]))
    return frozenset(parts)


def _overlap(one: Set[Hashable], other: Set[Hashable]) -> float:
    """Shared members as a part of all of them; two empty sets share nothing."""
    return len(one & other) / len(one | other) if one and other else 0.0


def _neighbours(node: NodeView) -> Set[Hashable]:
    """The groups that its edges come from and lead to, with the way of each."""
    found: set[Hashable] = {("in", _group_of(edge.source)) for edge in node.edges_in if edge.source is not None}
    found.update(("out", _group_of(edge.target)) for edge in node.edges_out if edge.target is not None)
    return found


def _score(author: _Facts, one: NodeView, reference: _Facts, other: NodeView) -> float:
    """Points for `one` of the author's plan standing for `other` of the reference's; both are of one group."""
    points = 4 * _overlap(author.devices[one.position], reference.devices[other.position])
    if one.type == "PhaseNode":
        return points + _phase_points(author, one, reference, other)
    if one.type in _CONTAINERS:
        points += 2 * (one.index is not None and one.index == other.index)
        points += 4 * _layer_overlap(one, other) + (one.period == other.period)
        return points + 3 * _overlap(author.parts[one.position], reference.parts[other.position])
    points += 2 * (one.type == other.type) + (one.offset == other.offset)
    if one.type in COLLECTIVE_TYPES:
        points += 2 * (one.role == other.role)
    if one.type == "ExpertNode":
        points += 3 * _expert_overlap(one, other)
    return points + 3 * _overlap(_neighbours(one), _neighbours(other))


def _phase_points(author: _Facts, one: NodeView, reference: _Facts, other: NodeView) -> float:
    is_decode = other.raw.get("phase") == "decode"
    points = 3.0 * (one.raw.get("phase") == other.raw.get("phase"))
    states_steps = one.raw.get("tokens_per_step") is not None or one.raw.get("recurrence") is not None
    points += 2 * (states_steps == is_decode)
    points += 2 * (one.position in author.cache_readers) * is_decode
    points += 2 * (one.position in author.cache_writers) * (not is_decode)
    return points + 2 * _overlap(author.parts[one.position], reference.parts[other.position])


def _layer_overlap(one: NodeView, other: NodeView) -> float:
    if one.layers is None or other.layers is None:
        return 0.0
    shared = min(one.layers[1], other.layers[1]) - max(one.layers[0], other.layers[0]) + 1
    spanned = max(one.layers[1], other.layers[1]) - min(one.layers[0], other.layers[0]) + 1
    return max(0, shared) / spanned if spanned > 0 else 0.0


def _rank_points(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    names = {name for name, place in [*one.items(), *other.items()] if place}
    if not names:
        return 1.0
    return sum(one.get(name, 0) == other.get(name, 0) for name in names) / len(names)


def _expert_overlap(one: NodeView, other: NodeView) -> float:
    mine, theirs = one.expert_ranges, other.expert_ranges
    if not mine or not theirs or len(mine) * len(theirs) > _MAX_RANGE_PAIRS:
        return 0.0
    shared = sum(max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) for a in mine for b in theirs)
    sizes = sum(last - first + 1 for first, last in (*mine, *theirs))
    return shared / max(1, sizes - shared)
