"""Finds the layer blocks, and the phase branches, of a plan that are copies of each other except for names.

A check finds the same in all of them, so it needs to look at only one. Two blocks are alike if they are in phases of
one kind, for like layers, and hold the same nodes and edges on the same places among the devices of their stage.
Anything unusual makes a block unlike all others: an edge that leaves it (except KV cache from prefill to decode), a
node that does not belong in a block, layers that another block of its phase holds too. Nothing is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from ..catalog.architecture import Architecture
from ..catalog.config_fields import MAX_LAYERS
from .branches import PhaseView, StageView
from .elements import COLLECTIVE_TYPES, OPERATOR_TYPES, EdgeView, NodeView

_INSIDE = COLLECTIVE_TYPES.union(
    OPERATOR_TYPES, ("ShardNode", "LinearNode", "RouterNode", "ExpertNode", "KVCacheUpdateNode")
)


class Likenesses(Struct):
    """The repeated parts of a plan, by node position.

    `blocks` are the layer blocks that are like an earlier one; `phases` gives the same number to phase branches that
    are copies except for names, `outer` are the nodes outside blocks in branches that are like an earlier one.
    `cache_edges` (edge positions) hand over a KV cache as usual.
    """

    blocks: set[int] = field(default_factory=set[int])
    phases: dict[int, int] = field(default_factory=dict[int, int])
    outer: set[int] = field(default_factory=set[int])
    cache_edges: set[int] = field(default_factory=set[int])

    def others(self, nodes: Iterable[NodeView]) -> list[NodeView]:
        """The nodes in no block or phase branch that is like an earlier one."""
        blocks, outer = self.blocks, self.outer
        return [
            node
            for node in nodes
            if (node.position not in outer if node.block is None else node.block.position not in blocks)
        ]

    def other_edges(self, edges: Iterable[EdgeView]) -> list[EdgeView]:
        """The edges in no such block or branch that are no usual KV-cache edges."""
        return [edge for edge in edges if not self._hold(edge)]

    def _hold(self, edge: EdgeView) -> bool:
        source, target = edge.source, edge.target
        if source is None or target is None or source.block is not target.block:
            return edge.position in self.cache_edges
        if source.block is None:
            return source.position in self.outer and target.position in self.outer
        return source.block.position in self.blocks


def find_likenesses(phases: Sequence[PhaseView], architecture: Architecture | None) -> Likenesses:
    """The repeated parts of a plan with unique ids; sets the `likeness` of operators."""
    finder = _Finder(phases, architecture)
    for phase in finder.phases:
        finder.read(phase)
    return finder.likenesses


class _Context(Struct, frozen=True):
    """What the blocks of one stage share: `key`, and the places of each device list among the stage's devices."""

    key: Hashable
    places: Mapping[tuple[str, ...], tuple[int, ...]]


def _orderly_phases(phases: Sequence[PhaseView]) -> list[PhaseView]:
    """Well-placed phases, one of each kind in a replica, whose blocks hold each layer once.

    At least two nodes name every device, so that its stage can be read from these phases alone.
    """
    branches = Counter((phase.node.parent_id, phase.phase) for phase in phases)
    return [
        phase
        for phase in phases
        if phase.phase in ("prefill", "decode")
        and branches[phase.node.parent_id, phase.phase] == 1
        and phase.replica is not None
        and phase.node.parent is phase.replica
        and phase.replica.parent is not None
        and phase.replica.parent.type == "RequestNode"
        and phase.replica.parent.parent_id is None
        and _are_apart([stage.layers for stage in phase.stages])
        and all(_is_tiled(stage) and stage.devices == stage.settled_devices for stage in phase.stages)
    ]


def _are_apart(spans: Sequence[tuple[int, int] | None]) -> bool:
    """Whether all spans are known and within a model's layers, and no two overlap."""
    known = sorted(span for span in spans if span is not None and 0 <= span[0] <= span[1] < MAX_LAYERS)
    return len(known) == len(spans) and all(before[1] < after[0] for before, after in pairwise(known))


