"""Folds a plan's tree: siblings that would be drawn alike are one item, runs and repeated patterns of them too.

Nodes are alike if they show the same but for names, ranks and devices, their children are alike, and edges of the same
kinds join them to nodes of the same types. The question is about the picture, not the plan: nothing is judged, and a
broken plan folds as far as its parts are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field
from msgspec.structs import replace

from ..plan.blocks import fold_sequence
from ..plan.elements import NodeView, as_str
from .box import Link, LinkKind
from .tree import ROOT, Join, Tree, in_reading_order

# Containers whose children follow one another; those of all others stand beside one another.
_IN_SEQUENCE = frozenset({"PhaseNode", "PipelineStageNode", "LayerBlockNode"})
# Runs of a sequence that patterns are looked for in; beyond it each run stands alone.
_MOST_RUNS = 128


class Item(Struct, frozen=True):
    """Nodes that are alike. A pattern that repeats has its parts in `inner`, each with its nodes of all `times`.

    `is_chained`: each is joined to the next, so that one stands for a chain of them. `edges_among` are all other edges
    between its nodes, which a box cannot show.
    """

    members: tuple[NodeView, ...]
    times: int = 1
    inner: tuple[Item, ...] = ()
    inner_links: tuple[Link, ...] = ()
    is_chained: bool = False
    edges_among: int = 0


class Family(Struct, frozen=True):
    """The children of one node, folded; links name items by their place."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]


class Folder(Struct):
    """Folds bottom up: `families` and `likeness` are of every node, by its position.

    Nodes that are drawn alike have the same number for their likeness. Different `marks`, by position, keep nodes
    apart: a remark on one node is not one on its likes.
    """

    tree: Tree
    marks: Mapping[int, Hashable] = field(default_factory=dict[int, Hashable])
    families: dict[int, Family] = field(default_factory=dict[int, Family])
    likeness: dict[int, int] = field(default_factory=dict[int, int])
    _numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def __post_init__(self) -> None:
        for node in self.tree.order:
            family = self.families[node.position] = self._family(node.position, node.type in _IN_SEQUENCE)
            parts = tuple([self._shape(item) for item in family.items])
            key = (_shown(node), self.marks.get(node.position), parts, family.links)
            self.likeness[node.position] = self._numbers.setdefault(key, len(self._numbers))
        self.families[ROOT] = self._family(ROOT, is_sequence=False)

    def _shape(self, item: Item) -> Hashable:
        if item.inner:
            return item.times, tuple([self._shape(part) for part in item.inner]), item.inner_links, item.edges_among
        return item.times, self.likeness[item.members[0].position], item.is_chained, item.edges_among

    def _family(self, place: int, is_sequence: bool) -> Family:
        nodes = in_reading_order(self.tree.children.get(place, ()))
        joins = self.tree.joins.get(place, ())
        if not nodes:
            return Family((), ())
        items = self._sequence(nodes, joins) if is_sequence else self._groups(nodes, joins)
        return _linked(items, joins, {node.position: place for place, node in enumerate(nodes)} if is_sequence else {})

    def _groups(self, nodes: Sequence[NodeView], joins: Sequence[Join]) -> list[Item]:
        """One item for all nodes that are alike and are joined alike."""
        ends = _ends(joins)
        groups: dict[Hashable, list[NodeView]] = {}
        for node in nodes:
            key = self.likeness[node.position], frozenset(ends.get(node.position, ()))
            groups.setdefault(key, []).append(node)
        return [Item(tuple(members), len(members)) for members in groups.values()]

    def _sequence(self, nodes: Sequence[NodeView], joins: Sequence[Join]) -> list[Item]:
        """Runs of like neighbours, and patterns of runs where all neighbours are joined in the same way."""
        places = {node.position: place for place, node in enumerate(nodes)}
        steps = _steps(places, joins)
        far = [join for join in joins if places[join.target.position] - places[join.source.position] != 1]
        ends = _ends(far)
        keys = [(self.likeness[node.position], frozenset(ends.get(node.position, ()))) for node in nodes]
        runs: list[list[int]] = [[0]]
        for before, place in pairwise(range(len(nodes))):
            step = steps[before]
            goes_on = len(runs[-1]) == 1 or steps[runs[-1][0]] == step
            if keys[before] == keys[place] and goes_on:
                runs[-1].append(place)
            else:
                runs.append([place])
        items = [
            Item(tuple([nodes[place] for place in run]), len(run), is_chained=len(run) > 1 and bool(steps[run[0]]))
            for run in runs
        ]
        if len(runs) > _MOST_RUNS or len(set(steps)) > 1:
            return items
        return list(_patterns(items, tuple([(keys[run[0]], len(run)) for run in runs])))


