"""Reads and replays trace folders: a decoder by field numbers, and the alpha-beta arithmetic of collectives.

A rank runs one kernel at a time, one collective or send at a time, and any number of receives. A collective begins
when all its ranks have reached it. Links are never congested.
"""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 6, 7


class Node(Struct, frozen=True):
    """A node as it was read."""

    id: int
    name: str
    type: int
    needs: tuple[int, ...]
    duration_us: int
    attributes: dict[str, Any]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and the place after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value (a whole number, or bytes) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at : at + value], at + value
        else:
            assert key & 7 == 0
        yield key >> 3, value


def read_trace(data: bytes) -> tuple[str, list[Node]]:
    """The version and the nodes of a trace file."""
    messages: list[bytes] = []
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        assert at + length <= len(data)
        messages.append(data[at : at + length])
        at += length
    ((place, version),) = fields(messages[0])
    assert place == 1
    return version.decode(), [_node(message) for message in messages[1:]]


def _node(message: bytes) -> Node:
    numbered: dict[int, Any] = {5: b"", 7: 0}
    attributes: dict[str, Any] = {}
    for place, value in fields(message):
        if place == 10:
            (named, name), (member, content) = fields(value)
            assert named == 1 and member in (9, 11, 13, 27, 29)
            attributes[name.decode()] = content.decode() if member == 29 else content
        else:
            numbered[place] = value
    assert set(numbered) <= {1, 2, 3, 5, 7}
    needs: list[int] = []
    at = 0
    while at < len(numbered[5]):
        need, at = varint(numbered[5], at)
        needs.append(need)
    return Node(numbered[1], numbered[2].decode(), numbered[3], tuple(needs), numbered[7], attributes)


class Run(Struct, frozen=True):
    """The decoded files of one phase."""

    traces: dict[int, list[Node]]
    groups: dict[str, list[int]]
    network: dict[str, list[Any]]

    def link(self, ranks: list[int]) -> tuple[float, float]:
        """Nanoseconds of a step among `ranks` and of a byte, on the outermost level on which they differ."""
        size, step_and_byte_ns = 1, (0.0, 0.0)
        levels = (self.network[key] for key in ("npus_count", "bandwidth", "latency"))
        for count, gb_s, latency_ns in zip(*levels, strict=True):
            if len({rank // size % count for rank in ranks}) > 1:
                step_and_byte_ns = latency_ns, 1e9 / (gb_s * 2**30)
            size *= count
        return step_and_byte_ns


def read_run(files: Mapping[str, bytes]) -> Run:
    """The run of one phase, from its files by name."""
    traces: dict[int, list[Node]] = {}
    for name, data in files.items():
        if name.endswith(".et"):
            version, nodes = read_trace(data)
            assert version == "0.0.4"
            traces[int(name.split(".")[-2])] = nodes
    return Run(traces, json.loads(files["groups.json"]), yaml.safe_load(files["network.yml"]))


def collective_ns(kind: int, size: int, ranks: list[int], run: Run) -> float:
    """Nanoseconds of a collective in which each rank brings `size` bytes."""
    step_ns, byte_ns = run.link(ranks)
    rounds = {ALL_REDUCE: 2, ALL_GATHER: 1, ALL_TO_ALL: 1, REDUCE_SCATTER: 1}[kind] * (len(ranks) - 1)
    part = size if kind == ALL_GATHER else size / len(ranks)
    return rounds * (step_ns + part * byte_ns)


class _Replay:
    """Simulates the ranks; `ends` holds the time at which each has finished, in nanoseconds."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.nodes = {rank: {node.id: node for node in nodes} for rank, nodes in run.traces.items()}
        self.waits = {rank: {node.id: len(node.needs) for node in nodes} for rank, nodes in run.traces.items()}
        self.next: dict[int, dict[int, list[int]]] = {rank: defaultdict(list) for rank in run.traces}
        for rank, nodes in run.traces.items():
            for node in nodes:
                for need in node.needs:
                    self.next[rank][need].append(node.id)
        self.ready = {
            rank: [number for number, count in waits.items() if not count] for rank, waits in self.waits.items()
        }
        self.busy: set[tuple[int, bool]] = set()
        self.met: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        self.calls: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.ways: defaultdict[tuple[int, ...], dict[int, tuple[int, int, float]]] = defaultdict(dict)
        self.events: list[tuple[float, int, int]] = []
        self.ends = dict.fromkeys(run.traces, 0.0)
        self.left = sum(map(len, self.nodes.values()))

    def go(self) -> dict[int, float]:
        for rank in self.nodes:
            self.issue(rank, 0.0)
        while self.events:
            now, rank, done = heapq.heappop(self.events)
            node = self.nodes[rank][done]
            if node.type != RECV:
                self.busy.discard((rank, node.type == COMP))
            self.ends[rank], self.left = now, self.left - 1
            for after in self.next[rank][done]:
                self.waits[rank][after] -= 1
                if not self.waits[rank][after]:
                    self.ready[rank].append(after)
            self.issue(rank, now)
        assert self.left == 0, "a node was never run"
        return self.ends

    def issue(self, rank: int, now: float) -> None:
        for number in sorted(self.ready[rank]):
            node = self.nodes[rank][number]
            resource = (rank, node.type == COMP)
            if node.type == RECV or resource not in self.busy:
                self.ready[rank].remove(number)
                if node.type != RECV:
                    self.busy.add(resource)
                self.start(rank, node, now)

    def start(self, rank: int, node: Node, now: float) -> None:
        if node.type == COMP:
            heapq.heappush(self.events, (now + max(1, node.duration_us * 1000), rank, node.id))
        elif node.type == COLL:
            name = node.attributes["pg_name"]
            place = name, self.calls[name, rank]
            self.calls[name, rank] += 1
            self.met[place].append((rank, node.id))
            ranks = self.run.groups[name]
            if len(self.met[place]) == len(ranks):
                attributes = [self.nodes[other][number].attributes for other, number in self.met[place]]
                ((kind, size),) = {(call["comm_type"], call["comm_size"]) for call in attributes}
                end = now + collective_ns(kind, size, ranks, self.run)
                for other, number in self.met[place]:
                    heapq.heappush(self.events, (end, other, number))
        else:
            ends = [node.attributes[key] for key in ("comm_src", "comm_dst", "comm_tag", "comm_size")]
            step_ns, byte_ns = self.run.link(ends[:2])
            way = self.ways[tuple(ends)]
            if node.type == SEND:
                heapq.heappush(self.events, (now + step_ns + ends[3] * byte_ns, rank, node.id))
            way[node.type] = (rank, node.id, now)
            if len(way) == 2:
                arrived = max(now, way[SEND][2] + step_ns + ends[3] * byte_ns)
                heapq.heappush(self.events, (arrived, way[RECV][0], way[RECV][1]))


def replay(run: Run) -> dict[int, float]:
    """Nanoseconds until each rank has run all its nodes."""
    return _Replay(run).go()