def _is_tiled(stage: StageView) -> bool:
    """Whether the blocks cover the stage's layers in order and once, each with a whole number of periods."""
    if stage.layers is None:
        return False
    expected = stage.layers[0]
    for block in stage.blocks:
        if block.layers is None or block.layers[0] != expected or block.layers[1] < expected:
            return False
        expected = block.layers[1] + 1
        if (expected - block.layers[0]) % block.period:
            return False
    return expected == stage.layers[1] + 1


class _Branch(Struct, frozen=True):
    """The phase branch of a block, by phase and replica; `alone`: the replica serves no other phase."""

    phase: str
    replica: str | None
    alone: bool


class _Finder:
    """Numbers the kinds of blocks, and of branches, in the order in which they occur."""

    def __init__(self, phases: Sequence[PhaseView], architecture: Architecture | None) -> None:
        self.likenesses = Likenesses()
        self.phases = _orderly_phases(phases)
        served = Counter(phase.node.parent_id for phase in phases)
        self._branches = {
            block.position: _Branch(phase.phase or "", phase.node.parent_id, served[phase.node.parent_id] == 1)
            for phase in self.phases
            for stage in phase.stages
            for block in stage.blocks
        }
        self._architecture = architecture
        self._kinds: dict[Hashable, int] = {}
        self._branch_kinds: dict[Hashable, int] = {}
        # Whether the branch that is being read has had nothing unusual so far.
        self._is_ordinary = True
        self._layers: dict[tuple[tuple[int, int], int], Hashable] = {}

    def read(self, phase: PhaseView) -> None:
        """Record the parts of `phase` that repeat earlier ones."""
        outer = [phase.node, *phase.node.children]
        parts: list[Hashable] = [phase.node.content]
        place_of: dict[str, int] = {}
        self._is_ordinary = len(outer) == len(phase.stages) + 1
        for stage in phase.stages:
            context = _context(phase, stage)
            devices = [place_of.setdefault(device, len(place_of)) for device in stage.ordered_devices]
            parts.append((stage.node.content, tuple(devices)))
            for child, inside in _below(stage):
                is_block = child.type == "LayerBlockNode"
                number = self._block(child, inside, context) if is_block else self._end(child, context)
                parts.append((child.content, number))
                self._is_ordinary = self._is_ordinary and number is not None
            outer += stage.node.children
        edges = _edges_among(outer) if self._is_ordinary else None
        if edges is not None:
            kinds = len(self._branch_kinds)
            number = self._branch_kinds.setdefault((tuple(parts), edges), kinds)
            self.likenesses.phases[phase.node.position] = number
            if number < kinds:
                self.likenesses.outer.update([node.position for node in outer])

    def _end(self, end: NodeView, context: _Context) -> int | None:
        """The number of an embedding or LM head; `None` if it has children or is neither."""
        if end.children or end.type not in ("EmbeddingNode", "LMHeadNode"):
            return None
        number = self._kinds.setdefault((context.key, end.content, context.places[end.devices]), len(self._kinds))
        end.likeness = (number, 0)
        return number

    def _block(self, block: NodeView, inside: Sequence[NodeView], context: _Context) -> int | None:
        """The number of a block with the nodes `inside`; `None` if anything in it is unusual."""
        for place, node in enumerate(inside):
            node.block, node.place = block, place
        body = self._body(block, inside, context)
        if body is None:
            return None
        kinds = len(self._kinds)
        number = self._kinds.setdefault((context.key, self._layers_of(block), body), kinds)
        for place, node in enumerate(inside):
            if node.type in OPERATOR_TYPES:
                node.likeness = (number, place)
        if number < kinds:
            self.likenesses.blocks.add(block.position)
        return number

    def _layers_of(self, block: NodeView) -> Hashable:
        """A key of the model layers that each layer of the block's period stands for; equal if they are alike."""
        if self._architecture is None or block.layers is None:
            return block.period
        key = (block.layers, block.period)
        if key not in self._layers:
            first, last = block.layers
            # Layers that are alike are one object.
            layers = [id(layer) for layer in self._architecture.layers[first : last + 1]]
            periods = [tuple(dict.fromkeys(layers[offset :: block.period])) for offset in range(block.period)]
            self._layers[key] = (last < self._architecture.num_layers, tuple(periods))
        return self._layers[key]

    def _body(self, block: NodeView, inside: Sequence[NodeView], context: _Context) -> Hashable:
        """A key of the nodes and edges, with places for names; `None` if anything in the block is unusual."""
        if not _INSIDE.issuperset([node.type for node in inside]):
            return None
        places = context.places
        body: list[object] = []
        entering = 0
        for node in inside:
            parent = node.parent
            body += (node.content, None if parent is None else parent.place, places[node.devices])
            entering += len(node.edges_in)
            for edge in node.edges_out:
                target = edge.target
                if target is not None and target.block is block:
                    body += (node.place, target.place, edge.content)
                    entering -= 1
                elif not self._is_cache_edge(edge):
                    return None
        if entering and not all(
            edge.source is not None and (edge.source.block is block or self._is_cache_edge(edge))
            for node in inside
            for edge in node.edges_in
        ):
            return None
        return tuple(body)

    def _is_cache_edge(self, edge: EdgeView) -> bool:
        """Whether the edge leads from the KV cache of a prefill block to the attention of a decode block."""
        if edge.position in self.likenesses.cache_edges:
            return True
        source, reader = edge.source, edge.target
        if source is None or reader is None or source.type != "KVCacheUpdateNode" or reader.type != "AttentionNode":
            return False
        writer = source.parent
        if writer is None or writer.type != "AttentionNode" or writer.parent is None or reader.parent is None:
            return False
        start, end = self._branches.get(writer.parent.position), self._branches.get(reader.parent.position)
        if start is None or end is None or start.phase != "prefill" or end.phase != "decode":
            return False
        if (
            edge.type == "data"
            and edge.carries in (None, "kv_cache")
            and writer.parent.content is reader.parent.content
            and writer.offset == reader.offset
            and (start.replica == end.replica or (start.alone and end.alone))
        ):
            self.likenesses.cache_edges.add(edge.position)
        else:
            self._is_ordinary = False
        return True


