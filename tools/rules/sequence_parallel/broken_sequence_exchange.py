"""SP002: sequence shards are ranked 0…sp−1, each once, and exchange what they need before and after.

Either an AllGather of K and V in and a closing AllGather out, or AllToAll `sequence_in` and `sequence_out`; never one
of each.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...plan.degrees import missing_rank
from ...plan.view import NodeView, PlanView
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import (
    dimension_at_fault,
    leading_to,
    leaving_out,
    left_out,
    names,
    rank_groups,
    sequence_degree,
    tensor_degree,
)

_WORDS = {"AllGatherNode": "AllGather", "AllToAllNode": "AllToAll"}


class _Exchange(Struct, frozen=True, eq=False):
    """The collectives before the shards (`into`) and after them (`out`) of one attention operator."""

    operator: NodeView
    shards: list[NodeView]
    into: list[NodeView]
    out: list[NodeView]


def _exchange(operator: NodeView) -> _Exchange:
    gathers = operator.children_of_type("AllGatherNode")
    feeding = [node for node in gathers if any(_is_shard_of(operator, edge.target) for edge in node.edges_out)]
    # If no gather feeds the shards, one without incoming edges is the gather of K and V that lost its edges.
    feeding = feeding or [node for node in gathers if not node.edges_in][:1]
    exchanges = operator.children_of_type("AllToAllNode")
    return _Exchange(
        operator,
        operator.children_of_type("ShardNode"),
        [*feeding, *(node for node in exchanges if node.role == "sequence_in")],
        [*(node for node in gathers if node not in feeding), *(n for n in exchanges if n.role == "sequence_out")],
    )


def _is_shard_of(operator: NodeView, node: NodeView | None) -> bool:
    return node is not None and node.type == "ShardNode" and node.parent is operator


def _ranks(view: PlanView, operator: NodeView) -> Finding | None:
    if dimension_at_fault(view, operator) != "sp":
        return None
    missing = missing_rank(view, operator) or {}
    shards = operator.children_of_type("ShardNode")
    ranks = [shard.rank.get("sp") for shard in shards]
    known = {rank for rank in (*ranks, missing.get("sp")) if rank is not None}
    size = len(known) if missing else max(len(group) for group in rank_groups(operator, "sp"))
    lacking = f"no shard has the rank {missing}, and " if missing else ""
    return Finding(
        "wrong-ranks",
        f"{lacking}the sequence shards of {label(operator)} have the sp ranks {ranks!r:.200}; they run from 0, "
        "each as often as the others",
        where=operator,
        nodes=shards,
        value=ranks,
        expected=list(range(size)),
        remedy="number the sequence shards from 0, each once in every TP group",
        lacks=("ShardNode",),
    )


def _missing(exchange: _Exchange) -> Iterator[Finding]:
    operator = exchange.operator
    if any(node.role in ("dispatch", "combine") for node in operator.children_of_type("AllToAllNode")):
        # It exists with the role of an exchange of experts (EP001).
        return
    sides = (
        (exchange.into, exchange.out, "before its shards", "AllGather of K and V", "sequence_in"),
        (exchange.out, exchange.into, "after its shards", "closing AllGather", "sequence_out"),
    )
    for exchanges, opposite, where, gather, role in sides:
        if exchanges:
            continue
        wanted = f"AllToAll {role}" if opposite and opposite[0].type == "AllToAllNode" else gather
        yield Finding(
            "no-exchange",
            f"{label(operator)} has no {wanted} {where}",
            where=operator,
            nodes=(operator, *exchange.shards, *operator.children_of_type("AllReduceNode", "ReduceScatterNode")),
            expected=wanted,
            remedy=f"add the {wanted} over the shards' devices and its synchronization edges",
            lacks=("AllToAllNode",) if wanted.startswith("AllToAll") else ("AllGatherNode",),
        )


def _mixed(exchange: _Exchange) -> Finding | None:
    kinds = {node.type for node in exchange.into}, {node.type for node in exchange.out}
    if not kinds[0] or not kinds[1] or kinds[0] & kinds[1]:
        return None
    before, after = exchange.into[0], exchange.out[0]
    return Finding(
        "mixed-kinds",
        f"{label(exchange.operator)} exchanges by {_WORDS[before.type]} in and {_WORDS[after.type]} out; both are of "
        "one kind",
        where=after,
        nodes=(before, after, exchange.operator),
        value=[before.type, after.type],
        expected=[before.type, before.type],
        remedy="use AllGather in and out, or AllToAll sequence_in and sequence_out",
    )


def _unfed(exchange: _Exchange) -> Iterator[Finding]:
    fed = {edge.target.position for node in exchange.into for edge in node.edges_out if edge.target is not None}
    lacking = [shard for shard in exchange.shards if shard.position not in fed]
    if lacking and exchange.into:
        yield Finding(
            "shard-not-fed",
            f"no edge leads from {label(exchange.into[0])} to {names(lacking)}",
            where=exchange.into[0],
            nodes=(exchange.into[0], *lacking),
            value=[shard.id for shard in lacking[:MAX_NAMES]],
            remedy="join the exchange to every shard by a synchronization edge",
            unlinked=[(exchange.into[0], shard) for shard in lacking],
        )


def _unclosed(exchange: _Exchange) -> Iterator[Finding]:
    closed = leading_to(exchange.out)
    ends = exchange.shards
    if tensor_degree(exchange.operator) > 1:
        # With TP the sum continues; a shard that does not reach its sum is TP003's.
        sums = exchange.operator.children_of_type("AllReduceNode", "ReduceScatterNode")
        ends = [node for node in sums if node.edges_in and not _is_closed_before(node, exchange)]
    lacking = [node for node in ends if node.position not in closed]
    if lacking and exchange.out:
        yield Finding(
            "not-closed",
            f"no edge leads from {names(lacking)} into {label(exchange.out[0])}, the end of {label(exchange.operator)}",
            where=exchange.out[0],
            nodes=(exchange.out[0], *lacking),
            value=[node.id for node in lacking[:MAX_NAMES]],
            remedy="join it to the closing exchange by a synchronization edge",
            unlinked=[(node, exchange.out[0]) for node in lacking],
        )


def _is_closed_before(total: NodeView, exchange: _Exchange) -> bool:
    """Whether the shards pass the closing exchange on their way into this sum."""
    return any(edge.source is not None and edge.source in exchange.out for edge in total.edges_in)


def _narrow(view: PlanView, exchange: _Exchange) -> Iterator[Finding]:
    for node in (*exchange.into, *exchange.out):
        lacking = left_out(view, node, exchange.shards)
        if lacking:
            where = f"shards of {label(exchange.operator)} compute"
            remedy = "run the exchange over the devices of all shards"
            yield leaving_out("device-left-out", node, lacking, where, remedy)


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding | None]:
    """Yield every rank, node and edge that the sequence shards of an attention operator lack."""
    phase = operator.ancestor("PhaseNode")
    if phase is not None and phase.raw.get("phase") == "decode":
        return
    yield _ranks(view, operator)
    if sequence_degree(operator) < 2:
        return
    exchange = _exchange(operator)
    yield _mixed(exchange)
    yield from _missing(exchange)
    yield from _unfed(exchange)
    yield from _unclosed(exchange)
    yield from _narrow(view, exchange)


RULE = Rule(
    id="SP002",
    name="broken sequence exchange",
    requirement=(
        "Sequence shards 0…sp−1, each once; explicit synchronization: K/V AllGather in and AllGather out, or AllToAll "
        "sequence_in and sequence_out, never one of each."
    ),
    rationale=(
        "A query attends to the keys of all earlier tokens, most of which are other shards'. Without the exchange each "
        "shard attends to its own tokens alone, which is another model."
    ),
    source="000 §3.2",
    remedy="write both exchanges as nodes and join them to every shard",
    visits=("AttentionNode",),
    decide=decide,
    bad=Example("dense-sp2-tp2", (Edit("remove_node", "r0.prefill.s0.b0.attn.kvag"),)),
)
