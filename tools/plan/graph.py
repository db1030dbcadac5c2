"""Writes the nodes and edges inside one operator: attention, FFN, MoE, embedding and LM head.

They are plain JSON objects in a `GraphWriter`; the builder turns the whole into a typed `Plan`. Correct by
construction: every collective that an operator needs, and the closing one that the next operator needs (DE004), is
written only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from ..catalog.architecture import MoESpec
from ..errors import InputError
from .devices import runs_of
from .document import PhaseStrategy
from .layout import StageLayout
from .placement import ffn_groups
from .plan_size import MAX_EDGES, MAX_NODES


class GraphWriter(Struct):
    """Collects nodes and edges in the order in which they are written; InputError beyond what a document may hold."""

    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def node(self, node_id: str, node_type: str, parent: str | None, **fields: Any) -> str:
        """Write one node; returns its id."""
        if len(self.nodes) == MAX_NODES:
            raise _too_large("nodes", MAX_NODES)
        self.nodes.append({"id": node_id, "type": node_type, "parent": parent, **fields})
        return node_id

    def data(self, source: str, target: str, carries: str | None = None) -> None:
        """Write a data edge."""
        self._edge(source, target, "data", carries)

    def sync(self, source: str, target: str, carries: str | None = None) -> None:
        """Write a synchronization edge."""
        self._edge(source, target, "synchronization", carries)

    def pipeline(self, source: str, target: str) -> None:
        """Write a pipeline edge between two stages."""
        self._edge(source, target, "pipeline", "activations")

    def _edge(self, source: str, target: str, edge_type: str, carries: str | None) -> None:
        if len(self.edges) == MAX_EDGES:
            raise _too_large("edges", MAX_EDGES)
        edge = {"source": source, "target": target, "type": edge_type}
        self.edges.append(edge if carries is None else {**edge, "carries": carries})


def _too_large(what: str, most: int) -> InputError:
    why = f"the plan would have more than {most:,} {what}, the most that a document holds"
    return InputError(f"{why}: plan a part of the cluster, and run as many of it as there is room for")


class OperatorSite(Struct, frozen=True):
    """Where an operator is written: its parent, degrees and stage, and the devices of operators that may run next."""

    parent: str
    node_id: str
    degrees: PhaseStrategy
    stage: StageLayout
    next_devices: frozenset[str]
    offset: int

    def node(self, graph: GraphWriter, node_type: str, **fields: Any) -> str:
        """Write the node of the operator itself; returns its id."""
        offset = {"offset": self.offset} if self.offset else {}
        return graph.node(self.node_id, node_type, self.parent, **offset, **fields)

    def union(self, devices: Sequence[str]) -> tuple[str, ...]:
        """`devices` and those of the next operator, in the stage's order."""
        wanted = self.next_devices.union(devices)
        return tuple(device for device in self.stage.devices if device in wanted)


def _shards(graph: GraphWriter, parent: str, ranks: Sequence[dict[str, int]], devices: Sequence[str]) -> list[str]:
    ids: list[str] = []
    for rank, device in zip(ranks, devices, strict=True):
        name = ".".join(f"{dimension}{place}" for dimension, place in rank.items()) or "shard"
        ids.append(graph.node(f"{parent}.{name}", "ShardNode", parent, rank=rank, devices=[device]))
    return ids


def ranks_over(**sizes: int) -> list[dict[str, int]]:
    """All ranks over the dimensions larger than 1, the last dimension fastest."""
    ranks: list[dict[str, int]] = [{}]
    for dimension, size in sizes.items():
        if size > 1:
            ranks = [{**rank, dimension: place} for rank in ranks for place in range(size)]
    return ranks


def _collective(
    graph: GraphWriter, parent: str, name: str, node_type: str, devices: Sequence[str], **extra: Any
) -> str:
    return graph.node(f"{parent}.{name}", node_type, parent, **extra, devices=list(devices))


def write_attention(graph: GraphWriter, site: OperatorSite, kind: str) -> str:
    """Write an attention operator: shards, the cache write, and the collectives of TP, SP and the next operator."""
    degrees, devices = site.degrees, site.stage.attention_devices
    operator = site.node(graph, "AttentionNode", kind=kind)
    kv_sp = degrees.kv_sp or 1
    ranks = ranks_over(dp=degrees.attention_dp or 1, kv_sp=kv_sp, sp=degrees.sp, tp=degrees.tp)
    shards = _shards(graph, operator, ranks, devices)
    if degrees.sp > 1:
        gather = (
            _collective(graph, operator, "a2ain", "AllToAllNode", devices, role="sequence_in")
            if degrees.sp_kind == "ulysses"
            else _collective(graph, operator, "kvag", "AllGatherNode", devices)
        )
        for shard in shards:
            graph.sync(gather, shard, "kv_cache")
    update = graph.node(f"{operator}.kv", "KVCacheUpdateNode", operator, devices=list(devices))
    for shard in shards:
        graph.data(shard, update, "kv_cache")
    _close_attention(graph, site, operator, shards)
    return operator


