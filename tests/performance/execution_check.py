"""Checks of an execution DAG, and its longest path.

Every DAG that the expander writes is acyclic; every node but an input has a predecessor, every node but an output a
successor, and the output of a node fits the input of each node that reads it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

from shardwright.tools.performance.execution_model import ExecutionDAG, ExecutionNode

Shape = tuple[tuple[str, int], ...]


def shape_faults(dag: ExecutionDAG) -> Iterator[str]:
    """Each node whose inputs do not fit: they must equal its input shape, or add up to it in one dimension."""
    nodes = {node.id: node for node in dag.nodes}
    inputs: defaultdict[str, list[ExecutionNode]] = defaultdict(list)
    for edge in dag.edges:
        if edge.type == "data":
            inputs[edge.target].append(nodes[edge.source])
    for target, sources in inputs.items():
        # A collective has one source on each of its devices: like sources count once.
        shapes = {(_part(source), source.output_shape) for source in sources}
        if not _fits([shape for _, shape in sorted(shapes)], nodes[target].input_shape):
            outputs = sorted({shape for _, shape in shapes})
            yield f"{target} takes {nodes[target].input_shape}, its predecessors give {outputs}"


def _part(node: ExecutionNode) -> str:
    """The operation of a node without its device."""
    return node.id.partition("@")[0].partition("#")[0]


def _fits(shapes: list[Shape], wanted: Shape) -> bool:
    if all(shape == wanted for shape in shapes):
        return True
    if any([name for name, _ in shape] != [name for name, _ in wanted] for shape in shapes):
        return False
    return any(_adds_up(shapes, wanted, axis) for axis in range(len(wanted)))


def _adds_up(shapes: list[Shape], wanted: Shape, axis: int) -> bool:
    """Whether `shapes` are parts of `wanted` along `axis` and whole along all others."""
    others = wanted[:axis] + wanted[axis + 1 :]
    if any(shape[:axis] + shape[axis + 1 :] != others for shape in shapes):
        return False
    # Widths are rounded up on each device: the sum may exceed what is taken by less than one for each source.
    slack = len(shapes) if axis == len(wanted) - 1 else 1
    return 0 <= sum(shape[axis][1] for shape in shapes) - wanted[axis][1] < slack


def dag_faults(dag: ExecutionDAG) -> Iterator[str]:
    """What is wrong with `dag`, one line for each fault; empty if it is sound."""
    names = [node.id for node in dag.nodes]
    if len(set(names)) != len(names):
        yield "two nodes have the same id"
    targets = {edge.target for edge in dag.edges}
    sources = {edge.source for edge in dag.edges}
    for node in dag.nodes:
        if node.id not in targets and node.op != "Embedding":
            yield f"{node.id} has no predecessor and is no input"
        if node.id not in sources and not _is_output(node):
            yield f"{node.id} has no successor and is no output"
    yield from shape_faults(dag)
    if len(_ordered(dag)) != len(names):
        yield "the graph has a cycle"


def _is_output(node: ExecutionNode) -> bool:
    """Logits, from the head's matmul or gathered."""
    return node.output_shape[-1][0] == "vocab"


def _ordered(dag: ExecutionDAG) -> list[str]:
    waiting = {node.id: 0 for node in dag.nodes}
    following: defaultdict[str, list[str]] = defaultdict(list)
    for edge in dag.edges:
        waiting[edge.target] += 1
        following[edge.source].append(edge.target)
    ready = deque(name for name, count in waiting.items() if count == 0)
    order: list[str] = []
    while ready:
        name = ready.popleft()
        order.append(name)
        for target in following[name]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return order


def critical_path_ms(dag: ExecutionDAG) -> tuple[float, tuple[str, ...]]:
    """Milliseconds of the longest path (repetitions counted) and its nodes."""
    cost: Mapping[str, float] = {node.id: node.ms * (node.repeat or 1) for node in dag.nodes}
    before: dict[str, str] = {}
    finish: dict[str, float] = {}
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for edge in dag.edges:
        sources[edge.target].append(edge.source)
    for name in _ordered(dag):
        latest = max(sources[name], key=lambda source: finish[source], default=None)
        if latest is not None:
            before[name] = latest
        finish[name] = cost[name] + (finish[latest] if latest is not None else 0.0)
    if not finish:
        return 0.0, ()
    name = max(finish, key=lambda key: finish[key])
    total, chain = finish[name], [name]
    while name in before:
        name = before[name]
        chain.append(name)
    return total, tuple(reversed(chain))
