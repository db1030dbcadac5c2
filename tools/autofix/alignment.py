"""Which node of an author's plan stands for which node of a reference plan, found from the root down.

Inside a container the author's children are assigned to the reference's one to one, the best evidence first. Nodes of
the reference that find none there are looked for among the author's nodes that hang elsewhere and stand for nothing
yet: those must have evidence of their own. Any plan can be aligned with any; ids are never looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..plan.view import NodeView, PlanView
from .evidence import Facts, group_of, score, signature

# More pairs than this in one container are not weighed one by one: they are paired in order.
_MAX_PAIRS = 100_000
# Points that a node must have to be taken from a place where the reference has none of its kind.
_ENOUGH_ELSEWHERE = 5.0
# Weighed always: what one of them says of itself is too little to tell it by.
_WEIGHED = frozenset({"ReplicaNode", "PhaseNode", "PipelineStageNode"})


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of nodes: `author_of` by id of the reference's node, `reference_of` by id of the author's."""

    author_of: Mapping[str, str]
    reference_of: Mapping[str, str]


def align(author: PlanView, reference: PlanView) -> Alignment:
    """The assignment of `author`'s nodes to `reference`'s. Of nodes with one id only the first takes part."""
    pairing = _Pairing(author, reference)
    pairing.run()
    return Alignment(
        {reference.nodes[there].id: pairing.own[here].id for there, here in pairing.author_of.items()},
        {pairing.own[here].id: reference.nodes[there].id for there, here in pairing.author_of.items()},
    )


class _Pairing:
    def __init__(self, author: PlanView, reference: PlanView) -> None:
        self.own = {node.position: node for node in author.nodes if author.by_id.get(node.id) is node}
        self.facts, self.reference_facts = Facts(author), Facts(reference)
        self.reference = reference
        # By position: of the reference's node, the author's.
        self.author_of: dict[int, int] = {}
        self.taken: dict[int, int] = {}

    def run(self) -> None:
        roots = [node for node in self.reference.nodes if node.parent is None]
        self._assign([node for node in self.own.values() if node.parent_id is None], roots, 0.0)
        self._assign(self._free(), [node for node in roots if node.position not in self.author_of], 0.0)
        for level in self._levels(roots):
            for parent in level:
                self._pair_children(parent)
        # Only now is it known what stands for nothing where it hangs.
        for level in self._levels(roots):
            found = self._find_elsewhere([child for parent in level for child in parent.children])
            for below in self._levels(found):
                for parent in below:
                    self._pair_children(parent)

    @staticmethod
    def _levels(roots: Sequence[NodeView]) -> Iterable[Sequence[NodeView]]:
        level = list(roots)
        while level:
            yield level
            level = [child for node in level for child in node.children]

    def _free(self) -> list[NodeView]:
        return [node for node in self.own.values() if node.position not in self.taken]

    def _pair_children(self, parent: NodeView) -> None:
        here = self.author_of.get(parent.position)
        if here is None:
            return
        mine = [child for child in self.own[here].children if child.position in self.own]
        self._assign([child for child in mine if child.position not in self.taken], parent.children, 0.0)

    def _find_elsewhere(self, wanted: Sequence[NodeView]) -> list[NodeView]:
        """Look for what a level of the reference lacks among the author's nodes that stand for nothing yet."""
        missing = [node for node in wanted if node.position not in self.author_of]
        if missing:
            groups = {group_of(node) for node in missing}
            strays = [node for node in self._free() if group_of(node) in groups]
            self._assign(strays, missing, _ENOUGH_ELSEWHERE)
        return [node for node in missing if node.position in self.author_of]

    def _assign(self, mine: Sequence[NodeView], theirs: Sequence[NodeView], least: float) -> None:
        by_group: dict[str, list[NodeView]] = {}
        for node in mine:
            by_group.setdefault(group_of(node), []).append(node)
        wanted: dict[str, list[NodeView]] = {}
        for node in theirs:
            wanted.setdefault(group_of(node), []).append(node)
        for group, targets in wanted.items():
            self._assign_group(by_group.get(group, []), targets, least)

    def _assign_group(self, mine: Sequence[NodeView], theirs: Sequence[NodeView], least: float) -> None:
        if not mine or not theirs:
            return
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
        times = Counter(map(signature, mine))
        here: dict[Hashable, NodeView] = {signature(node): node for node in mine}
        there = Counter(map(signature, theirs))
        for other in theirs:
            said = signature(other)
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
        points = score(self.facts, one, self.reference_facts, other) + self._linked(one, other)
        if elsewhere:
            points += self._shared_scopes(one, other)
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

    def _shared_scopes(self, one: NodeView, other: NodeView) -> float:
        """A point for every scope around `other` that what is around `one` stands for."""
        around = {self.taken.get(node.position) for node in one.ancestors()}
        return float(sum(node.position in around for node in other.ancestors()))


def _order(node: NodeView) -> tuple[int, tuple[int, int], tuple[tuple[str, int], ...], tuple[str, ...], str]:
    """Sort key of nodes that are paired in order: index, layers, rank, devices, name."""
    index = node.index if node.index is not None else 1 << 60
    return index, node.layers or (1 << 60, 0), tuple(sorted(node.rank.items())), node.devices, node.id