def _close_attention(graph: GraphWriter, site: OperatorSite, operator: str, shards: Sequence[str]) -> None:
    degrees, devices = site.degrees, site.stage.attention_devices
    wider = site.union(devices)
    reduces = degrees.tp > 1 or (degrees.kv_sp or 1) > 1
    ends: Sequence[str] = shards
    if reduces:
        reduce = _collective(
            graph, operator, "ar", "AllReduceNode", devices if degrees.sp > 1 else wider
        )  # fmt: skip
        for shard in shards:
            graph.sync(shard, reduce)
        ends = (reduce,)
    if degrees.sp > 1:
        out = (
            _collective(graph, operator, "a2aout", "AllToAllNode", wider, role="sequence_out")
            if degrees.sp_kind == "ulysses"
            else _collective(graph, operator, "ag", "AllGatherNode", wider)
        )
    elif not reduces and len(wider) > len(devices):
        out = _collective(graph, operator, "ag", "AllGatherNode", wider)
    else:
        return
    for end in ends:
        graph.sync(end, out)


def write_ffn(graph: GraphWriter, site: OperatorSite) -> str:
    """Write a dense FFN operator, or (below a MoE node) a shared expert; returns its id."""
    degrees, devices = site.degrees, site.stage.ffn_devices
    operator = site.node(graph, "FFNNode")
    groups = ffn_groups(degrees)
    shards = _shards(graph, operator, ranks_over(dp=groups, tp=degrees.tp_ffn), devices)
    wider = site.union(devices)
    if (degrees.attention_dp or 1) > 1 and groups == 1 and degrees.tp_ffn > 1:
        # TP over all the attention groups: their tokens are gathered before and scattered back after.
        gather = _collective(graph, operator, "ag", "AllGatherNode", devices)
        for shard in shards:
            graph.sync(gather, shard, "tokens")
        close = _collective(graph, operator, "rs", "ReduceScatterNode", wider)
    elif degrees.tp_ffn > 1:
        close = _collective(graph, operator, "ar", "AllReduceNode", wider)
    elif len(wider) > len(devices):
        close = _collective(graph, operator, "ag", "AllGatherNode", wider)
    else:
        return operator
    for shard in shards:
        graph.sync(shard, close)
    return operator


def expert_runs(experts: Iterable[int]) -> list[list[int] | int]:
    """Expert ids in order, consecutive ones as inclusive ranges."""
    return [run if run[0] < run[1] else run[0] for run in runs_of(experts)]


def write_moe(graph: GraphWriter, site: OperatorSite, moe: MoESpec, *, spreads_shared: bool = True) -> str:
    """Write a MoE operator: router, dispatch, one expert group per device, combine, and the shared expert.

    `spreads_shared`: the shared expert's output is brought to all devices of the stage.
    """
    degrees, devices = site.degrees, list(site.stage.devices)
    operator = site.node(graph, "MoENode")
    router = graph.node(f"{operator}.router", "RouterNode", operator, devices=devices)
    width = degrees.tp_expert or 1
    experts: list[str] = []
    for group in range(degrees.ep):
        group_devices = devices[group * width : (group + 1) * width]
        ids = expert_runs(site.stage.experts[group * width])
        expert = graph.node(f"{operator}.e{group}", "ExpertNode", operator, experts=ids, devices=group_devices)
        experts.append(expert)
        if width > 1:
            reduce_id = f"{expert}.ar"
            for shard in _shards(graph, expert, ranks_over(tp=width), group_devices):
                graph.sync(shard, reduce_id)
            graph.node(reduce_id, "AllReduceNode", expert, devices=group_devices)
    if degrees.ep > 1:
        dispatch = _collective(graph, operator, "dispatch", "AllToAllNode", devices, role="dispatch")
        combine = _collective(graph, operator, "combine", "AllToAllNode", devices, role="combine")
        graph.data(router, dispatch, "routing")
        for expert in experts:
            graph.sync(dispatch, expert, "tokens")
            graph.sync(expert, combine, "tokens")
    else:
        graph.data(router, experts[0], "routing")
    if moe.shared is not None:
        # The shared expert's output is added to the routed one's.
        added_on = frozenset(devices if spreads_shared else ())
        write_ffn(graph, OperatorSite(operator, f"{operator}.shared", degrees, site.stage, added_on, 0))
    return operator


def write_vocabulary(
    graph: GraphWriter, node_type: str, parent: str, stage: StageLayout, shard_ranks: Sequence[dict[str, int]]
) -> str:
    """Write the embedding or LM head: whole on every device of the stage, or split by vocabulary over `shard_ranks`."""
    name = "emb" if node_type == "EmbeddingNode" else "head"
    operator = graph.node(f"{parent}.{name}", node_type, parent, devices=list(stage.devices))
    if shard_ranks:
        shards = _shards(graph, operator, shard_ranks, stage.devices)
        close = (
            _collective(graph, operator, "ar", "AllReduceNode", stage.devices)
            if name == "emb"
            else _collective(graph, operator, "ag", "AllGatherNode", stage.devices)
        )
        for shard in shards:
            graph.sync(shard, close)
    return operator
