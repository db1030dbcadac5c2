"""When each operator of an execution DAG runs, and on which lane (every GPU has lanes of compute and of links); also in
the Trace Event Format.

An operator begins when all that it waits for have ended, as in the estimate, whose time of a pass is the end of the
longest path; host time before a pass is no operator and not in it. A lane holds what a device runs one after another; a
further lane takes what runs beside it (a shared expert beside the routed ones, what arrives while it sends).

A process is a rank (a GPU), a thread one of its lanes; an arrow leads from each transfer between pipeline stages to
what it lets begin. Times are microseconds to three places; the decode step stands behind the prefill pass. Format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..draw.style import clipped
from ..errors import InputError
from ..performance.execution import expand_plan
from ..performance.execution_model import ExecutionDAG, ExecutionNode, devices_of
from ..plan.document import PHASES, Phase
from ..plan.elements import parse_device
from ..plan.view import PlanView

Stream = Literal["compute", "links"]


class Lane(Struct, frozen=True):
    """What a device runs one after another: places in the DAG's nodes, in order of time."""

    device: str
    stream: Stream
    number: int
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        """`compute`, or `compute 2` for what runs beside it."""
        return self.stream if self.number == 0 else f"{self.stream} {self.number + 1}"


class Timeline(Struct, frozen=True):
    """One phase in time. `spans_ms` are beginning and end of each node of the DAG; `critical` is the longest path."""

    dag: ExecutionDAG
    spans_ms: tuple[tuple[float, float], ...]
    critical: frozenset[int]
    lanes: tuple[Lane, ...]

    @property
    def ms(self) -> float:
        """When the last operator ends."""
        return max((end for _, end in self.spans_ms), default=0.0)


def phase_timeline(view: PlanView, phase: Phase, *, fold: bool = False) -> Timeline:
    """The timeline of a phase; like layers are folded with `fold`, or where there are too many operators to write.

    Raises InputError: the plan cannot be timed, or lacks the phase.
    """
    try:
        dag = expand_plan(view, phase, fold=fold)
    except InputError:
        if fold:
            raise
        dag = expand_plan(view, phase, fold=True)
    return timeline(dag)


def timeline(dag: ExecutionDAG) -> Timeline:
    """When each operator of `dag` runs."""
    places = {node.id: place for place, node in enumerate(dag.nodes)}
    waits: list[list[int]] = [[] for _ in dag.nodes]
    for edge in dag.edges:
        waits[places[edge.target]].append(places[edge.source])
    spans: list[tuple[float, float]] = []
    last: list[int] = []
    # A DAG lists each node after all that it waits for.
    for place, node in enumerate(dag.nodes):
        latest = max(waits[place], key=lambda before: spans[before][1], default=-1)
        start = spans[latest][1] if latest >= 0 else 0.0
        spans.append((start, start + node.ms * (node.repeat or 1)))
        last.append(latest)
    return Timeline(dag, tuple(spans), frozenset(_path(spans, last)), tuple(_lanes(dag.nodes, spans)))


def device_key(device: str) -> tuple[object, ...]:
    """Sort key: devices by node and GPU, names of another form after them."""
    place = parse_device(device)
    return (0, *place) if place is not None else (1, device)


def _path(spans: Sequence[tuple[float, float]], last: Sequence[int]) -> Iterator[int]:
    place = max(range(len(spans)), key=lambda place: spans[place][1], default=-1)
    while place >= 0:
        yield place
        place = last[place]


def _lanes(nodes: Sequence[ExecutionNode], spans: Sequence[tuple[float, float]]) -> Iterator[Lane]:
    """The lanes of each device; each node is on the first lane of its stream that is free when it begins."""
    lanes: dict[tuple[str, Stream], list[list[int]]] = {}
    for place in sorted(range(len(nodes)), key=lambda place: spans[place]):
        node, (start, end) = nodes[place], spans[place]
        if end <= start:
            continue
        stream: Stream = "links" if node.is_collective else "compute"
        for device in devices_of(node):
            device_lanes = lanes.setdefault((device, stream), [])
            free = next((lane for lane in device_lanes if spans[lane[-1]][1] <= start), None)
            if free is None:
                device_lanes.append([place])
            else:
                free.append(place)
    for device, stream in sorted(lanes, key=lambda lane: (device_key(lane[0]), lane[1])):
        for number, lane in enumerate(lanes[device, stream]):
            yield Lane(device, stream, number, tuple(lane))


# Between the end of the prefill pass and the decode step, which in truth come apart.
_GAP_MS = 1.0
_WHOLE = {"prefill": "prefill pass", "decode": "decode step"}
_PHASE_LANE = "phase"


