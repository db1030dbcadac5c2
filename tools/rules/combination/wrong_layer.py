"""CO004: each strategy lives on its own layer of the graph: DP request, PP structure, TP/SP/EP operator.

Reports stages on the request and the operator layer, experts on the request and the structural one, and shards that are
ranked along either.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, as_mapping
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from .dimension_names import rank_of

_LAYER_OF = {
    "RequestNode": "request", "ReplicaNode": "request", "PhaseNode": "request", "PipelineStageNode": "structural",
    "AttentionNode": "operator", "FFNNode": "operator", "EmbeddingNode": "operator", "LMHeadNode": "operator",
}  # fmt: skip
# A stage below a replica or experts below a MoE operator's own block are wrong parents (ST003), not wrong layers.
_MISPLACED = {
    "PipelineStageNode": frozenset({"RequestNode", "AttentionNode", "FFNNode", "EmbeddingNode", "LMHeadNode"}),
    "ExpertNode": frozenset({"RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode"}),
    "RouterNode": frozenset({"RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode"}),
    "MoENode": frozenset({"RequestNode", "ReplicaNode", "PhaseNode"}),
}
_HOLDERS = ("AttentionNode", "FFNNode", "EmbeddingNode", "LMHeadNode", "ExpertNode")
_HOMES = {"pp": "the stages of a phase", "ep": "the ExpertNodes of a MoE operator"}


def _ranked(holder: NodeView) -> Iterator[Finding]:
    """Yield shards that are ranked along PP or EP, which do not split one operator's compute."""
    for strategy, home in _HOMES.items():
        shards = [
            shard
            for shard in holder.children_of_type("ShardNode")
            if any(rank_of(key) == strategy for key in as_mapping(shard.raw.get("rank")))
        ]
        if shards:
            yield Finding(
                "ranked-shards",
                f"{strategy.upper()} in the ranks of {label(shards[0])}, a shard of {label(holder)} ({holder.type}); "
                f"{strategy.upper()} lives in {home}",
                where=shards,
                nodes=(holder,),
                value=strategy,
                expected=home,
                remedy="rank shards along tp and sp",
            )


def decide(_: PlanView, node: NodeView) -> Iterator[Finding]:
    """Yield a stage, or a part of a MoE operator, on a layer that is not its own."""
    if node.type in _HOLDERS:
        yield from _ranked(node)
    parent = node.parent
    if parent is None or parent.type not in _MISPLACED.get(node.type, ()):
        return
    if node.type == "PipelineStageNode" and any(shard.rank for shard in parent.children_of_type("ShardNode")):
        return
    strategy, home = ("PP", "structural") if node.type == "PipelineStageNode" else ("EP", "operator")
    yield Finding(
        "wrong-layer",
        f"{strategy} on the {_LAYER_OF[parent.type]} layer: {label(node)} ({node.type}) hangs below "
        f"{label(parent)} ({parent.type}); {strategy} lives on the {home} layer",
        where=node,
        nodes=(parent,),
        value=_LAYER_OF[parent.type],
        expected=home,
    )


_STRAY = {"id": "stray", "type": "PipelineStageNode", "parent": "request", "index": 2, "layers": [0, 7]}

RULE = Rule(
    id="CO004",
    name="strategy on the wrong layer",
    requirement="Each strategy lives on exactly one layer of the graph: DP request, PP structure, TP/SP/EP operator.",
    rationale=(
        "A strategy says what is split: requests, runs of layers, or one operator. On another layer there is nothing "
        "of its kind to split, and what is written there cannot be timed or run."
    ),
    source="002 §2",
    fix="re-plan",
    remedy="stages hang below a phase, experts inside a MoE operator",
    visits=(*_MISPLACED, *(kind for kind in _HOLDERS if kind not in _MISPLACED)),
    decide=decide,
    bad=Example("dense-pp2-tp2", (Edit("add_node", value=_STRAY),)),
)
