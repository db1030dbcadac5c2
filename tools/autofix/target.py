"""The author's plan as it would be were it whole, in his own names: what every node and edge should say.

The builder's plan for a request is written the way in which the author writes his: with his runs of layers where these
are whole, and a ReduceScatter with an AllGather where he has them for an AllReduce. Nodes that he has keep his ids, new
ones are named after the scope that they hang in; what he may decide inside an operator stays his (`freedoms.py`), as do
the LinearNodes that he shows. No degrees and no devices are decided here: the request does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.architecture import Architecture
from ..plan.blocks import Block, fold_layers, layer_signature
from ..plan.branches import StageView
from ..plan.builder import BuildRequest, StagePlace, build_plan
from ..plan.document import Rank
from ..plan.placement import with_vocabulary
from ..plan.view import OPERATOR_TYPES, NodeView, PlanView
from .alignment import Alignment, align
from .freedoms import Pair, hosted_experts, shard_devices, shown_hostings

# Fields of a node, an edge or a header.
Fields = Mapping[str, Any]
_SHOWN_IN = frozenset({"AttentionNode", "FFNNode", "ExpertNode"})


def reference_for(author: PlanView, request: BuildRequest, architecture: Architecture) -> Alignment:
    """The builder's plan of `request`, written the way in which `author` writes his, and how his lines up with it.

    It has his runs of layers where these are whole, and a ReduceScatter with an AllGather where he has them. Raises
    InputError: the plan cannot be built.
    """
    found = _built(author, request)
    cuts = _cuts_of(author, found, architecture)
    if cuts:
        found = _built(author, replace(request, blocks=cuts))
    scattered = list(_scattered(author, found))
    if not scattered:
        return found
    return align(author, PlanView(_with_scatter(found.view.raw, scattered), compares=False))


def _built(author: PlanView, request: BuildRequest) -> Alignment:
    """The builder's plan; the vocabulary is whole in it where the author draws it so, which is legal for all."""
    vocabulary = author.of_type("EmbeddingNode", "LMHeadNode")
    if request.layout is not None and vocabulary and not any(node.children for node in vocabulary):
        request = replace(request, layout=with_vocabulary(request.layout, is_split=False))
    return align(author, PlanView(build_plan(request).model_dump(mode="json"), compares=False))


def _cuts_of(author: PlanView, found: Alignment, architecture: Architecture) -> dict[StagePlace, tuple[Block, ...]]:
    """The author's runs of layers for each stage in which they differ from the reference's."""
    own = {stage.node.id: stage for stage in author.stages}
    whole = {stage.layers: cut for stage in author.stages if (cut := _whole_cut(stage, architecture))}
    cuts: dict[StagePlace, tuple[Block, ...]] = {}
    for phase in found.view.phases:
        for stage in phase.stages:
            mine = own.get(found.author_of.get(stage.node.id, ""))
            if mine is None or stage.layers is None:
                continue
            usual = tuple(_block(node) for node in stage.blocks)
            best = _shifted_cut(mine, stage.layers, architecture) or whole.get(stage.layers)
            best = best or _author_cut(mine, stage.layers, usual, architecture)
            if best != usual:
                replica = 0 if phase.replica is None else phase.replica.index or 0
                cuts[replica, phase.phase or "", stage.index or 0] = best
    return cuts


def _block(node: NodeView) -> Block:
    first, last = node.layers or (0, -1)
    return Block(first, last, node.period)


def _whole_cut(stage: StageView, architecture: Architecture, begin: int | None = None) -> tuple[Block, ...] | None:
    """The stage's blocks where each is a whole run and together they cover its layers, counted from `begin` on."""
    blocks, layers = [_block(node) for node in stage.blocks], stage.layers
    if layers is None or not blocks or (blocks[0].first, blocks[-1].last) != layers:
        return None
    shift = layers[0] - begin if begin is not None else 0
    moved = tuple(Block(one.first - shift, one.last - shift, one.period) for one in blocks)
    runs_on = all(after.first == before.last + 1 for before, after in pairwise(moved))
    known = runs_on and moved[0].first >= 0 and moved[-1].last < architecture.num_layers
    return moved if known and all(_is_whole(block, architecture) for block in moved) else None


def _shifted_cut(mine: StageView, layers: tuple[int, int], architecture: Architecture) -> tuple[Block, ...] | None:
    """The author's own blocks for a stage of as many layers that he counts from another one."""
    if mine.layers is None or mine.layers[1] - mine.layers[0] != layers[1] - layers[0]:
        return None
    return _whole_cut(mine, architecture, layers[0])


def _author_cut(
    mine: StageView, layers: tuple[int, int], usual: tuple[Block, ...], architecture: Architecture
) -> tuple[Block, ...]:
    """The cut of the stage that has most of the author's blocks as they are: his own, or what mends it."""
    stated, (first, last) = [_block(node) for node in mine.blocks], mine.layers or (0, -1)
    if 0 <= first <= last < architecture.num_layers and stated == list(fold_layers(architecture, first, last)):
        return usual  # he folds the layers of a stage as the builder does, whatever they are
    starts = sorted({block.first for block in stated if layers[0] <= block.first <= layers[1]} | {layers[0]})
    periods = {(block.first, block.last): block.period for block in stated}
    found: list[Block] = []
    for start, end in zip(starts, [*[start - 1 for start in starts[1:]], layers[1]], strict=True):
        own = Block(start, end, periods.get((start, end), 1))
        found += [own] if _is_whole(own, architecture) else fold_layers(architecture, start, end)
    known = set(stated)
    return tuple(found) if sum(block in known for block in found) > sum(block in known for block in usual) else usual


