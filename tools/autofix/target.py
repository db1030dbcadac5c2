"""The plan that the author meant, in the author's names: what every node and edge should state.

It is the builder's plan for a request, written as the author writes: with their runs of layers if these are whole, a
ReduceScatter with an AllGather where they have them for an AllReduce, and shared experts that end where theirs do.
Nodes that the author has keep their ids, new ones are named after their parent; what the author may decide inside an
operator stays (`freedoms.py`), as do their LinearNodes. Degrees and devices come from the request.
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
from ..plan.view import COLLECTIVE_TYPES, OPERATOR_TYPES, NodeView, PlanView, devices_of
from .alignment import Alignment, align
from .freedoms import Pair, hosted_experts, shard_devices, shown_hostings

# Fields of a node, an edge or a header.
Fields = Mapping[str, Any]
_SHOWN_IN = frozenset({"AttentionNode", "FFNNode", "ExpertNode"})


def reference_for(author: PlanView, request: BuildRequest, architecture: Architecture) -> Alignment:
    """The builder's plan of `request`, written as `author` writes, and the author's nodes aligned with it.

    It has the author's runs of layers if these are whole, and their pairs of ReduceScatter and AllGather. Raises
    InputError: the plan cannot be built.
    """
    reference = _built(author, request)
    cuts = _cuts_of(author, reference, architecture)
    if cuts:
        reference = _built(author, replace(request, blocks=cuts))
    scattered = dict(_scattered(author, reference))
    if not scattered:
        return reference
    return align(author, PlanView(_with_scatter(reference.view.raw, scattered)))


def _built(author: PlanView, request: BuildRequest) -> Alignment:
    """The builder's plan, with what the author draws otherwise and is legal for every plan.

    That is a whole vocabulary, and shared experts whose collectives span only their own devices.
    """
    vocabulary = author.of_type("EmbeddingNode", "LMHeadNode")
    if request.layout is not None and vocabulary and not any(node.children for node in vocabulary):
        request = replace(request, layout=with_vocabulary(request.layout, is_split=False))
    request = replace(request, spreads_shared=_spreads_shared(author))
    return align(author, PlanView(build_plan(request).model_dump(mode="json")))


def _spreads_shared(author: PlanView) -> bool:
    """Whether a collective of a shared expert narrower than its stage spans the stage; `True` if none can be judged."""
    spans: list[bool] = []
    for operator in author.of_type("FFNNode"):
        experts = [] if operator.parent is None else operator.parent.children_of_type("ExpertNode")
        shards, collectives = operator.children_of_type("ShardNode"), operator.children_of_type(*COLLECTIVE_TYPES)
        is_whole = bool(collectives) or not any(shard.rank.get("tp") for shard in shards)
        if shards and is_whole and devices_of(shards) < devices_of(experts):
            spans.append(devices_of(collectives) >= devices_of(experts))
    return any(spans) or not spans


def _cuts_of(author: PlanView, reference: Alignment, architecture: Architecture) -> dict[StagePlace, tuple[Block, ...]]:
    """The author's runs of layers, for each stage whose runs differ from the reference's."""
    author_stages = {stage.node.id: stage for stage in author.stages}
    whole = {stage.layers: cut for stage in author.stages if (cut := _whole_cut(stage, architecture))}
    cuts: dict[StagePlace, tuple[Block, ...]] = {}
    for phase in reference.view.phases:
        for stage in phase.stages:
            author_stage = author_stages.get(reference.author_of.get(stage.node.id, ""))
            if author_stage is None or stage.layers is None:
                continue
            usual = tuple(_block(node) for node in stage.blocks)
            best = _shifted_cut(author_stage, stage.layers, architecture) or whole.get(stage.layers)
            best = best or _author_cut(author_stage, stage.layers, usual, architecture)
            if best != usual:
                replica = 0 if phase.replica is None else phase.replica.index or 0
                cuts[replica, phase.phase or "", stage.index or 0] = best
    return cuts


def _block(node: NodeView) -> Block:
    first, last = node.layers or (0, -1)
    return Block(first, last, node.period)


def _whole_cut(stage: StageView, architecture: Architecture, begin: int | None = None) -> tuple[Block, ...] | None:
    """The stage's blocks, counted from `begin`, if each is a whole run and together they cover its layers."""
    blocks, layers = [_block(node) for node in stage.blocks], stage.layers
    if layers is None or not blocks or (blocks[0].first, blocks[-1].last) != layers:
        return None
    shift = layers[0] - begin if begin is not None else 0
    moved = tuple(Block(block.first - shift, block.last - shift, block.period) for block in blocks)
    runs_on = all(after.first == before.last + 1 for before, after in pairwise(moved))
    known = runs_on and moved[0].first >= 0 and moved[-1].last < architecture.num_layers
    return moved if known and all(_is_whole(block, architecture) for block in moved) else None


def _shifted_cut(stage: StageView, layers: tuple[int, int], architecture: Architecture) -> tuple[Block, ...] | None:
    """The author's blocks of a stage with as many layers that they count from another number."""
    if stage.layers is None or stage.layers[1] - stage.layers[0] != layers[1] - layers[0]:
        return None
    return _whole_cut(stage, architecture, layers[0])


