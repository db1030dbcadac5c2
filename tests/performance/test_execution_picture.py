"""The pictures of an execution DAG: nothing overlaps, each node shows its shapes and GPUs, lines show their kind."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal
from xml.etree import ElementTree as ET

import pytest

from shardwright.tools.errors import InputError
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.performance.execution_dot import dot_lines
from shardwright.tools.performance.execution_model import ExecutionDAG
from shardwright.tools.performance.execution_svg import MOST_NODES, execution_svg, lines_of, look_of

from ..export.plans import plan_named

_SVG = "{http://www.w3.org/2000/svg}"
_TAGS = {"box": f"{_SVG}rect", "ellipse": f"{_SVG}ellipse", "parallelogram": f"{_SVG}polygon"}
# Width of a page, the smallest letters that are readable on it, and letters of the picture, in pixels.
_PAGE, _LEAST_LETTERS, _LETTERS, _BOLD_LETTERS = 1200, 8.0, 10.5, 12.0
Phase = Literal["prefill", "decode"]
# Small and large, of one GPU, of two in step, of replicas, stages, experts, and groups of GPUs that cross.
DRAWN: tuple[tuple[str, Phase, bool], ...] = (
    ("replicas on a node", "prefill", True), ("uneven stages", "prefill", True), ("phases and groups", "decode", True),
    ("part of a node", "decode", True), ("stages across attention groups", "prefill", True),
    ("card without bf16", "prefill", False), ("one card", "decode", False), ("experts cut", "prefill", False),
)  # fmt: skip


@cache
def expanded(name: str, phase: Phase, fold: bool) -> ExecutionDAG:
    return expand_plan(plan_named(name), phase, fold=fold)


Rectangle = tuple[float, float, float, float]


def rectangle(shape: ET.Element) -> Rectangle:
    """Left, top, right and bottom of a shape, in pixels."""
    attributes = shape.attrib
    if shape.tag == _TAGS["box"]:
        x, y = float(attributes["x"]), float(attributes["y"])
        return x, y, x + float(attributes["width"]), y + float(attributes["height"])
    if shape.tag == _TAGS["ellipse"]:
        x, y, half, tall = (float(attributes[key]) for key in ("cx", "cy", "rx", "ry"))
        return x - half, y - tall, x + half, y + tall
    points = [tuple(map(float, point.split(","))) for point in attributes["points"].split()]
    return min(x for x, _ in points), min(y for _, y in points), max(x for x, _ in points), max(y for _, y in points)


def overlapping(spots: Sequence[Rectangle]) -> list[tuple[Rectangle, Rectangle]]:
    """Pairs that share more than a border."""
    pairs: list[tuple[Rectangle, Rectangle]] = []
    ordered = sorted(spots, key=lambda spot: spot[1])
    for place, spot in enumerate(ordered):
        for lower in ordered[place + 1 :]:
            if lower[1] >= spot[3]:
                break
            if spot[0] < lower[2] and lower[0] < spot[2]:
                pairs.append((spot, lower))
    return pairs


def drawn(picture: ET.Element) -> list[ET.Element]:
    return [group for group in picture.iter(f"{_SVG}g") if group.get("class") == "node"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "phase", "fold"), DRAWN)
def test_nothing_overlaps_and_every_label_is_inside_of_its_node(name: str, phase: Phase, fold: bool) -> None:
    dag = expanded(name, phase, fold)
    picture = ET.fromstring(execution_svg([dag], name))
    groups = drawn(picture)
    spots = [rectangle(group[1]) for group in groups]
    assert len(spots) == len(dag.nodes) and overlapping(spots) == []
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for node, group, spot in zip(dag.nodes, groups, spots, strict=True):
        look = look_of(node)
        assert group[0].text == node.id and group[1].tag == _TAGS[look.outline]
        texts = group.findall(f"{_SVG}text")
        assert tuple(text.text for text in texts) == look.lines
        assert spot[0] >= 0 and spot[2] <= width and spot[1] >= 0 and spot[3] <= height
        for number, text in enumerate(texts):
            # Letters are on average little more than half as wide as high.
            half = len(text.text or "") * (_LETTERS if number else _BOLD_LETTERS) * 0.56 / 2
            assert spot[0] < float(text.attrib["x"]) - half and float(text.attrib["x"]) + half < spot[2]
            assert spot[1] < float(text.attrib["y"]) - 8 and float(text.attrib["y"]) < spot[3]
        assert all(after - before >= 12 for before, after in pairwise(float(text.attrib["y"]) for text in texts))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "phase", "fold"), [case for case in DRAWN if case[0] != "stages across attention groups"]
)
def test_labels_are_read_where_the_page_is_as_wide_as_the_picture(name: str, phase: Phase, fold: bool) -> None:
    width = float(ET.fromstring(execution_svg([expanded(name, phase, fold)], name)).attrib["width"])
    assert _LETTERS * min(1.0, _PAGE / width) >= _LEAST_LETTERS


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "phase", "fold"), DRAWN)
def test_every_edge_is_a_line_of_its_kind_that_goes_down(name: str, phase: Phase, fold: bool) -> None:
    dag = expanded(name, phase, fold)
    paths = list(ET.fromstring(execution_svg([dag], name)).iter(f"{_SVG}path"))
    assert Counter(path.attrib["class"] for path in paths) == Counter(line for _, line in lines_of(dag))
    for path in paths:
        start, end = (
            re.match(r"M \S+ (\S+) ", path.attrib["d"]),
            re.search(r" L \S+ (\S+) L \S+ \S+$", path.attrib["d"]),
        )
        assert start is not None and end is not None and float(start[1]) < float(end[1])


def test_where_a_router_chooses_and_only_there_lines_are_dashed() -> None:
    dag = expanded("phases and groups", "decode", True)
    ops = {node.id: node.op for node in dag.nodes}
    chosen = {(ops[edge.source], ops[edge.target]) for edge, line in lines_of(dag) if line == "chosen"}
    assert chosen == {("Routing", "AllToAll"), ("AllToAll", "Expert")}


def test_a_label_has_both_shapes_and_the_gpu() -> None:
    linear = next(node for node in expanded("one card", "decode", False).nodes if node.role == "qkv")
    text = " ".join(look_of(linear).lines).replace("\N{NO-BREAK SPACE}", " ")
    for way, shape in (("in", linear.input_shape), ("out", linear.output_shape)):
        assert f"{way} {' × '.join(f'{name} {size}' for name, size in shape)}" in text
    assert text.endswith(linear.device or "no device")


def test_boundaries_of_the_dot_are_gpus_and_hold_what_each_computes() -> None:
    dag = expanded("card without bf16", "prefill", False)
    inside: dict[str, list[str]] = {}
    label = ""
    for line in dot_lines([dag]):
        if match := re.fullmatch(r' {6}label="(.*)";', line):
            label = match[1]
        elif match := re.match(r' {6}"(.*)" \[', line):
            inside.setdefault(label, []).append(match[1])
    wanted = {gpu: [node.id for node in dag.nodes if node.device == gpu] for gpu in ("n0.g0", "n0.g1")}
    assert inside == wanted


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_dot_of_names_that_hold_anything() -> None:
    dag = expanded("phases and groups", "decode", True)
    hostile = 'a"b\\c\n}<script>$'
    first = dag.nodes[0].model_copy(update={"id": hostile, "device": hostile, "devices": None})
    lines = dot_lines([dag.model_copy(update={"nodes": (first,), "edges": ()})])
    run = subprocess.run(["dot", "-Tplain"], input="\n".join(lines), capture_output=True, text=True, check=True)
    assert run.stderr == "" and len(re.findall(r"^node ", run.stdout, re.M)) == 1


def test_a_name_cannot_leave_the_text_of_the_picture() -> None:
    picture = ET.fromstring(execution_svg([expanded("one card", "decode", True)], "</title><script>\x00"))
    assert picture.find(f".//{_SVG}script") is None and picture[0].text == "</title><script>\ufffd"


def test_both_phases_are_one_picture_and_too_many_nodes_are_refused() -> None:
    dag = expanded("one card", "decode", True)
    picture = ET.fromstring(execution_svg([dag, dag], "two"))
    assert overlapping([rectangle(group[1]) for group in drawn(picture)]) == []
    many = dag.model_copy(update={"nodes": dag.nodes * (MOST_NODES // len(dag.nodes) + 1)})
    with pytest.raises(InputError, match="--fold"):
        execution_svg([many], "many")
