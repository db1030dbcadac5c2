"""PP003: no edge skips a stage, and no edge joins nodes inside two stages of a phase.

What leaves a stage leaves it by the pipeline edge to the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import Link, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..stage_chain import stage_chain
from ..tree import is_between_placed


def decide(view: PlanView, link: Link) -> Iterator[Finding]:
    """Yield an edge that goes past a stage or past the border of one."""
    edge, source, target = link
    before, after = source.within("PipelineStageNode"), target.within("PipelineStageNode")
    if before is None or after is None or before is after:
        return
    if source is before and target is after:
        yield from _skipping(view, link)
    # Siblings are in one stage, or are stages themselves.
    elif source.parent is not target.parent and before.parent is after.parent and is_between_placed(view, edge):
        yield Finding(
            "joins-insides",
            f"the edge {label(source)} → {label(target)} joins nodes inside two stages, {label(before)} and "
            f"{label(after)}",
            where=edge,
            nodes=(source, target),
            value=[source.id, target.id],
            expected=[before.id, after.id],
            remedy="drop the edge: only a pipeline edge between the stages themselves crosses from one to the next",
        )


def _skipping(view: PlanView, link: Link) -> Iterator[Finding]:
    """Yield an edge between two stages of a phase, neither beside another one, that are not next to one another."""
    edge, source, target = link
    chains = view.once(_skipping, lambda: {phase.node.position: stage_chain(phase) for phase in view.phases})
    chain = None if source.parent is None else chains.get(source.parent.position)
    if chain is None or source.parent is not target.parent or chain.span(link) <= 1:
        return
    if chain.parallel_positions().isdisjoint((source.position, target.position)):
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


RULE = Rule(
    id="PP003",
    name="cross-stage shortcut",
    requirement="No edge of any type skips a stage or joins nodes inside two stages.",
    rationale="A shortcut is a transfer that the pipeline's schedule and its cost do not know of.",
    source="000 §3.3",
    remedy="drop the edge",
    visits="link",
    decide=decide,
    bad=Example(
        "dense-pp2-tp2",
        (Edit("add_edge", value={"source": "r0.prefill.s0.b0", "target": "r0.prefill.s1.b0", "type": "data"}),),
    ),
)
