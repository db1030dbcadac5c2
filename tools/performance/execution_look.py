"""How nodes and edges of an execution DAG look, whatever draws them: outline, colour, label, line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..draw.box import BoxKind
from ..plan.device_names import devices_text
from .execution_model import ExecutionDAG, ExecutionEdge, ExecutionNode
from .operation import OpName, Role

# Computation, communication; what routes, splits or puts together.
Outline = Literal["box", "ellipse", "parallelogram"]
# A router chooses along `chosen`, `data` carries tensors, `order` says only what comes first.
Line = Literal["data", "chosen", "order"]
_BRANCHING: frozenset[OpName] = frozenset({"Routing", "Split", "Aggregate"})
_KINDS: Mapping[OpName | Role, BoxKind] = {
    "Attention": "attention", "KVCacheUpdate": "cache", "Expert": "moe", "Routing": "moe", "Split": "moe",
    "Aggregate": "moe", "router": "moe", "gate_up": "ffn", "down": "ffn", "lm_head": "end", "Embedding": "end",
    "Norm": "end",
}  # fmt: skip
_LONGEST_LINE = 24
_KEEP = "\N{NO-BREAK SPACE}"  # a size stays on the line of its name


@dataclass(frozen=True, slots=True)
class Look:
    """A node as it is drawn; the first of `lines` is its title, the last name the GPUs that it runs on."""

    outline: Outline
    kind: BoxKind
    lines: tuple[str, ...]


def look_of(node: ExecutionNode) -> Look:
    """The look of `node`: what it is, its layers, the shapes on each GPU that go in and out, its GPUs."""
    times = f" × {node.repeat}" if node.repeat and node.repeat > 1 else ""
    said = [f"layer {node.layer}{times}"] if node.layer is not None else []
    said += [_shape_text("in", node.input_shape), _shape_text("out", node.output_shape), devices_text(devices_of(node))]
    lines = [part for line in said for part in textwrap.wrap(line, _LONGEST_LINE)]
    title = f"{node.op} {node.role}" if node.role else node.op
    if node.is_collective:
        return Look("ellipse", "communication", (title, *lines))
    kind = _KINDS.get(node.role or node.op, "attention")
    return Look("parallelogram" if node.op in _BRANCHING else "box", kind, (title, *lines))


def devices_of(node: ExecutionNode) -> tuple[str, ...]:
    """The GPUs that `node` runs on."""
    return node.devices or ((node.device,) if node.device is not None else ())


def lines_of(dag: ExecutionDAG) -> list[tuple[ExecutionEdge, Line]]:
    """Each edge of `dag` with its line. From a router to experts, which ones get a token is the router's choice."""
    ops: dict[str, OpName] = {node.id: node.op for node in dag.nodes}
    return [
        (edge, "order" if edge.type == "order" else "chosen" if _is_chosen(ops, edge) else "data") for edge in dag.edges
    ]


def _is_chosen(ops: Mapping[str, OpName], edge: ExecutionEdge) -> bool:
    return ops[edge.source] == "Routing" or ops[edge.target] == "Expert"


def _shape_text(way: str, shape: tuple[tuple[str, int], ...]) -> str:
    return f"{way} {' × '.join(f'{name}{_KEEP}{size}' for name, size in shape)}"
