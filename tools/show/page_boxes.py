"""The boxes of the page: all of a plan's DAG folded, with its findings where they are and what each box costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from ..draw.box import Box
from ..draw.build import Limits
from ..draw.drawing import Drawing, drawing_of
from ..draw.placing import in_parts, link_label
from ..draw.style import clipped
from ..performance.execution_model import devices_of
from ..plan.elements import MAX_LEVELS, NodeView
from ..plan.view import PlanView
from ..rules.base import Violation
from .page_model import BoxData, LinkData, NodeData
from .timeline import Timeline

# No limits: the whole DAG.
_ALL = Limits(MAX_LEVELS, 1 << 30, 1 << 30, opens_once=False)
_LONGEST_NAME = 200
# Fields of a box, summed over all GPUs: milliseconds on the critical path, FLOPs, bytes read and written, bytes sent.
Cost = dict[str, float]


class PageBoxes(Struct):
    """The boxes of the page and the nodes that they stand for; `found_at` are the boxes of each finding."""

    title: str
    note: str
    boxes: tuple[BoxData, ...] = ()
    nodes: tuple[NodeData, ...] = ()
    found_at: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])


def page_boxes(
    view: PlanView, phase: str | None, violations: Sequence[Violation], timelines: Iterable[Timeline],
    devices: Mapping[str, int],
) -> PageBoxes:  # fmt: skip
    """The boxes of a plan; nodes with different findings are never folded together."""
    named = [_nodes_of(view, violation) for violation in violations]
    marks: dict[int, list[tuple[str, str]]] = {}
    for violation, nodes in zip(violations, named, strict=True):
        for node in nodes:
            marks.setdefault(node.position, []).append((violation.rule, violation.message_id))
    drawn = drawing_of(view, phase, {position: tuple(marked) for position, marked in marks.items()})
    boxes = list(drawn.box(_ALL)[0].walk())
    seats = {position: box.number for box in reversed(boxes) for position in box.members}
    page = PageBoxes(drawn.title, drawn.note)
    page.found_at = [_boxes_of(nodes, drawn, seats) for nodes in named]
    faulty = _faulty_links(view, drawn, violations, seats)
    costs, on = _costs(view, drawn, timelines), _devices(drawn, devices)
    places: dict[int, int] = {}
    by_position = {node.position: node for node in drawn.tree.order}
    data: list[BoxData] = []
    for box in boxes:
        members = [places.setdefault(position, len(places)) for position in box.members]
        at_it = tuple([number for number, found_at in enumerate(page.found_at) if box.number in found_at])
        first = by_position.get(box.members[0]) if box.members else None
        used = sorted(set[int]().union(*[on[position] for position in box.members]))
        shown, cost = _box(box, first, members, faulty), Cost()
        for position in box.members:
            _add(cost, costs[position])
        data.append(shown.model_copy(update={"findings": at_it, "devices": tuple(used), **cost}))
    page.boxes = tuple(_with_findings_inside(boxes, data))
    page.nodes = tuple([_node(by_position[position], devices) for position in places])
    return page


def _nodes_of(view: PlanView, violation: Violation) -> list[NodeView]:
    """The nodes that a finding names, the ends of its edges among them."""
    names = [*violation.nodes, *(name for edge in violation.edges for name in edge)]
    return [node for name in dict.fromkeys(names) if (node := view.by_id.get(name)) is not None]


def _boxes_of(nodes: Iterable[NodeView], drawn: Drawing, seats: Mapping[int, int]) -> tuple[int, ...]:
    """The boxes of nodes; of a node that is not drawn, since a like node is, the nearest around it."""
    numbers: dict[int, None] = {}
    for node in nodes:
        at: NodeView | None = node
        while at is not None and at.position not in seats:
            at = drawn.tree.parents.get(at.position)
        numbers.setdefault(seats[at.position] if at is not None else 0)
    return tuple(numbers)


def _faulty_links(
    view: PlanView, drawn: Drawing, violations: Iterable[Violation], seats: Mapping[int, int]
) -> set[tuple[int, int]]:  # fmt: skip
    """The boxes (source, target) that links with an edge named by a finding join."""
    named = {edge for violation in violations for edge in violation.edges}
    joins = [join for inside in drawn.tree.joins.values() for join in inside] if named else []
    return {
        (seats[join.source.position], seats[join.target.position])
        for join in joins
        if (join.edge.source_id, join.edge.target_id) in named
        and join.source.position in seats
        and join.target.position in seats
    }


def _costs(view: PlanView, drawn: Drawing, timelines: Iterable[Timeline]) -> dict[int, Cost]:
    """The cost of each node with all inside of it, by its position."""
    costs = {node.position: Cost() for node in drawn.tree.order}
    for timeline in timelines:
        for place, node in enumerate(timeline.dag.nodes):
            seen = view.by_id.get(node.plan_node or "")
            if seen is None or seen.position not in costs:
                continue
            start_ms, end_ms = timeline.spans_ms[place]
            times = (node.repeat or 1) * (1 if node.is_collective else len(devices_of(node)))
            sent = node.comm_bytes * (node.repeat or 1) * len(devices_of(node))
            critical_ms = end_ms - start_ms if place in timeline.critical else 0.0
            work = {"flops": node.flops * times, "bytes": node.bytes * times, "sent_bytes": sent}
            _add(costs[seen.position], {"critical_ms": critical_ms, **work})
    for node in drawn.tree.order:
        parent = drawn.tree.parents.get(node.position)
        if parent is not None and parent.position in costs:
            _add(costs[parent.position], costs[node.position])
    return costs


def _add(cost: Cost, more: Cost) -> None:
    for name, amount in more.items():
        cost[name] = cost.get(name, 0.0) + amount


def _devices(drawn: Drawing, devices: Mapping[str, int]) -> dict[int, set[int]]:
    """The devices of each node and of all inside of it, by its position."""
    by_position: dict[int, set[int]] = {}
    for node in drawn.tree.order:
        inside = [by_position[child.position] for child in drawn.tree.children[node.position]]
        by_position[node.position] = {devices[name] for name in node.devices if name in devices}.union(*inside)
    return by_position


def _box(box: Box, first: NodeView | None, members: Sequence[int], faulty: set[tuple[int, int]]) -> BoxData:
    # Stages follow one another down the page; prefill and decode, which are joined too, stand side by side.
    goes_down = box.kind in ("phase", "stage")
    return BoxData(
        kind=box.kind,
        type="" if first is None else clipped(first.type, 40),
        title=box.title,
        lines=box.lines,
        times=box.times,
        members=tuple(members),
        parts=_mapped(in_parts(box), lambda place: box.children[place].number) if box.children else (),
        goes_down=goes_down,
        links=tuple([
            LinkData(
                source=source.number, target=target.number, kind=link.kind, label=link_label(link),
                is_faulty=(source.number, target.number) in faulty,
            )
            for source, target, link in box.joins
        ]),
    )  # fmt: skip


def _mapped(
    parts: list[list[list[int]]], number: Callable[[int], int]
) -> tuple[tuple[tuple[int, ...], ...], ...]:  # fmt: skip
    return tuple([tuple([tuple([number(place) for place in column]) for column in part]) for part in parts])


def _with_findings_inside(boxes: Sequence[Box], data: list[BoxData]) -> list[BoxData]:
    """`data` with the number of findings inside of each box; those of several boxes inside count once."""
    inside: dict[int, set[int]] = {}
    for box in reversed(boxes):
        findings = set[int]()
        for child in box.children:
            findings |= inside[child.number] | set(data[child.number].findings)
        inside[box.number] = findings
    return [shown.model_copy(update={"findings_inside": len(inside[number])}) for number, shown in enumerate(data)]


def _node(node: NodeView, devices: Mapping[str, int]) -> NodeData:
    return NodeData(
        id=clipped(node.id, _LONGEST_NAME), devices=tuple([devices[name] for name in node.devices if name in devices])
    )
