"""The execution DAG for people: a summary by operator as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...tools.performance.execution_model import devices_of
from ...tools.plan.devices import devices_text
from .text import NONE, Block, Column, Section, Table, bytes_text, count_text, figure, render, section

if TYPE_CHECKING:
    from ...tools.performance.execution_model import ExecutionDAG, ExecutionNode

_FLOP_UNITS = ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP")


def render_execution(dags: Iterable[ExecutionDAG], *, title: str, width: int, bold: bool = False) -> str:
    """How many operators of each kind a phase runs, and what they compute, read and send over all devices."""
    hint = (
        "--format json gives every node with its shapes, --svg a picture, --dot a graph for Graphviz; "
        "--fold writes like layers once."
    )
    sections = [section("", title), *(_phase_section(dag) for dag in dags), section("", hint)]
    return render(sections, width=width, bold=bold)


def _phase_section(dag: ExecutionDAG) -> Section:
    groups: dict[str, list[ExecutionNode]] = {}
    for node in dag.nodes:
        groups.setdefault(f"{node.op} {node.role}" if node.role else node.op, []).append(node)
    columns = (
        Column("operator"),
        *Column.of_figures("runs", "computes", "reads and writes", "sends"),
    )
    rows = tuple(_operator_row(name, nodes) for name, nodes in groups.items())
    devices = {device for node in dag.nodes for device in devices_of(node)}
    layers = {node.layer for node in dag.nodes if node.layer is not None}
    folded = f", {count_text(len(layers), 'run')} of like layers folded" if dag.folded else ""
    size = (
        f"{count_text(len(dag.nodes), 'node')}, {count_text(len(dag.edges), 'edge')} "
        f"on {count_text(len(devices), 'GPU')} ({devices_text(sorted(devices))}){folded}"
    )
    blocks: list[Block] = [size, Table(columns, rows)]
    return section(f"One {'prefill pass' if dag.phase == 'prefill' else 'decode step'}", *blocks)


def _operator_row(name: str, nodes: Sequence[ExecutionNode]) -> tuple[str, ...]:
    # FLOPs and bytes of a node are those of one device and one layer; a collective runs once for all its devices.
    runs = sum((node.repeat or 1) * (1 if node.is_collective else len(devices_of(node))) for node in nodes)
    weights = [(node.repeat or 1) * len(devices_of(node)) for node in nodes]
    flops = sum(weight * node.flops for weight, node in zip(weights, nodes, strict=True))
    moved_bytes = sum(weight * node.bytes for weight, node in zip(weights, nodes, strict=True))
    sent_bytes = sum(weight * node.comm_bytes for weight, node in zip(weights, nodes, strict=True))
    return (
        name,
        f"{runs:,}",
        flops_text(flops) if flops else NONE,
        bytes_text(moved_bytes) if moved_bytes else NONE,
        bytes_text(sent_bytes) if sent_bytes else NONE,
    )


def flops_text(flops: float) -> str:
    """Floating-point operations with a decimal unit: `1.20 TFLOP`."""
    value = flops
    for unit in _FLOP_UNITS[:-1]:
        if value < 999.5:
            return f"{figure(value)} {unit}"
        value /= 1000
    return f"{figure(value)} {_FLOP_UNITS[-1]}"