def _below(stage: StageView) -> Iterator[tuple[NodeView, Sequence[NodeView]]]:
    """The children of the stage, each with all its descendants."""
    starts = [place for place, node in enumerate(stage.nodes) if node.parent is stage.node]
    for start, end in zip(starts, [*starts[1:], len(stage.nodes)], strict=True):
        yield stage.nodes[start], stage.nodes[start + 1 : end]


def _edges_among(outer: Sequence[NodeView]) -> Hashable:
    """A key of the edges among the nodes `outer`, with places for names; `None` if any edge leads elsewhere."""
    place_of = {node.position: place for place, node in enumerate(outer)}
    edges: list[object] = []
    for place, node in enumerate(outer):
        for edge in node.edges_out:
            end = None if edge.target is None else place_of.get(edge.target.position)
            if end is None:
                return None
            edges += (place, end, edge.content)
        if any(edge.source is None or edge.source.position not in place_of for edge in node.edges_in):
            return None
    return tuple(edges)


def _context(phase: PhaseView, stage: StageView) -> _Context:
    place_of = {device: place for place, device in enumerate(stage.ordered_devices)}
    settled = tuple(sorted([place_of[device] for device in stage.settled_devices]))
    places = {listed: tuple([place_of[device] for device in listed]) for listed in stage.device_lists}
    return _Context((phase.phase, len(place_of), settled), places)
