"""ST005: every operator, shard and collective has the edges that its role needs.

Checks the order inside a stage (embedding, blocks, LM head) and inside a block (its operators), and the flow inside an
operator (shards to cache write and collective). The chain of stages is PP001's, the parts of a MoE operator EP002's,
the cache between the phases DE003's. A node in the wrong place is named by the rule of its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from ...plan.view import NodeView, PhaseView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..reading import OPERATOR_ORDER, label, operators_in_order
from ..stage_chain import stage_chain


def _is_joined(source: NodeView, target: NodeView) -> bool:
    edges = source.edges_out if len(source.edges_out) <= len(target.edges_in) else target.edges_in
    return any(edge.source is source and edge.target is target for edge in edges)


def _missing_link(source: NodeView, target: NodeView) -> Finding:
    turned = ": the edge between them runs the other way" if _is_joined(target, source) else ""
    return Finding(
        f"no edge {label(source)} → {label(target)}{turned}",
        where=target,
        nodes=(source, target),
        expected={"source": source.id, "target": target.id},
        remedy=f"add the edge {label(source)} → {label(target)}",
    )


def _sequence(groups: Sequence[Sequence[NodeView]]) -> Iterator[Finding]:
    """Each node of a group follows one of the group before it, and is followed by one of the group after it."""
    for before, after in pairwise(groups):
        missing: dict[tuple[int, int], tuple[NodeView, NodeView]] = {}
        for target in after:
            if not any(_is_joined(source, target) for source in before):
                missing[before[0].position, target.position] = (before[0], target)
        for source in before:
            if not any(_is_joined(source, target) for target in after):
                missing[source.position, after[0].position] = (source, after[0])
        for source, target in missing.values():
            yield _missing_link(source, target)


def _stage_sequence(stage: StageView, *, first: bool, last: bool) -> Iterator[Finding]:
    if not stage.blocks or any(block.layers is None for block in stage.blocks):
        return
    groups: list[list[NodeView]] = [list(group) for _, group in groupby(stage.blocks, key=lambda block: block.layers)]
    # A second embedding or head, or one in another stage, is PP007's.
    if first:
        groups = [stage.node.children_of_type("EmbeddingNode")[:1], *groups]
    if last:
        groups = [*groups, stage.node.children_of_type("LMHeadNode")[:1]]
    yield from _sequence([group for group in groups if group])


def _block_sequence(block: NodeView) -> Iterator[Finding]:
    def place(node: NodeView) -> tuple[int, bool]:
        return node.offset, node.type != "AttentionNode"

    yield from _sequence([list(group) for _, group in groupby(operators_in_order(block), key=place)])


def _phase(phase: PhaseView) -> Iterator[Finding]:
    stages = stage_chain(phase).stages
    for stage in stages:
        yield from _stage_sequence(stage, first=stage is stages[0], last=stage is stages[-1])
        for block in stage.blocks:
            yield from _block_sequence(block)


def _leads(collective: NodeView, shards: frozenset[int]) -> bool:
    """Whether a collective feeds the shards (K/V AllGather, `sequence_in`, gathered tokens) and closes nothing."""
    if collective.role == "sequence_in":
        return True
    return any(edge.target is not None and edge.target.position in shards for edge in collective.edges_out)


def _shards_to(operator: NodeView, shards: Sequence[NodeView], ends: Sequence[NodeView], what: str) -> Iterator[Finding]:
    """Every shard has an edge to one of `ends`. Where none has, that is one fault of the end, not one of each shard."""
    goals = {end.position for end in ends}
    lacking = [
        shard
        for shard in shards
        if not any(edge.target is not None and edge.target.position in goals for edge in shard.edges_out)
    ]
    if len(lacking) == len(shards) and ends:
        yield Finding(
            f"no shard of {label(operator)} leads to its {what} {label(ends[0])}",
            where=ends[0], nodes=(ends[0], *shards), remedy=f"add an edge from every shard to {label(ends[0])}",
        )  # fmt: skip
    elif ends:
        for shard in lacking:
            yield _missing_link(shard, ends[0])


def _inside_operator(operator: NodeView) -> Iterator[Finding]:
    shards = operator.children_of_type("ShardNode")
    if not shards:
        return
    positions = frozenset(shard.position for shard in shards)
    collectives = [child for child in operator.children if child.is_collective]
    leading = [node for node in collectives if _leads(node, positions)]
    closing = [node for node in collectives if node not in leading]
    starts = {node.position for node in leading}
    for shard in shards:
        if leading and not any(edge.source is not None and edge.source.position in starts for edge in shard.edges_in):
            yield _missing_link(leading[0], shard)
    updates = operator.children_of_type("KVCacheUpdateNode")
    yield from _shards_to(operator, shards, updates, "cache write")
    fed = [node for node in closing if any(edge.source in shards for edge in node.edges_in)]
    yield from _shards_to(operator, shards, fed or closing[:1], "collective")
    # The first closing collective was named above where no shard leads to any.
    for node in (*updates[1:], *(closing if fed else closing[1:])):
        if not any(edge.source is not None and edge.source.parent is operator for edge in node.edges_in):
            yield Finding(
                f"nothing in {label(operator)} leads to {label(node)}", where=node,
                remedy="add the edges that its role needs, or drop it",
            )  # fmt: skip


def _inside_moe(operator: NodeView) -> Iterator[Finding]:
    """Parts of a MoE operator that no edge touches, as one finding."""
    parts = [child for child in operator.children if child.is_collective or child.type in ("RouterNode", "ExpertNode")]
    loose = [part for part in parts if not part.edges_in and not part.edges_out]
    if loose and len(parts) > 1:
        yield Finding(
            f"no edge joins {', '.join(label(part) for part in loose[:4])} to the rest of {label(operator)}",
            where=loose[0],
            nodes=loose,
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every missing edge inside the stages."""
    for phase in view.phases:
        yield from _phase(phase)
    holders = [*OPERATOR_ORDER]
    if "tp_in_expert" in view.relaxations:
        holders.append("ExpertNode")
    if "vocab_parallel" in view.relaxations:
        holders.extend(("EmbeddingNode", "LMHeadNode"))
    for operator in view.of_type(*holders):
        if operator.type == "MoENode":
            yield from _inside_moe(operator)
        else:
            yield from _inside_operator(operator)


_BASE = "dense-tp2"

RULE = Rule(
    id="ST005",
    name="unconnected node",
    severity="error",
    requirement="Every node is reachable: no operator, shard or collective without the edges that its role needs.",
    rationale="A node that nothing leads to is never run, and one that leads nowhere is run for nothing.",
    source="000 §8",
    fix="local",
    remedy="add the edge",
    check=check,
    good=Example(_BASE),
    bad=Example(
        _BASE, (Edit("remove_edge", value={"source": "r0.decode.s0.b0.attn", "target": "r0.decode.s0.b0.ffn"}),)
    ),
)
