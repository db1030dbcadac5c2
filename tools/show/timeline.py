"""When each operator of an execution DAG runs, and on which lane: every GPU has lanes of compute and of links.

An operator begins when all that it waits for have ended, as in the estimate, whose time of a pass is the end of the
longest path; host time before a pass is no operator and not in it. What one device runs at a time has one lane; a
further lane takes what runs beside it (a shared expert beside the routed ones, what arrives while it sends).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError
from ..performance.execution import expand_plan
from ..performance.execution_model import ExecutionDAG, ExecutionNode
from ..plan.document import Phase
from ..plan.elements import parse_device
from ..plan.view import PlanView

Stream = Literal["compute", "links"]


@dataclass(frozen=True, slots=True)
class Lane:
    """What one device runs one after another: places in the DAG's nodes, in order of time."""

    device: str
    stream: Stream
    number: int
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        """`compute`, or `compute 2` for what runs beside it."""
        return self.stream if self.number == 0 else f"{self.stream} {self.number + 1}"


@dataclass(frozen=True, slots=True)
class Timeline:
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
    """The timeline of a phase; like layers are one with `fold`, or where there are more operators than can be written.

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
    # The nodes of a DAG are listed in the order in which they are written: none before what it waits for.
    for place, node in enumerate(dag.nodes):
        latest = max(waits[place], key=lambda before: spans[before][1], default=-1)
        start = spans[latest][1] if latest >= 0 else 0.0
        spans.append((start, start + node.ms * (node.repeat or 1)))
        last.append(latest)
    return Timeline(dag, tuple(spans), frozenset(_path(spans, last)), tuple(_lanes(dag.nodes, spans)))


def devices_of(node: ExecutionNode) -> tuple[str, ...]:
    """Every device that a node keeps busy."""
    return node.devices or ((node.device,) if node.device is not None else ())


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
            found = lanes.setdefault((device, stream), [])
            free = next((lane for lane in found if spans[lane[-1]][1] <= start), None)
            if free is None:
                found.append([place])
            else:
                free.append(place)
    for device, stream in sorted(lanes, key=lambda lane: (device_key(lane[0]), lane[1])):
        for number, lane in enumerate(lanes[device, stream]):
            yield Lane(device, stream, number, tuple(lane))