def _patterns(items: Sequence[Item], keys: tuple[Hashable, ...]) -> Iterator[Item]:
    """`items`, with each repeating pattern as one item."""
    for block in fold_sequence(keys):
        times = (block.last - block.first + 1) // block.period
        part = items[block.first : block.last + 1]
        if times == 1 or block.period == 1:
            yield from part
            continue
        inner: list[Item] = []
        for offset in range(block.period):
            members = [node for item in part[offset :: block.period] for node in item.members]
            inner.append(Item(tuple(members), part[offset].times, is_chained=part[offset].is_chained))
        yield Item(tuple([node for item in part for node in item.members]), times, tuple(inner))


def _shown(node: NodeView) -> Hashable:
    """What a picture shows of a node beside its names."""
    span = None if node.layers is None else node.layers[1] - node.layers[0]
    experts = sum(last - first + 1 for first, last in node.expert_ranges or ())
    return (
        node.type, node.kind, node.role, as_str(node.raw.get("phase")), span, node.period,
        tuple(sorted(node.rank)), experts, len(node.devices),
    )  # fmt: skip


def _ends(joins: Sequence[Join]) -> dict[int, set[Hashable]]:
    """How each node is joined: direction, kind of edge, and type of the other node."""
    ends: dict[int, set[Hashable]] = {}
    for join in joins:
        ends.setdefault(join.source.position, set()).add(("to", join.kind, join.target.type))
        ends.setdefault(join.target.position, set()).add(("from", join.kind, join.source.type))
    return ends


def _steps(places: dict[int, int], joins: Sequence[Join]) -> list[frozenset[str]]:
    """The kinds of edges from each node of a sequence to the next."""
    steps: list[set[str]] = [set() for _ in range(len(places) - 1)]
    for join in joins:
        start = places[join.source.position]
        if places[join.target.position] - start == 1:
            steps[start].add(join.kind)
    return [frozenset(step) for step in steps]


def _linked(items: Sequence[Item], joins: Sequence[Join], sequence: Mapping[int, int]) -> Family:
    """The links between `items`; those inside of a pattern go to the pattern. `sequence` has the place of each node."""
    seats = _seats(items)
    outer: Counter[tuple[int, int, LinkKind]] = Counter()
    inside: Counter[tuple[int, int, int, LinkKind]] = Counter()
    among: Counter[int] = Counter()
    for join in joins:
        start, turn, part = seats[join.source.position]
        end, other_turn, other_part = seats[join.target.position]
        if start != end:
            outer[start, end, join.kind] += 1
        elif items[start].inner and turn == other_turn and part != other_part:
            inside[start, part, other_part, join.kind] += 1
        elif not sequence or sequence[join.target.position] - sequence[join.source.position] != 1:
            among[start] += 1
    linked = [
        replace(
            item,
            inner_links=tuple(
                [Link(start, end, kind, n) for (at, start, end, kind), n in sorted(inside.items()) if at == place]
            ),
            edges_among=among[place],
        )
        for place, item in enumerate(items)
    ]
    links = [Link(start, end, kind, count) for (start, end, kind), count in sorted(outer.items())]
    return Family(tuple(linked), tuple(links))


def _seats(items: Sequence[Item]) -> dict[int, tuple[int, int, int]]:
    """For each node the place of its item, its turn in the pattern, and its part of the turn."""
    seats: dict[int, tuple[int, int, int]] = {}
    for place, item in enumerate(items):
        for part, inner in enumerate(item.inner or (item,)):
            turn_size = len(inner.members) // item.times if item.inner else len(inner.members)
            for number, node in enumerate(inner.members):
                seats[node.position] = (place, number // turn_size, part)
    return seats
