"""The execution DAG of a phase as nodes of each rank's trace, the duration of its communication, and the trace of a
rank as bytes (Chakra's proto3).

A node of the DAG is a node on each of its ranks. Edges join nodes of one rank; ranks are joined only by collectives and
by pairs of send and receive. Nodes that take no time are left out; their successors wait for their predecessors.

Field numbers and enumerations are those of MLCommons Chakra, `schema/protobuf/et_def.proto` (schema 0.0.4): a file is
a `GlobalMetadata`, then the `Node`s of the rank, each behind its length as a varint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct, field

from ..performance.execution_model import ExecutionDAG, ExecutionNode, devices_of
from ..performance.operation import OpName

SCHEMA_VERSION = "0.0.4"
_VARINT, _BYTES = 0, 2  # wire types


class NodeType(IntEnum):
    """What a node of a trace does."""

    COMP = 4
    SEND = 5
    RECV = 6
    COLL = 7


class CollectiveType(IntEnum):
    """The collectives of a trace that ASTRA-sim simulates."""

    ALL_REDUCE = 0
    ALL_GATHER = 2
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7


# The member of `AttributeProto` that holds each attribute, as ASTRA-sim's own generators write them.
_INT64, _UINT32, _UINT64, _BOOL, _STRING = 9, 11, 13, 27, 29
_MEMBERS = {
    "is_cpu_op": _BOOL, "num_ops": _UINT64, "tensor_size": _UINT64, "comm_type": _INT64, "comm_size": _UINT64,
    "comm_src": _UINT32, "comm_dst": _UINT32, "comm_tag": _UINT32, "pg_name": _STRING,
}  # fmt: skip


class TraceNode(Struct, frozen=True):
    """One node of one rank; it runs after the nodes with the ids `needs`, of the same rank."""

    id: int
    name: str
    type: NodeType
    needs: tuple[int, ...] = ()
    duration_us: int = 0
    attributes: Mapping[str, int | str] = field(default_factory=dict[str, int | str])


def trace_bytes(nodes: Iterable[TraceNode]) -> bytes:
    """The file of one rank."""
    messages = (_text(1, SCHEMA_VERSION), *(b"".join(_node(node)) for node in nodes))
    return b"".join(_varint(len(message)) + message for message in messages)


def _node(node: TraceNode) -> Iterator[bytes]:
    yield _number(1, node.id)
    yield _text(2, node.name)
    yield _number(3, node.type)
    if node.needs:
        yield _field(5, b"".join(map(_varint, node.needs)))
    if node.duration_us:
        yield _number(7, node.duration_us)
    for name, value in {"is_cpu_op": 0, **node.attributes}.items():
        member = _MEMBERS[name]
        content = _text(member, value) if isinstance(value, str) else _number(member, value)
        yield _field(10, _text(1, name) + content)


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3 | _VARINT) + _varint(value)


def _text(place: int, value: str) -> bytes:
    return _field(place, value.encode("utf-8", errors="replace"))


def _field(place: int, value: bytes) -> bytes:
    return _varint(place << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """An unsigned number, seven bits per byte, lowest first."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_COLLECTIVES: Mapping[OpName, CollectiveType] = {
    "AllReduce": CollectiveType.ALL_REDUCE,
    "AllGather": CollectiveType.ALL_GATHER,
    "ReduceScatter": CollectiveType.REDUCE_SCATTER,
    "AllToAll": CollectiveType.ALL_TO_ALL,
}
# Ids in one rank's trace that represent a node of the DAG.
_Ids = tuple[int, ...]


class Exchange(Struct, frozen=True):
    """A collective or a transfer among `ranks`: its steps, bytes that each rank sends, predicted seconds."""

    ranks: tuple[int, ...]
    steps: int
    sent_bytes: float
    seconds: float


class RankTrace(Struct):
    """The nodes of one rank, in execution order."""

    nodes: list[TraceNode] = field(default_factory=list[TraceNode])
    _computed_us: float = 0.0
    _last_on_links: _Ids = ()

    @property
    def last(self) -> _Ids:
        """The last node; empty if there is none."""
        return (self.nodes[-1].id,) if self.nodes else ()

    def compute(self, node: ExecutionNode, needs: _Ids) -> _Ids:
        """Add a node that keeps the GPU busy; returns its ids."""
        # Each ends at the microsecond nearest to its exact end, so that roundings never add up.
        start_us = self._computed_us
        self._computed_us = start_us + node.ms * 1e3
        duration_us = round(self._computed_us) - round(start_us)
        work = {"num_ops": round(node.flops), "tensor_size": round(node.bytes)}
        return self._add(NodeType.COMP, node.id, needs, duration_us, work)

    def communicate(
        self, kind: NodeType, name: str, needs: _Ids, seconds: float, attributes: Mapping[str, int | str]
    ) -> _Ids:
        """Add a node on links. All but receives run one after another, so that ranks meet in the same order."""
        if kind is NodeType.RECV:
            return self._add(kind, name, needs, round(seconds * 1e6), attributes)
        waits = (*needs, *(waited for waited in self._last_on_links if waited not in needs))
        self._last_on_links = self._add(kind, name, waits, round(seconds * 1e6), attributes)
        return self._last_on_links

    def _add(
        self, kind: NodeType, name: str, needs: _Ids, duration_us: int, attributes: Mapping[str, int | str]
    ) -> _Ids:
        self.nodes.append(TraceNode(len(self.nodes), name, kind, needs, duration_us, attributes))
        return self.last


