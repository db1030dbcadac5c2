"""The Chakra execution trace of one rank as bytes: length-prefixed proto3 messages, written from the field numbers.

Field numbers and enumerations are those of MLCommons Chakra, `schema/protobuf/et_def.proto` (schema 0.0.4): a file is a
`GlobalMetadata`, then the `Node`s of the rank, each behind its length as a varint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

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


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One node of one rank; `needs` are the ids of nodes of the same rank that it runs after."""

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
        held = _text(member, value) if isinstance(value, str) else _number(member, value)
        yield _field(10, _text(1, name) + held)


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3 | _VARINT) + _varint(value)


def _text(place: int, value: str) -> bytes:
    return _field(place, value.encode("utf-8", errors="replace"))


def _field(place: int, value: bytes) -> bytes:
    return _varint(place << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
