"""The execution DAG as an SVG picture, and the look of its nodes and edges.

Each GPU has a vertical lane; GPUs that run the same nodes share one. A node on several lanes lies across them, below
everything already there, so that nothing overlaps. A line stays in a lane that both its ends share, beside the nodes
between them. Units are pixels; deterministic and self-contained.
"""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from xml.etree import ElementTree as ET

from msgspec import Struct, field

from ..draw.box import BoxKind
from ..draw.placing import Spot, text_width
from ..draw.style import STYLE, clipped, xml_text
from ..errors import InputError
from ..plan.devices import devices_text
from ..plan.elements import parse_device
from .execution_model import ExecutionDAG, ExecutionEdge, ExecutionNode, devices_of
from .operation import OpName, Role

# Computation; communication; routing, splitting and merging.
Outline = Literal["box", "ellipse", "parallelogram"]
# `chosen`: a router picks the path; `data`: carries tensors; `order`: only says what comes first.
Line = Literal["data", "chosen", "order"]
_BRANCHING: frozenset[OpName] = frozenset({"Routing", "Split", "Aggregate"})
_KINDS: Mapping[OpName | Role, BoxKind] = {
    "Attention": "attention", "KVCacheUpdate": "cache", "Expert": "moe", "Routing": "moe", "Split": "moe",
    "Aggregate": "moe", "router": "moe", "gate_up": "ffn", "down": "ffn", "lm_head": "end", "Embedding": "end",
    "Norm": "end",
}  # fmt: skip
_LONGEST_LINE = 24
_KEEP = "\N{NO-BREAK SPACE}"  # a size stays on the line of its name


class Look(Struct, frozen=True):
    """How a node is drawn; the first of `lines` is its title, the last ones name the GPUs that it runs on."""

    outline: Outline
    kind: BoxKind
    lines: tuple[str, ...]


def look_of(node: ExecutionNode) -> Look:
    """The look of `node`: operator, layers, input and output shapes on each GPU, GPUs."""
    times = f" × {node.repeat}" if node.repeat and node.repeat > 1 else ""
    rows = [f"layer {node.layer}{times}"] if node.layer is not None else []
    rows += [_shape_text("in", node.input_shape), _shape_text("out", node.output_shape), devices_text(devices_of(node))]
    lines = [part for line in rows for part in textwrap.wrap(line, _LONGEST_LINE)]
    title = f"{node.op} {node.role}" if node.role else node.op
    if node.is_collective:
        return Look("ellipse", "communication", (title, *lines))
    kind = _KINDS.get(node.role or node.op, "attention")
    return Look("parallelogram" if node.op in _BRANCHING else "box", kind, (title, *lines))


def lines_of(dag: ExecutionDAG) -> list[tuple[ExecutionEdge, Line]]:
    """Each edge of `dag` with its line; `chosen` from a router or to experts."""
    ops: dict[str, OpName] = {node.id: node.op for node in dag.nodes}
    return [
        (edge, "order" if edge.type == "order" else "chosen" if _is_chosen(ops, edge) else "data") for edge in dag.edges
    ]


def _is_chosen(ops: Mapping[str, OpName], edge: ExecutionEdge) -> bool:
    return ops[edge.source] == "Routing" or ops[edge.target] == "Expert"


def _shape_text(way: str, shape: tuple[tuple[str, int], ...]) -> str:
    return f"{way} {' × '.join(f'{name}{_KEEP}{size}' for name, size in shape)}"


MOST_NODES = 3000
_MARGIN, _HEADING, _LANE_HEAD = 12, 30, 30
_TITLE_HEIGHT, _LINE_HEIGHT, _TITLE_PX, _LINE_PX, _PAD = 16, 13, 7.3, 5.9, 8
# The gutter left of a lane's nodes is for lines that pass them.
_GUTTER, _LANE_GAP, _ROW_GAP = 26, 10, 24
_SLANT = 14
# An ellipse is taller than its text by this factor, which leaves this part of its width for the text.
_TALLER = 1.45
_WIDE_PART = math.sqrt(1 - 1 / _TALLER**2)
_LINE_STYLE = (
    "path.chosen{stroke:#7a4fc9;stroke-dasharray:6 3}path.order{stroke:#8c959f;stroke-dasharray:1 3}"
    "rect.lane{fill-opacity:.5}text.g{font-weight:600;text-anchor:middle}"
)


