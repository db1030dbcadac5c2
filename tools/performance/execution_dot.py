"""The execution DAG in Graphviz's DOT: a cluster for each phase, with one for the computations of each GPU inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..draw.style import xml_text
from ..plan.devices import devices_text
from .execution_model import ExecutionDAG, ExecutionNode, devices_of
from .execution_svg import Line, lines_of, look_of

_STYLES: Mapping[Line, str] = {"data": "", "chosen": ' [style="dashed"]', "order": ' [style="dotted"]'}

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})


def dot_lines(dags: Iterable[ExecutionDAG]) -> Iterator[str]:
    """The phases as one DOT digraph; dashed where a router chooses, dotted where an edge only orders."""
    yield "digraph execution {"
    yield '  rankdir="TB"; node [shape="box", fontname="sans-serif"];'
    for dag in dags:
        yield f"  subgraph {_quoted('cluster_' + dag.phase)} {{"
        yield f"    label={_quoted(dag.phase)};"
        yield from _nodes(dag)
        for edge, line in lines_of(dag):
            yield f"    {_quoted(edge.source)} -> {_quoted(edge.target)}{_STYLES[line]};"
        yield "  }"
    yield "}"


def _nodes(dag: ExecutionDAG) -> Iterator[str]:
    """Computing nodes inside the cluster of their GPU (folded: of all their GPUs), collectives outside."""
    inside: dict[tuple[str, ...], list[ExecutionNode]] = {}
    for node in dag.nodes:
        if node.is_collective:
            yield f"    {_node_line(node)}"
        else:
            inside.setdefault(devices_of(node), []).append(node)
    for number, (devices, nodes) in enumerate(inside.items()):
        yield f"    subgraph {_quoted(f'cluster_{dag.phase}_{number}')} {{"
        yield f"      label={_quoted(devices_text(devices))};"
        for node in nodes:
            yield f"      {_node_line(node)}"
        yield "    }"


def _node_line(node: ExecutionNode) -> str:
    look = look_of(node)
    return f'{_quoted(node.id)} [label={_quoted(*look.lines)}, shape="{look.outline}"];'


def _quoted(*lines: str) -> str:
    # DOT writes a line break as a backslash and an n.
    return '"' + "\\n".join(" ".join(xml_text(line).split()).translate(_ESCAPES) for line in lines) + '"'
