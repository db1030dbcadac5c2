"""The plan as it would be were the author's whole, written the way in which the author writes it.

The builder's plan for a request, with the author's runs of layers where these are whole, and a ReduceScatter with an
AllGather where the author has them for an AllReduce; and which node of it each of the author's nodes stands for. It
decides no degrees and no devices: the request does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..catalog.architecture import Architecture
from ..plan.blocks import Block, fold_layers, layer_signature
from ..plan.branches import PhaseView, StageView
from ..plan.builder import BuildRequest, StagePlace, build_plan
from ..plan.placement import with_vocabulary
from ..plan.view import NodeView, PlanView
from .alignment import Alignment, align


@dataclass(frozen=True, slots=True)
class Reference:
    """A whole plan as a document and as a view, and how the author's plan lines up with it."""

    document: dict[str, Any]
    view: PlanView
    alignment: Alignment


def reference_for(author: PlanView, request: BuildRequest, architecture: Architecture) -> Reference:
    """The reference of `request` for the plan behind `author`.

    Raises:
        InputError: the plan cannot be built.
    """
    found = _built(author, request)
    cuts = _cuts_of(author, found, architecture)
    if cuts:
        found = _built(author, replace(request, blocks=cuts))
    scattered = list(_scattered(author, found))
    return _aligned(author, _with_scatter(found.document, scattered)) if scattered else found


def _built(author: PlanView, request: BuildRequest) -> Reference:
    """The builder's plan; the vocabulary is whole in it where the author draws it so, which is legal for all."""
    vocabulary = author.of_type("EmbeddingNode", "LMHeadNode")
    if request.layout is not None and vocabulary and not any(node.children for node in vocabulary):
        request = replace(request, layout=with_vocabulary(request.layout, is_split=False))
    return _aligned(author, build_plan(request).model_dump(mode="json"))


def _aligned(author: PlanView, document: dict[str, Any]) -> Reference:
    view = PlanView(document, compares=False)
    return Reference(document, view, align(author, view))


def _cuts_of(author: PlanView, found: Reference, architecture: Architecture) -> dict[StagePlace, tuple[Block, ...]]:
    """The author's runs of layers for each stage in which they differ from the reference's."""
    own = {stage.node.id: stage for stage in author.stages}
    cuts: dict[StagePlace, tuple[Block, ...]] = {}
    for phase in found.view.phases:
        for stage in phase.stages:
            mine = own.get(found.alignment.author_of.get(stage.node.id, ""))
            if mine is None or stage.layers is None:
                continue
            usual = tuple(_block(node) for node in stage.blocks)
            best = _author_cut(mine, stage.layers, usual, architecture)
            if best != usual:
                cuts[_place(phase, stage)] = best
    return cuts


def _place(phase: PhaseView, stage: StageView) -> StagePlace:
    replica = phase.replica.index if phase.replica is not None else None
    return replica or 0, phase.phase or "", stage.index or 0


def _block(node: NodeView) -> Block:
    first, last = node.layers or (0, -1)
    return Block(first, last, node.period)


def _author_cut(
    mine: StageView, layers: tuple[int, int], usual: tuple[Block, ...], architecture: Architecture
) -> tuple[Block, ...]:
    """The cut of the stage that has most of the author's blocks as they are: his own, or what mends it."""
    stated = [_block(node) for node in mine.blocks]
    if mine.layers is not None and stated == _usual_blocks(mine.layers, architecture):
        return usual  # he folds the layers of a stage as the builder does, whatever they are
    starts = sorted({block.first for block in stated if layers[0] <= block.first <= layers[1]} | {layers[0]})
    periods = {(block.first, block.last): block.period for block in stated}
    found: list[Block] = []
    for start, end in zip(starts, [*[start - 1 for start in starts[1:]], layers[1]], strict=True):
        own = Block(start, end, periods.get((start, end), 1))
        found += [own] if _is_whole(own, architecture) else fold_layers(architecture, start, end)
    known = set(stated)
    return tuple(found) if sum(block in known for block in found) > sum(block in known for block in usual) else usual


def _usual_blocks(layers: tuple[int, int], architecture: Architecture) -> list[Block]:
    first, last = layers
    return list(fold_layers(architecture, first, last)) if 0 <= first <= last < architecture.num_layers else []


def _is_whole(block: Block, architecture: Architecture) -> bool:
    """Whether the run is a whole number of its periods and like layers stand at like offsets."""
    if (block.last - block.first + 1) % block.period:
        return False
    layers = [layer_signature(layer) for layer in architecture.layers[block.first : block.last + 1]]
    return all(len(set(layers[offset :: block.period])) == 1 for offset in range(block.period))


def _scattered(author: PlanView, found: Reference) -> Iterator[NodeView]:
    """AllReduces of the reference for which the author has a ReduceScatter that an AllGather follows."""
    for node in author.of_type("ReduceScatterNode"):
        if node.parent is None or not any(_is_gather_beside(node, edge.target) for edge in node.edges_out):
            continue
        operator = found.view.by_id.get(found.alignment.reference_of.get(node.parent.id, ""))
        if operator is None or len(node.parent.children_of_type("AllReduceNode")):
            continue
        yield from operator.children_of_type("AllReduceNode")[:1]


def _is_gather_beside(node: NodeView, other: NodeView | None) -> bool:
    return other is not None and other.type == "AllGatherNode" and other.parent is node.parent


def _with_scatter(document: Mapping[str, Any], reductions: Sequence[NodeView]) -> dict[str, Any]:
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