class _Placed(Struct, frozen=True):
    """A node at the spot where it is drawn, across from the first to the last of `lanes`."""

    node: ExecutionNode
    look: Look
    lanes: tuple[int, ...]
    spot: Spot

    def border_y(self, x: float, *, is_top: bool) -> float:
        """The y at which a vertical line at `x` meets the top (or bottom) of its outline."""
        half = self.spot.height / 2
        if self.look.outline == "ellipse":
            half *= math.sqrt(max(0.0, 1 - ((x - self.spot.middle_x) / (self.spot.width / 2)) ** 2))
        return self.spot.middle_y + (-half if is_top else half)


class _Lanes(Struct):
    """The lanes of a phase; `ends`: where the next node of each may begin, `above`: the last node of each."""

    devices: Sequence[tuple[str, ...]]
    width: float
    ends: list[float]
    above: dict[int, str] = field(default_factory=dict[int, str])
    past: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def left(self, lane: int) -> float:
        """The left side of the nodes of `lane`."""
        return _MARGIN + _GUTTER + lane * (self.width + _GUTTER + _PAD + _LANE_GAP)

    def middle(self, lane: int) -> float:
        """The horizontal middle of the nodes of `lane`."""
        return self.left(lane) + self.width / 2

    @property
    def right(self) -> float:
        """The right side of the last lane."""
        return self.left(len(self.devices) - 1) + self.width + _PAD