class Traces(Struct):
    """The traces of one phase, by rank; `rank_of` numbers the devices.

    `groups` numbers the communicators by their ranks, `predicted_ms` is the longest path through the nodes.
    """

    rank_of: Mapping[str, int]
    ranks: defaultdict[int, RankTrace] = field(default_factory=lambda: defaultdict(RankTrace))
    groups: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    predicted_ms: float = 0.0
    _sends: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def write(self, dag: ExecutionDAG) -> None:
        """Add all nodes of `dag`, which is in topological order."""
        sources: defaultdict[str, list[str]] = defaultdict(list)
        for edge in dag.edges:
            sources[edge.target].append(edge.source)
        written: dict[tuple[str, int], _Ids] = {}
        end_ms: dict[str, float] = {}
        for node in dag.nodes:
            before = sources[node.id]
            end_ms[node.id] = max((end_ms[source] for source in before), default=0.0) + node.ms
            ranks = [self.rank_of[device] for device in devices_of(node)]
            needs = {
                rank: tuple(sorted({need for source in before for need in written.get((source, rank), ())}))
                for rank in ranks
            }
            ids_by_rank = self._node_ids(node, needs) if node.ms > 0.0 else needs
            written.update(((node.id, rank), ids) for rank, ids in ids_by_rank.items())
        self.predicted_ms = max(end_ms.values(), default=0.0)

    def _node_ids(self, node: ExecutionNode, needs: Mapping[int, _Ids]) -> Mapping[int, _Ids]:
        """The ids that represent `node` on each of its ranks, after those that it `needs`."""
        if node.op == "SendRecv":
            # Ranks that computed the data send it: the others are of the next stage.
            senders = [rank for rank, ids in needs.items() if ids]
            receivers = [rank for rank, ids in needs.items() if not ids]
            pairs = spread_pairs(senders, receivers, min(len(senders), len(receivers)))
            return {**needs, **self.send(node.id, pairs, node.comm_bytes, node.ms * 1e-3, needs)}
        if node.is_collective and len(needs) > 1:
            return self._collective(node, needs)
        return {rank: self.ranks[rank].compute(node, ids) for rank, ids in needs.items()}

    def _collective(self, node: ExecutionNode, needs: Mapping[int, _Ids]) -> Mapping[int, _Ids]:
        kind, around, seconds = _COLLECTIVES[node.op], len(needs) - 1, node.ms * 1e-3
        rounds = 2 if kind is CollectiveType.ALL_REDUCE else 1
        # The bytes that each rank holds: it sends each other rank a part, or all of it in a gather.
        parts = 1 if kind is CollectiveType.ALL_GATHER else len(needs)
        size = max(1, round(node.comm_bytes / rounds / around * parts))
        group = self.groups.setdefault(tuple(sorted(needs)), str(len(self.groups) + 1))
        attributes = {"comm_type": int(kind), "comm_size": size, "pg_name": group}
        self.exchanges.append(Exchange(tuple(needs), around * rounds, node.comm_bytes, seconds))
        return {
            rank: self.ranks[rank].communicate(NodeType.COLL, node.id, ids, seconds, attributes)
            for rank, ids in needs.items()
        }

    def send(
        self, name: str, pairs: Iterable[tuple[int, int]], size_bytes: float, seconds: float, needs: Mapping[int, _Ids]
    ) -> Mapping[int, _Ids]:
        """Send `size_bytes` from the first to the second of each pair, once the sender's `needs` are done."""
        ids_by_rank: defaultdict[int, _Ids] = defaultdict(tuple)
        for sender, receiver in pairs:
            tag = self._sends[sender, receiver]
            self._sends[sender, receiver] += 1
            ends = {"comm_size": max(1, round(size_bytes)), "comm_src": sender, "comm_dst": receiver, "comm_tag": tag}
            ids_by_rank[sender] += self.ranks[sender].communicate(NodeType.SEND, name, needs[sender], seconds, ends)
            ids_by_rank[receiver] += self.ranks[receiver].communicate(NodeType.RECV, name, (), seconds, ends)
            self.exchanges.append(Exchange((sender, receiver), 1, size_bytes, seconds))
        return ids_by_rank


def spread_pairs(senders: Sequence[int], receivers: Sequence[int], count: int) -> list[tuple[int, int]]:
    """`count` pairs of a sender and a receiver, each side spread evenly over them, in its order."""
    return [
        (senders[place * len(senders) // count], receivers[place * len(receivers) // count]) for place in range(count)
    ]