def chrome_trace(view: PlanView, phase: Phase | None = None) -> str:
    """The trace of both phases of a plan, or of `phase` alone: JSON, an event a line.

    Raises InputError: the plan cannot be timed, or lacks a phase.
    """
    lines = ",\n".join(json.dumps(event, ensure_ascii=True, separators=(",", ":")) for event in _events(view, phase))
    return f'{{"displayTimeUnit":"ms","traceEvents":[\n{lines}\n]}}\n'


def _events(view: PlanView, phase: Phase | None) -> Iterator[dict[str, Any]]:
    timelines = [phase_timeline(view, name) for name in ((phase,) if phase else PHASES)]
    devices = sorted({lane.device for timing in timelines for lane in timing.lanes}, key=device_key)
    ranks = {device: rank for rank, device in enumerate(devices)}
    names = sorted({(lane.stream, lane.number, lane.name) for timing in timelines for lane in timing.lanes})
    threads = {_PHASE_LANE: 0} | {name: number for number, (_, _, name) in enumerate(names, 1)}
    for device, rank in ranks.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": clipped(device, 40)}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
        for name, thread in threads.items():
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}}
            yield {
                "ph": "M", "name": "thread_sort_index", "pid": rank, "tid": thread, "args": {"sort_index": thread},
            }  # fmt: skip
    begin_ms, arrows = 0.0, 0
    for timing in timelines:
        for device in dict.fromkeys(lane.device for lane in timing.lanes):
            whole = _slice(_WHOLE[timing.dag.phase], begin_ms, begin_ms + timing.ms)
            yield {**whole, "cat": "phase", "pid": ranks[device], "tid": 0}
        for lane in timing.lanes:
            place = {"pid": ranks[lane.device], "tid": threads[lane.name]}
            for event in _lane_events(timing, lane, begin_ms):
                yield {**event, **place}
        for arrow in _arrows(timing, ranks, threads, begin_ms, arrows):
            yield arrow
            arrows = arrow["id"]
        begin_ms += timing.ms + _GAP_MS


def _slice(name: str, start_ms: float, end_ms: float) -> dict[str, Any]:
    start_ns, end_ns = round(start_ms * 1e6), round(end_ms * 1e6)
    return {"ph": "X", "name": name, "ts": start_ns / 1e3, "dur": (end_ns - start_ns) / 1e3}


def _lane_events(timing: Timeline, lane: Lane, begin_ms: float) -> Iterator[dict[str, Any]]:
    for place in lane.places:
        start_ms, end_ms = timing.spans_ms[place]
        node = timing.dag.nodes[place]
        facts: dict[str, Any] = {
            "id": node.id, "layer": node.layer, "layers": node.repeat,
            "plan_node": clipped(node.plan_node, 200) or None,
            "flops": node.flops or None, "bytes": node.bytes or None, "comm_bytes": node.comm_bytes or None,
            "input_shape": dict(node.input_shape), "output_shape": dict(node.output_shape), "dtype": node.dtype,
            "constants": node.constants, "critical": place in timing.critical or None,
        }  # fmt: skip
        yield {
            **_slice(title_of(node), begin_ms + start_ms, begin_ms + end_ms),
            "cat": lane.stream,
            "args": {name: value for name, value in facts.items() if value is not None},
        }


def title_of(node: ExecutionNode) -> str:
    """The name of an operator on a timeline."""
    return f"{node.op} {node.role}" if node.role else node.op


def _arrows(
    timing: Timeline, ranks: Mapping[str, int], threads: Mapping[str, int], begin_ms: float, last_id: int
) -> Iterator[dict[str, Any]]:
    """From each transfer between stages, on the rank that sends, to the first operator of each rank that reads it."""
    on = {(lane.device, place): threads[lane.name] for lane in timing.lanes for place in lane.places}
    places = {node.id: place for place, node in enumerate(timing.dag.nodes)}
    first: dict[tuple[int, str], int] = {}
    for edge in timing.dag.edges:
        source, target = places[edge.source], places[edge.target]
        sender, receiver = devices_of(timing.dag.nodes[source])[0], devices_of(timing.dag.nodes[target])[0]
        is_transfer = timing.dag.nodes[source].op == "SendRecv" and edge.type == "data" and sender != receiver
        if is_transfer and (sender, source) in on and (receiver, target) in on:
            known = first.setdefault((source, receiver), target)
            first[source, receiver] = min(known, target, key=lambda place: timing.spans_ms[place])
    for (source, receiver), target in first.items():
        sender = devices_of(timing.dag.nodes[source])[0]
        last_id += 1
        for mark, device, place in (("s", sender, source), ("f", receiver, target)):
            start_ns = round((begin_ms + timing.spans_ms[place][0]) * 1e6)
            yield {
                "ph": mark, "name": "transfer", "cat": "transfer", "id": last_id, "ts": start_ns / 1e3,
                "pid": ranks[device], "tid": on[device, place], **({"bp": "e"} if mark == "f" else {}),
            }  # fmt: skip