def _author_cut(
    stage: StageView, layers: tuple[int, int], usual: tuple[Block, ...], architecture: Architecture
) -> tuple[Block, ...]:
    """The cut of the stage that keeps most of the author's blocks: theirs with its faults mended, or the usual one."""
    stated, (first, last) = [_block(node) for node in stage.blocks], stage.layers or (0, -1)
    if 0 <= first <= last < architecture.num_layers and stated == list(fold_layers(architecture, first, last)):
        return usual  # the author folds layers as the builder does, whatever they are
    starts = sorted({block.first for block in stated if layers[0] <= block.first <= layers[1]} | {layers[0]})
    periods = {(block.first, block.last): block.period for block in stated}
    cut: list[Block] = []
    for start, end in zip(starts, [*[start - 1 for start in starts[1:]], layers[1]], strict=True):
        run = Block(start, end, periods.get((start, end), 1))
        cut += [run] if _is_whole(run, architecture) else fold_layers(architecture, start, end)
    known = set(stated)
    return tuple(cut) if sum(block in known for block in cut) > sum(block in known for block in usual) else usual


def _is_whole(block: Block, architecture: Architecture) -> bool:
    """Whether the run is a whole number of its periods and like layers stand at like offsets."""
    if (block.last - block.first + 1) % block.period:
        return False
    layers = [layer_signature(layer) for layer in architecture.layers[block.first : block.last + 1]]
    return all(len(set(layers[offset :: block.period])) == 1 for offset in range(block.period))


def _scattered(author: PlanView, reference: Alignment) -> Iterator[tuple[str, list[str]]]:
    """AllReduces of the reference in whose place the author has a ReduceScatter followed by an AllGather, by id.

    With the ReduceScatter's devices: the operator's, if the author's has fewer than the AllReduce.
    """
    for node in author.of_type("ReduceScatterNode"):
        following = [edge.target for edge in node.edges_out if edge.target is not None]
        is_gathered = any(other.type == "AllGatherNode" and other.parent is node.parent for other in following)
        if node.parent is None or not is_gathered:
            continue
        operator = reference.view.by_id.get(reference.reference_of.get(node.parent.id, ""))
        if operator is None or len(node.parent.children_of_type("AllReduceNode")):
            continue
        for reduction in operator.children_of_type("AllReduceNode")[:1]:
            is_wide = len({*node.devices}) >= len(reduction.devices)
            parts = (reduction,) if is_wide else operator.children_of_type("ShardNode")
            yield reduction.id, list(dict.fromkeys(device for part in parts for device in part.devices))


def _with_scatter(document: Fields, chosen: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """`document` with a ReduceScatter on the devices `chosen` for it, and an AllGather, in place of each such node."""
    nodes: list[dict[str, Any]] = []
    for node in document["nodes"]:
        if node["id"] not in chosen:
            nodes.append(node)
            continue
        nodes.append({**node, "type": "ReduceScatterNode", "devices": chosen[node["id"]]})
        nodes.append({**node, "id": f"{node['id']}/gather", "type": "AllGatherNode"})
    edges: list[dict[str, Any]] = [
        {**edge, "source": f"{edge['source']}/gather"} if edge["source"] in chosen else edge
        for edge in document["edges"]
    ]
    edges += [{"source": name, "target": f"{name}/gather", "type": "synchronization"} for name in sorted(chosen)]
    return {**document, "nodes": nodes, "edges": edges}


class Target(Struct, frozen=True):
    """The wanted document: `nodes` by id, `edges` by their ends; `header` is all else.

    `own` are the ids of nodes that the author has, `shown` those of their LinearNodes, which only have to follow the
    format.
    """

    nodes: Mapping[str, Fields]
    edges: Mapping[tuple[str, str], Fields]
    header: Fields
    own: frozenset[str]
    shown: frozenset[str]


def target_of(author: PlanView, reference: Alignment, *, as_built: bool = False) -> Target:
    """What `author`'s plan should be by `reference`; `as_built`: without the author's decisions inside operators."""
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
    """The id in the author's plan of every node of the reference: the author's, else one made from its parent's."""
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
    """Fields of the reference's nodes that the author may decide and decided otherwise, by id."""
    author_of = reference.author_of

    def pairs(operator: NodeView, kind: str) -> list[Pair]:
        return [Pair(node, author.by_id.get(author_of.get(node.id, ""))) for node in operator.children_of_type(kind)]

    changed: dict[str, dict[str, Any]] = {}
    many = "redundant_experts" in author.relaxations
    for operator in reference.view.of_type("FFNNode"):
        shared, moe = author.by_id.get(author_of.get(operator.id, "")), operator.parent
        # A shared expert is of its MoE operator's layer, and may say so.
        if shared is not None and moe is not None and moe.type == "MoENode" and shared.offset == moe.offset > 0:
            changed[operator.id] = {"offset": moe.offset}
    for operator in reference.view.of_type(*OPERATOR_TYPES):
        devices_of = shard_devices(pairs(operator, "ShardNode"))
        changed.update({name: {"devices": devices} for name, devices in devices_of.items()})
    hosting = [pairs(operator, "ExpertNode") for operator in reference.view.of_type("MoENode")]
    shown = shown_hostings(hosting)
    for groups in filter(None, hosting):
        changed.update({name: {"experts": ids} for name, ids in hosted_experts(groups, shown, many=many).items()})
    return changed


def _shown(author: PlanView, nodes: Mapping[str, Fields]) -> Iterator[str]:
    """Ids of the author's LinearNodes below a legal parent and on GPUs of the plan.

    Shards of an expert, or along an undefined dimension, are left out.
    """
    devices = {device for node in nodes.values() for device in node.get("devices") or ()}
    for node in author.of_type("LinearNode"):
        parent = nodes.get(node.parent_id or "")
        if author.by_id[node.id] is not node or parent is None or parent["type"] not in _SHOWN_IN:
            continue
        may_split = Rank.model_fields.keys() if parent["type"] != "ExpertNode" else set[str]()
        if node.devices and devices.issuperset(node.devices) and node.rank.keys() <= may_split:
            yield node.id
