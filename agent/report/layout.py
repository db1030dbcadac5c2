"""How a plan is laid out: the degrees of each phase, and which GPUs hold which layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from ...tools.plan.devices import devices_text
from .text import NONE, Block, Bullets, Column, Section, Table, count_text, section

if TYPE_CHECKING:
    from ...tools.plan.document import Phase, PhaseStrategy, Plan

STAGES_SHOWN = 8


class StageLayout(Struct):
    """One pipeline stage as the document states it; `devices` keeps their order."""

    index: int
    layers: tuple[int, int]
    devices: dict[str, None] = field(default_factory=dict[str, None])


class PhaseLayout(Struct):
    """One phase branch of one replica."""

    replica: int
    phase: Phase
    stages: list[StageLayout] = field(default_factory=list[StageLayout])


def phase_layouts(plan: Plan) -> list[PhaseLayout]:
    """Every phase branch with its stages, replicas in order."""
    from ...tools.plan.document import PhaseNode, PipelineStageNode, ReplicaNode

    nodes = {node.id: node for node in plan.nodes}
    replicas = {node.id: node.index for node in plan.nodes if isinstance(node, ReplicaNode)}
    phases = {
        node.id: PhaseLayout(replicas.get(node.parent or "", 0), node.phase)
        for node in plan.nodes
        if isinstance(node, PhaseNode)
    }
    stages: dict[str, StageLayout] = {}
    for node in plan.nodes:
        if isinstance(node, PipelineStageNode) and node.parent in phases:
            stages[node.id] = StageLayout(node.index, node.layers)
            phases[node.parent].stages.append(stages[node.id])
    for node in plan.nodes:
        devices = getattr(node, "devices", ())
        if not devices:
            continue
        above: str | None = node.parent
        while above is not None and above not in stages:
            above = nodes[above].parent if above in nodes else None
        if above is not None:
            stages[above].devices.update(dict.fromkeys(devices))
    for phase in phases.values():
        phase.stages.sort(key=lambda stage: stage.index)
    return sorted(phases.values(), key=lambda layout: (layout.replica, layout.phase != "prefill"))


def layout_section(plan: Plan) -> Section:
    """A row of degrees for each phase, then the stages of the first replica that serves it."""
    layouts = phase_layouts(plan)
    columns = (
        Column("phase"),
        *Column.of_figures("replicas", "stages", "GPUs/stage"),
        Column("attention", wraps=True),
        Column("FFN"),
        Column("experts", wraps=True),
        Column("layers/stage", figures=True),
    )
    rows: list[tuple[str, ...]] = []
    first: dict[str, PhaseLayout] = {}
    for layout in layouts:
        first.setdefault(layout.phase, layout)
    for phase, layout in first.items():
        served = sum(1 for other in layouts if other.phase == phase)
        rows.append(_phase_row(plan, layout, served))
    return section("Layout", Table(columns, tuple(rows)), *_places(layouts, list(first.values())))


def _phase_row(plan: Plan, layout: PhaseLayout, replicas: int) -> tuple[str, ...]:
    strategy = plan.strategy.of(layout.phase)
    kinds = {node.type for node in plan.nodes}
    widths = dict.fromkeys(str(len(stage.devices)) for stage in layout.stages)
    heights = dict.fromkeys(str(stage.layers[1] - stage.layers[0] + 1) for stage in layout.stages)
    return (
        layout.phase,
        str(replicas),
        str(len(layout.stages)),
        "/".join(widths) or NONE,
        attention_text(strategy),
        f"TP {strategy.tp_ffn}" if "FFNNode" in kinds else NONE,
        experts_text(strategy) if "MoENode" in kinds else NONE,
        "/".join(heights) or NONE,
    )


def attention_text(strategy: PhaseStrategy) -> str:
    """The degrees of attention: `SP 2 × TP 4`; a degree of 1 is not shown unless all are."""
    parts = [
        ("DP", strategy.attention_dp),
        ("SP (Ulysses)" if strategy.sp_kind == "ulysses" else "SP", strategy.sp),
        ("KV-SP", strategy.kv_sp),
        ("TP", strategy.tp),
    ]
    shown = [f"{name} {degree}" for name, degree in parts if degree is not None and degree > 1]
    return " × ".join(shown) or "one GPU"


def experts_text(strategy: PhaseStrategy) -> str:
    """The degrees of the experts: `EP 8`, `EP 4 × TP 2`."""
    inner = strategy.tp_expert or 1
    return f"EP {strategy.ep}" + (f" × TP {inner}" if inner > 1 else "")


def _places(layouts: list[PhaseLayout], first: list[PhaseLayout]) -> list[Block]:
    """Where the stages of one replica are; phases that share their stages are shown once."""
    alike: dict[tuple[tuple[object, ...], ...], list[PhaseLayout]] = {}
    for layout in first:
        key = tuple((stage.layers, tuple(stage.devices)) for stage in layout.stages)
        alike.setdefault(key, []).append(layout)
    blocks: list[Block] = []
    for members in alike.values():
        stages = members[0].stages
        lines = [
            f"stage {stage.index}: layers {stage.layers[0]}–{stage.layers[1]} on {devices_text(stage.devices)}"
            for stage in stages[:STAGES_SHOWN]
        ]
        if len(stages) > len(lines):
            lines.append(f"and {count_text(len(stages) - len(lines), 'more stage')}")
        names = " and ".join(member.phase for member in members)
        blocks += [f"{names} of replica {members[0].replica}:", Bullets(tuple(lines))]
    others = {layout.replica for layout in layouts} - {layout.replica for layout in first}
    if others:
        blocks.append(f"{count_text(len(others), 'further replica')} likewise, on other GPUs")
    return blocks
