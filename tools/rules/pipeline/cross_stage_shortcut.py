"""PP003: no edge skips a stage, and no edge joins nodes inside two stages of a phase.

What leaves a stage leaves it by the pipeline edge to the next one. Edges between phases are PH002's, between replicas
DP002's, and edges of stages that run side by side PP002's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import enclosing, label
from ..stage_chain import stage_chain
from ..tree import placed


def _skipping(view: PlanView) -> Iterator[Finding]:
    for phase in view.phases:
        chain = stage_chain(phase)
        parallel = chain.parallel_positions()
        for edge in chain.edges:
            source, target = edge.source, edge.target
            if source is None or target is None or chain.span(edge) <= 1:
                continue
            if source.position in parallel or target.position in parallel:
                continue
            skipped = chain.stages[chain.place[source.position] + 1].node
            yield Finding(
                "skips-stage",
                f"the edge {label(source)} → {label(target)} skips stage {label(skipped)}",
                where=edge,
                nodes=(source, target),
                value=[source.id, target.id],
                expected=[source.id, skipped.id],
                remedy="drop the edge: activations pass through every stage in order",
            )


def _inside(view: PlanView) -> Iterator[Finding]:
    stages = enclosing(view, "PipelineStageNode")
    for edge in view.edges:
        source, target = edge.source, edge.target
        # Siblings are in one stage, or are stages themselves.
        if source is None or target is None or source.parent is target.parent:
            continue
        from_stage, to_stage = stages.of(source), stages.of(target)
        if from_stage is None or to_stage is None or from_stage is to_stage:
            continue
        if from_stage.parent is not to_stage.parent or not placed(view).holds(edge):
            continue
        yield Finding(
            "joins-insides",
            f"the edge {label(source)} → {label(target)} joins nodes inside two stages, "
            f"{label(from_stage)} and {label(to_stage)}",
            where=edge,
            nodes=(source, target),
            value=[source.id, target.id],
            expected=[from_stage.id, to_stage.id],
            remedy="drop the edge: only a pipeline edge between the stages themselves crosses from one to the next",
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every edge that goes past a stage or past the border of one."""
    yield from _skipping(view)
    yield from _inside(view)


RULE = Rule(
    id="PP003",
    name="cross-stage shortcut",
    requirement="No edge of any type skips a stage or joins nodes inside two stages.",
    rationale="A shortcut is a transfer that the pipeline's schedule and its cost do not know of.",
    source="000 §3.3",
    fix="local",
    remedy="drop the edge",
    visits="parts",
    check=check,
    bad=Example(
        "dense-pp2-tp2",
        (Edit("add_edge", value={"source": "r0.prefill.s0.b0", "target": "r0.prefill.s1.b0", "type": "data"}),),
    ),
)
