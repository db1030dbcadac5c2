"""The boxes of a picture, out of the folded families of a plan's tree, within limits of depth and number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from ..plan.devices import devices_text
from ..plan.elements import NodeView
from .box import Box, Link
from .folding import Family, Item
from .style import clipped
from .tree import ROOT, Tree, in_reading_order
from .wording import kind_of, lines_of, repeats_of, title_of

# Whose children are shown one below another: lanes, phases and replicas.
_STACKS = frozenset({"RequestNode", "ReplicaNode", "PhaseNode"})
_NAME_DEVICES = frozenset({"ReplicaNode", "PipelineStageNode"})
_OPERATORS = frozenset({"AttentionNode", "FFNNode", "MoENode"})
_SHORT = {
    "AllReduceNode": "all-reduce", "AllGatherNode": "all-gather", "ReduceScatterNode": "reduce-scatter",
    "AllToAllNode": "all-to-all", "KVCacheUpdateNode": "KV cache", "AttentionNode": "attention", "FFNNode": "FFN",
    "MoENode": "MoE", "ExpertNode": "experts", "LayerBlockNode": "layers", "PipelineStageNode": "stages",
    "PhaseNode": "phases", "ReplicaNode": "replicas", "ShardNode": "shards", "RouterNode": "router",
    "EmbeddingNode": "embedding", "LMHeadNode": "LM head", "LinearNode": "linear",
}  # fmt: skip


class Limits(Struct, frozen=True):
    """Levels of boxes inside boxes that are drawn, siblings of a box, and boxes in all.

    `opens_once`: of operators that are alike the first of each phase is drawn with what is inside of it.
    """

    levels: int
    siblings: int
    boxes: int
    opens_once: bool = True


class Builder(Struct):
    """Builds the boxes of one picture; `left` is how many more it may hold, below zero where it had to leave some out.

    `likeness` has the number of each node's likeness.
    """

    tree: Tree
    families: Mapping[int, Family]
    likeness: Mapping[int, int]
    limits: Limits
    left: int
    _lane: frozenset[str] = frozenset()
    _opened: set[int] = field(default_factory=set[int])
    _numbers: Iterator[int] = field(default_factory=count)

    def root(self) -> Box:
        """The box around all; a request that is the only root is that box."""
        roots = self.tree.children.get(ROOT, [])
        place = roots[0].position if len(roots) == 1 and roots[0].type == "RequestNode" else ROOT
        number, members = next(self._numbers), () if place == ROOT else (place,)
        children, links = self._inside(self.families[place], None if place == ROOT else roots[0], 0)
        return Box("request", "", children=children, links=links, is_stack=True, members=members, number=number)

    def _inside(self, family: Family, parent: NodeView | None, level: int) -> tuple[tuple[Box, ...], tuple[Link, ...]]:
        fitting = max(1, min(self.limits.siblings, self.left))
        if len(family.items) > self.left:
            self.left = -1
        shown = family.items if len(family.items) <= fitting else family.items[: fitting - 1]
        self.left -= len(shown)
        boxes = [self._box(item, parent, level) for item in shown]
        hidden = sum(item.times for item in family.items[len(shown) :])
        if hidden:
            boxes.append(Box("more", f"and {hidden:,} more", number=next(self._numbers)))
        links = [
            self._named(link, family) for link in family.links if link.source < len(shown) and link.target < len(shown)
        ]
        return tuple(boxes), tuple(links)

    def _named(self, link: Link, family: Family) -> Link:
        """`link` with what it carries in words; whether a cache moves is read off the devices of its ends."""
        if link.kind != "kv_cache":
            return link
        ends = [frozenset(self._devices(family.items[at].members[:1])) for at in (link.source, link.target)]
        return replace(link, label="KV cache stays on its GPUs" if ends[0] == ends[1] else "KV cache transfer")

    def _box(self, item: Item, parent: NodeView | None, level: int, turns: int = 1) -> Box:
        """The box of an item in a pattern of so many turns."""
        number = next(self._numbers)
        if item.inner:
            self.left -= len(item.inner)
            inner = tuple([self._box(part, parent, level + 1, item.times) for part in item.inner])
            is_stack = parent is not None and parent.type in _STACKS
            return Box(
                "block", "Pattern", _among(item), item.times, inner, item.inner_links, is_stack, number=number
            )  # fmt: skip
        node = item.members[0]
        below = self.tree.children.get(node.position, ())
        lines = lines_of(item.members, below, self._lane)
        if node.type in _NAME_DEVICES:
            lines.append(clipped(devices_text(self._devices(item.members)), 60))
            lines += ["the first is drawn"] if len(item.members) > 1 and below else []
        if node.type == "PipelineStageNode":
            # Of stages that are alike the first is drawn.
            self._lane = frozenset(self._devices(item.members[:1]))
        lines += _among(item)
        if item.is_chained and node.type == "PipelineStageNode":
            lines.append("send/recv from each to the next")
        box = Box(
            kind_of(node, parent), title_of(item.members, parent), tuple(line for line in lines if line),
            repeats_of(item.members) // turns, is_stack=node.type in _STACKS,
            members=tuple([member.position for member in item.members]), number=number,
        )  # fmt: skip
        if not below:
            return box
        if node.type == "PhaseNode":
            self._opened.clear()
        if level + 1 >= self.limits.levels or self.left <= 0 or self._is_drawn_already(node):
            return replace(box, lines=(*box.lines, _contents(below)))
        children, links = self._inside(self.families[node.position], node, level + 1)
        return replace(box, children=children, links=links)

    def _is_drawn_already(self, node: NodeView) -> bool:
        if node.type not in _OPERATORS or not self.limits.opens_once:
            return False
        number = self.likeness[node.position]
        is_known = number in self._opened
        self._opened.add(number)
        return is_known

    def _devices(self, nodes: Sequence[NodeView]) -> Iterator[str]:
        """The devices of `nodes` and of all that is below them."""
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            yield from node.devices
            waiting += self.tree.children.get(node.position, ())


def _among(item: Item) -> tuple[str, ...]:
    """The edges that the box of an item cannot show."""
    return (f"{item.edges_among:,} edges among them",) if item.edges_among else ()


def _contents(below: Sequence[NodeView]) -> str:
    """What is inside of a box that is not opened."""
    counted = Counter(_SHORT.get(node.type, clipped(node.type, 20) or "no type") for node in in_reading_order(below))
    return clipped(", ".join(counted), 60)