def execution_svg(dags: Sequence[ExecutionDAG], title: str) -> str:
    """The picture of `dags`, one below the other; dashed where a router chooses, dotted where an edge only orders.

    Raises InputError: there are more than `MOST_NODES` nodes.
    """
    count = sum(len(dag.nodes) for dag in dags)
    if count > MOST_NODES:
        raise InputError(f"{count:,} nodes are more than the {MOST_NODES:,} that are drawn: use --fold, or --phase")
    picture = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "class": "shardwright"})
    heading = clipped(title, 120)
    ET.SubElement(picture, "title").text = heading
    ET.SubElement(picture, "style").text = STYLE + _LINE_STYLE
    ET.SubElement(picture, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    _text(picture, heading, _MARGIN, 22, "h")
    right, bottom = _MARGIN + text_width(heading, 8.4), float(_HEADING)
    for dag in dags:
        lanes = _draw_phase(picture, dag, bottom)
        right, bottom = max(right, lanes.right), max(lanes.ends) + _MARGIN
    size = {"width": str(math.ceil(right + _MARGIN)), "height": str(math.ceil(bottom))}
    picture.attrib |= {"viewBox": f"0 0 {size['width']} {size['height']}", **size}
    return ET.tostring(picture, encoding="unicode")


def _draw_phase(picture: ET.Element, dag: ExecutionDAG, top: float) -> _Lanes:
    looks = {node.id: look_of(node) for node in dag.nodes}
    devices = _alike(dag.nodes)
    lane_of = {device: number for number, names in enumerate(devices) for device in names}
    across = {node.id: tuple(sorted({lane_of[name] for name in devices_of(node)})) for node in dag.nodes}
    # A node across several lanes may use their whole width.
    width = max(_least_width(looks[name]) / (on[-1] - on[0] + 1) for name, on in across.items())
    lanes = _Lanes(devices, width, [top + _LANE_HEAD + _HEADING] * len(devices))
    edges: defaultdict[str, list[tuple[str, Line]]] = defaultdict(list)
    for edge, line in lines_of(dag):
        edges[edge.target].append((edge.source, line))
    paths, boxes = ET.Element("g"), ET.Element("g")
    placed_nodes: dict[str, _Placed] = {}
    for node in dag.nodes:
        before = [(placed_nodes[source], line) for source, line in edges[node.id]]
        placed = _place(node, looks[node.id], across[node.id], [source for source, _ in before], lanes)
        for earlier, line in before:
            ET.SubElement(paths, "path", {"class": line, "d": _path(earlier, placed, lanes)})
        lanes.above.update(dict.fromkeys(range(placed.lanes[0], placed.lanes[-1] + 1), node.id))
        placed_nodes[node.id] = placed
        _draw_node(boxes, placed)
    _text(picture, f"{dag.phase}: {len(dag.nodes):,} nodes, {len(dag.edges):,} edges", _MARGIN, top + 18, "h")
    for number, names in enumerate(devices):
        sides = lanes.left(number) - _GUTTER, lanes.left(number) + width + _PAD
        area = Spot(sides[0], top + _LANE_HEAD, sides[1] - sides[0], max(lanes.ends) - top - _LANE_HEAD)
        ET.SubElement(picture, "rect", {"class": "phase lane", **_rectangle(area), "rx": "6"})
        label = clipped(devices_text(names), max(8, int(area.width / _TITLE_PX)))
        _text(picture, label, area.middle_x, area.y + 18, "g")
    picture.extend((paths, boxes))
    return lanes


def _alike(nodes: Iterable[ExecutionNode]) -> list[tuple[str, ...]]:
    """The GPUs of each lane: those that run the same nodes share one."""
    runs: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for node in nodes:
        for device in devices_of(node):
            runs[device].add(devices_of(node))
    lanes: defaultdict[frozenset[tuple[str, ...]], list[str]] = defaultdict(list)
    for device in sorted(runs, key=lambda name: (parse_device(name) or (0, 0), name)):
        lanes[frozenset(runs[device])].append(device)
    return [tuple(names) for names in lanes.values()]


def _least_width(look: Look) -> float:
    title, *lines = look.lines
    text = max(text_width(title, _TITLE_PX), *(text_width(line, _LINE_PX) for line in lines)) + 2 * _PAD
    return text / _WIDE_PART if look.outline == "ellipse" else text + 2 * _SLANT * (look.outline == "parallelogram")


def _text_height(look: Look) -> float:
    return _TITLE_HEIGHT + _LINE_HEIGHT * (len(look.lines) - 1)


def _place(node: ExecutionNode, look: Look, on: tuple[int, ...], before: Sequence[_Placed], lanes: _Lanes) -> _Placed:
    """Place a node below everything on its lanes so far and below what it waits for."""
    span = slice(on[0], on[-1] + 1)
    y = max([*lanes.ends[span], *(source.spot.bottom + _ROW_GAP for source in before)])
    height = _text_height(look) * (_TALLER if look.outline == "ellipse" else 1) + _PAD
    left = lanes.left(on[0])
    spot = Spot(left, y, lanes.left(on[-1]) + lanes.width - left, height)
    lanes.ends[span] = [spot.bottom + _ROW_GAP] * len(lanes.ends[span])
    return _Placed(node, look, on, spot)


def _path(source: _Placed, target: _Placed, lanes: _Lanes) -> str:
    """The line between two nodes with its arrow head: straight down, or beside the nodes between."""
    lane = next((shared for shared in target.lanes if shared in source.lanes), target.lanes[0])
    x = lanes.middle(lane)
    from_x = x if lane in source.lanes else lanes.middle(source.lanes[0])
    start, end = source.border_y(from_x, is_top=False), target.border_y(x, is_top=True)
    head = f"M {x - 3:.0f} {end - 4:.0f} L {x:.0f} {end:.0f} L {x + 3:.0f} {end - 4:.0f}"
    if lanes.above.get(lane) == source.node.id:
        return f"M {from_x:.0f} {start:.0f} L {x:.0f} {end:.0f} {head}"
    side = lanes.left(lane) - 5 - 5 * (lanes.past[lane] % 4)
    lanes.past[lane] += 1
    out, back = source.spot.bottom + 6, target.spot.y - 9
    return f"M {from_x:.0f} {start:.0f} V {out:.0f} H {side:.0f} V {back:.0f} H {x:.0f} V {end:.0f} {head}"


def _draw_node(boxes: ET.Element, placed: _Placed) -> None:
    spot, kind = placed.spot, placed.look.kind
    group = ET.SubElement(boxes, "g", {"class": "node"})
    ET.SubElement(group, "title").text = xml_text(placed.node.id)
    if placed.look.outline == "ellipse":
        centre = {"cx": f"{spot.middle_x:.0f}", "cy": f"{spot.middle_y:.0f}"}
        ET.SubElement(group, "ellipse", {
            "class": kind, **centre, "rx": f"{spot.width / 2:.1f}", "ry": f"{spot.height / 2:.1f}",
        })  # fmt: skip
    elif placed.look.outline == "parallelogram":
        corners = (
            (spot.x + _SLANT, spot.y), (spot.right, spot.y), (spot.right - _SLANT, spot.bottom), (spot.x, spot.bottom),
        )  # fmt: skip
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in corners)
        ET.SubElement(group, "polygon", {"class": kind, "points": points})
    else:
        ET.SubElement(group, "rect", {"class": kind, **_rectangle(spot), "rx": "4"})
    y = spot.middle_y - _text_height(placed.look) / 2 + 12
    for number, line in enumerate(placed.look.lines):
        down = _TITLE_HEIGHT + _LINE_HEIGHT * (number - 1) if number else 0
        _text(group, line, spot.middle_x, y + down, "l" if number else "b")


def _rectangle(spot: Spot) -> dict[str, str]:
    sides = {"x": spot.x, "y": spot.y, "width": spot.width, "height": spot.height}
    return {name: f"{value:.0f}" for name, value in sides.items()}


def _text(around: ET.Element, text: str, x: float, y: float, name: str) -> None:
    element = ET.SubElement(around, "text", {"class": name, "x": f"{x:.0f}", "y": f"{y:.0f}"})
    element.text = xml_text(text)
