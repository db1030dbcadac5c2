"""ST005: every operator, shard and collective has the edges that its role needs.

Checks the order inside a stage (embedding, blocks, LM head) and inside a block (its operators), and the flow inside an
operator (shards to cache write and collective). A node in the wrong place is named by the rule of its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from ...plan.schema import shown
from ...plan.view import OPERATOR_TYPES, EdgeView, NodeView, PhaseView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..layer_specs import has_all_operators, placed_blocks
from ..reading import label, operators_in_order, relaxed_holders, tiles_layers
from ..sharding import runs_in_groups, undefined_ranks
from ..stage_chain import stage_chain
from ..tree import astray_ends, is_placed


def _missing_link(source: NodeView, target: NodeView) -> Finding:
    turned = any(edge.target is source for edge in target.edges_out)
    return Finding(
        "no-edge",
        f"no edge {label(source)} → {label(target)}{': the one between them runs the other way' if turned else ''}",
        where=target,
        nodes=(source, target),
        expected={"source": source.id, "target": target.id},
        remedy=f"add the edge {label(source)} → {label(target)}",
        unlinked=[(source, target)],
    )


def _positions(nodes: Iterable[NodeView | None]) -> frozenset[int]:
    return frozenset(node.position for node in nodes if node is not None)


def _follows(node: NodeView, before: frozenset[int]) -> bool:
    return any(edge.source is not None and edge.source.position in before for edge in node.edges_in)


def _precedes(node: NodeView, after: frozenset[int]) -> bool:
    return any(edge.target is not None and edge.target.position in after for edge in node.edges_out)


def _sequence(groups: Sequence[Sequence[NodeView]]) -> Iterator[Finding]:
    """Each node of a group follows one of the group before it, and is followed by one of the group after it."""
    for before, after in pairwise(groups):
        earlier, later = _positions(before), _positions(after)
        links = [(before[0], node) for node in after if not _follows(node, earlier)]
        links += [(node, after[0]) for node in before if not _precedes(node, later)]
        for source, target in {(a.position, b.position): (a, b) for a, b in links}.values():
            yield _missing_link(source, target)
    places = {node.position: place for place, group in enumerate(groups) for node in group}
    for node in (node for group in groups for node in group):
        for edge in node.edges_out:
            if edge.target is not None and places.get(edge.target.position, 0) > places[node.position] + 1:
                yield _passing(edge, node, groups[places[node.position] + 1][0])


def _passing(edge: EdgeView, node: NodeView, passed: NodeView) -> Finding:
    return Finding(
        "passes-by",
        f"the edge {label(node)} → {shown(edge.target_id)} passes by {label(passed)}, which runs between them",
        where=edge,
        expected={"source": node.id, "target": passed.id},
        remedy="drop the edge",
    )


def _stage_sequence(stage: StageView, *, first: bool, last: bool) -> Iterator[Finding]:
    if not stage.blocks or any(block.layers is None for block in stage.blocks):
        return
    if not tiles_layers(stage):
        # A block may be missing (PP004).
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

    if any(node.offset >= block.period for node in block.children_of_type(*OPERATOR_TYPES)):
        # Its place in the period is open (PP005).
        return
    yield from _sequence([list(group) for _, group in groupby(operators_in_order(block), key=place)])


def _phase(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    stages = stage_chain(phase).stages
    described = {block.position: layers for block, layers in placed_blocks(view, phase)}
    for stage in stages:
        yield from _stage_sequence(stage, first=stage is stages[0], last=stage is stages[-1])
        for block in stage.distinct_blocks:
            # An operator that is missing (PP005) has no edges.
            layers = described.get(block.position)
            if layers is None or has_all_operators(view, block, layers):
                yield from _block_sequence(block)


def _shards_to(
    operator: NodeView, shards: Sequence[NodeView], ends: Sequence[NodeView], what: str
) -> Iterator[Finding]:
    """Shards without an edge to one of `ends`. If no shard has one, that is one fault of the end."""
    goals = _positions(ends)
    lacking = [shard for shard in shards if not _precedes(shard, goals)]
    if len(lacking) == len(shards) and ends:
        yield Finding(
            "shards-not-joined",
            f"no shard of {label(operator)} leads to its {what} {label(ends[0])}",
            where=ends[0],
            nodes=(ends[0], *shards),
            value=0,
            expected=len(shards),
            remedy=f"add an edge from every shard to {label(ends[0])}",
            unlinked=[(shard, ends[0]) for shard in lacking],
        )
    elif ends:
        for shard in lacking:
            yield _missing_link(shard, ends[0])


def _leads(node: NodeView, computing: frozenset[int]) -> bool:
    """Whether `node` is before some shards, and in no cycle with any of them (ST004)."""
    after = _positions(edge.target for edge in node.edges_out) & computing
    return bool(after) and not _follows(node, after)


def _is_fed_inside(operator: NodeView, node: NodeView) -> bool:
    return any(edge.source is not None and edge.source.parent is operator for edge in node.edges_in)


def _role(node: NodeView, leading: frozenset[int]) -> str:
    """The role of a node in its operator; a shard or a collective needs only one node of each role."""
    if node.position in leading:
        return "what feeds its shards"
    return "cache write" if node.type == "KVCacheUpdateNode" else "collective"


def _doubled(operator: NodeView, leading: frozenset[int]) -> Iterator[Finding]:
    """Second nodes of a role that a shard or a collective of the operator leads to."""
    doubles: dict[int, tuple[NodeView, NodeView]] = {}
    befores = {end.position: _positions(edge.source for edge in end.edges_in) for end in operator.children}
    for node in operator.children:
        first: dict[str, NodeView] = {}
        # Each once, however often an edge is repeated.
        ends = {
            end.position: end
            for end in (edge.target for edge in node.edges_out)
            if end is not None and end.parent is operator and (end.is_collective or end.type == "KVCacheUpdateNode")
        }
        # If one of two leads to the other, the other is the second.
        for end in sorted(ends.values(), key=lambda end: (not befores[end.position].isdisjoint(ends), end.position)):
            other = first.setdefault(_role(end, leading), end)
            if other is not end:
                doubles[end.position] = (end, other)
    for end, other in doubles.values():
        yield Finding(
            "second-of-its-role",
            f"what leads to {label(end)} in {label(operator)} leads to {label(other)} already: one "
            f"{_role(end, leading)} is enough",
            where=end,
            nodes=(other,),
            value=[other.id, end.id],
            expected=[other.id],
            remedy=f"drop the edges to {label(end)}, or {label(end)} itself",
        )


def _idle_leads(view: PlanView, operator: NodeView, leading: Sequence[NodeView]) -> Iterator[Finding]:
    """Collectives before shards that need no exchange: neither the sequence is split nor are groups joined."""
    joins_groups = operator.type == "FFNNode" and runs_in_groups(view)
    if (
        joins_groups
        or undefined_ranks(operator)
        or any("sp" in shard.rank for shard in operator.children_of_type("ShardNode"))
    ):
        return
    for node in leading:
        yield Finding(
            "feeds-nothing",
            f"{label(node)} leads to the shards of {label(operator)}, which need nothing of one another",
            where=node,
            nodes=(operator,),
            value=node.type,
            remedy=f"drop {label(node)} and its edges",
        )


def _inside_operator(view: PlanView, operator: NodeView) -> Iterator[Finding]:
    shards = operator.children_of_type("ShardNode")
    if operator.type == "FFNNode":
        # Sequence shards do not belong in an FFN (SP001), so no edges are expected.
        shards = [shard for shard in shards if "sp" not in shard.rank]
    if not shards:
        return
    computing = _positions(shards)
    collectives = [child for child in operator.children if child.is_collective]
    # Collectives that feed the shards (K/V AllGather, `sequence_in`, gathered tokens) close nothing.
    leading = [node for node in collectives if node.role == "sequence_in" or _leads(node, computing)]
    starts = _positions(leading)
    yield from _idle_leads(view, operator, leading)
    yield from _doubled(operator, starts)
    for shard in shards:
        if leading and not _follows(shard, starts):
            yield _missing_link(leading[0], shard)
    updates = operator.children_of_type("KVCacheUpdateNode")
    yield from _shards_to(operator, shards, updates, "cache write")
    closing = [node for node in collectives if node.position not in starts]
    fed = [node for node in closing if _follows(node, computing)]
    yield from _shards_to(operator, shards, fed or closing[:1], "collective")
    # If no shard leads to a closing collective, the first was reported above.
    remaining = (*updates[1:], *(closing if fed else closing[1:]))
    unfed = [node for node in remaining if not _is_fed_inside(operator, node)]
    # If an edge of the operator leads elsewhere, that is the fault.
    if unfed and all(positions.isdisjoint(_positions(operator.children)) for positions in astray_ends(view)):
        for node in unfed:
            yield Finding(
                "nothing-leads-to-it",
                f"nothing in {label(operator)} leads to {label(node)}", where=node, value=0, expected="at least 1 edge",
                remedy="add the edges that its role needs, or drop it",
            )  # fmt: skip


def _empty(view: PlanView) -> Iterator[Finding]:
    """Operators without shards, unless some shard is misplaced: it may be theirs, and another rule reports it."""
    empty = [node for node in view.of_type("AttentionNode", "FFNNode") if not node.children_of_type("ShardNode")]
    if empty and all(is_placed(view, shard) for shard in view.of_type("ShardNode")):
        for operator in empty:
            yield Finding(
                "no-shard",
                f"{label(operator)} has no shard: no device computes it",
                where=operator,
                value=0,
                expected="at least 1 shard",
                remedy="add a shard on each device that computes it",
            )


def _inside_moe(operator: NodeView) -> Iterator[Finding]:
    """Collectives of a MoE operator that no edge touches, as one finding; its other parts are EP002's."""
    collectives = operator.children_of_type("AllReduceNode", "AllGatherNode", "ReduceScatterNode")
    loose = [node for node in collectives if not node.edges_in and not node.edges_out]
    if loose:
        yield Finding(
            "loose-collective",
            f"no edge joins {', '.join(label(part) for part in loose[:4])} to the rest of {label(operator)}",
            where=loose,
            value=0,
            expected="at least 1 edge",
            remedy=f"add the edges of {label(loose[0])}, or drop it",
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every missing edge inside the stages."""
    for phase in view.phases:
        yield from _phase(view, phase)
    yield from _empty(view)
    for operator in view.of_type(*OPERATOR_TYPES, *relaxed_holders(view)):
        if operator.type == "MoENode":
            yield from _inside_moe(operator)
        else:
            yield from _inside_operator(view, operator)


RULE = Rule(
    id="ST005",
    name="unconnected node",
    requirement=(
        "Every node is reachable: no operator, shard or collective without the edges that its role needs, or without "
        "a role."
    ),
    rationale="A node that nothing leads to is never run, and one that leads nowhere is run for nothing.",
    source="000 §8",
    remedy="add the edge",
    visits="parts",
    check=check,
    bad=Example(
        "dense-tp2", (Edit("remove_edge", value={"source": "r0.decode.s0.b0.attn", "target": "r0.decode.s0.b0.ffn"}),)
    ),
)