def _is_whole(block: Block, architecture: Architecture) -> bool:
    """Whether the run is a whole number of its periods and like layers stand at like offsets."""
    if (block.last - block.first + 1) % block.period:
        return False
    layers = [layer_signature(layer) for layer in architecture.layers[block.first : block.last + 1]]
    return all(len(set(layers[offset :: block.period])) == 1 for offset in range(block.period))


def _scattered(author: PlanView, found: Alignment) -> Iterator[NodeView]:
    """AllReduces of the reference for which the author has a ReduceScatter that an AllGather follows."""
    for node in author.of_type("ReduceScatterNode"):
        following = [edge.target for edge in node.edges_out if edge.target is not None]
        is_gathered = any(other.type == "AllGatherNode" and other.parent is node.parent for other in following)
        if node.parent is None or not is_gathered:
            continue
        operator = found.view.by_id.get(found.reference_of.get(node.parent.id, ""))
        if operator is None or len(node.parent.children_of_type("AllReduceNode")):
            continue
        yield from operator.children_of_type("AllReduceNode")[:1]


def _with_scatter(document: Fields, reductions: Sequence[NodeView]) -> dict[str, Any]:
    """`document` with a ReduceScatter and an AllGather in place of each of `reductions`."""
    chosen = {node.id for node in reductions}
    nodes: list[dict[str, Any]] = []
    for node in document["nodes"]:
        if node["id"] not in chosen:
            nodes.append(node)
            continue
        nodes.append({**node, "type": "ReduceScatterNode"})
        nodes.append({**node, "id": f"{node['id']}/gather", "type": "AllGatherNode"})
    edges: list[dict[str, Any]] = [
        {**edge, "source": f"{edge['source']}/gather"} if edge["source"] in chosen else edge
        for edge in document["edges"]
    ]
    edges += [{"source": name, "target": f"{name}/gather", "type": "synchronization"} for name in sorted(chosen)]
    return {**document, "nodes": nodes, "edges": edges}


class Target(Struct, frozen=True):
    """What the graph should be. `nodes` by id and `edges` by their ends; `header` is all but these.

    `own` are the ids of nodes that the author has, `shown` those of his LinearNodes, which nothing is asked of but to
    be of the format.
    """

    nodes: Mapping[str, Fields]
    edges: Mapping[tuple[str, str], Fields]
    header: Fields
    own: frozenset[str]
    shown: frozenset[str]


def target_of(author: PlanView, reference: Alignment, *, as_built: bool = False) -> Target:
    """What `author`'s plan should be by `reference`; `as_built`: operators are as it has them, whatever he decided."""
    names = _names(author, reference)
    changed = {} if as_built else _decided_inside(author, reference)
    nodes = {
        names[node.id]: {
            **node.raw,
            **changed.get(node.id, {}),
            "id": names[node.id],
            "parent": None if node.parent_id is None else names[node.parent_id],
        }
        for node in reference.view.nodes
    }
    edges: dict[tuple[str, str], Fields] = {}
    for edge in reference.view.edges:
        ends = (names[edge.source_id], names[edge.target_id])
        edges[ends] = {**edge.raw, "source": ends[0], "target": ends[1]}
    return Target(
        nodes=nodes,
        edges=edges,
        header={name: value for name, value in reference.view.raw.items() if name not in ("nodes", "edges")},
        own=frozenset(reference.reference_of),
        shown=frozenset(_shown(author, nodes)),
    )


def _names(author: PlanView, reference: Alignment) -> dict[str, str]:
    """The name of every node of the reference in the author's plan: his own, else one after its parent's."""
    taken = {*author.by_id}
    names: dict[str, str] = {}
    for node in reference.view.nodes:
        name = reference.author_of.get(node.id)
        if name is None:
            parent = node.parent_id
            wanted = node.id if parent is None else f"{names[parent]}.{node.id.removeprefix(parent).lstrip('./')}"
            others = (f"{wanted}-{times}" for times in count(2))
            name = wanted if wanted not in taken else next(other for other in others if other not in taken)
            taken.add(name)
        names[node.id] = name
    return names


def _decided_inside(author: PlanView, reference: Alignment) -> dict[str, dict[str, Any]]:
    """Fields of the reference's nodes that the author decided otherwise, as he may."""
    author_of = reference.author_of

    def pairs(operator: NodeView, kind: str) -> list[Pair]:
        return [Pair(node, author.by_id.get(author_of.get(node.id, ""))) for node in operator.children_of_type(kind)]

    changed: dict[str, dict[str, Any]] = {}
    many = "redundant_experts" in author.relaxations
    for operator in reference.view.of_type(*OPERATOR_TYPES):
        devices_of = shard_devices(pairs(operator, "ShardNode"))
        changed.update({name: {"devices": devices} for name, devices in devices_of.items()})
    hosting = [pairs(operator, "ExpertNode") for operator in reference.view.of_type("MoENode")]
    shown = shown_hostings(hosting)
    for groups in filter(None, hosting):
        changed.update({name: {"experts": own} for name, own in hosted_experts(groups, shown, many=many).items()})
    return changed


def _shown(author: PlanView, nodes: Mapping[str, Fields]) -> Iterator[str]:
    """The author's LinearNodes that hang where they may, on GPUs of the plan.

    Those that are a shard of an expert, or of what is not defined, are none of them.
    """
    devices = {device for node in nodes.values() for device in node.get("devices") or ()}
    for node in author.of_type("LinearNode"):
        parent = nodes.get(node.parent_id or "")
        if author.by_id[node.id] is not node or parent is None or parent["type"] not in _SHOWN_IN:
            continue
        may_split = Rank.model_fields.keys() if parent["type"] != "ExpertNode" else set[str]()
        if node.devices and devices.issuperset(node.devices) and node.rank.keys() <= may_split:
            yield node.id
