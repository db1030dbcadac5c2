"""PP004: the stages of a phase cover every layer exactly once and in order, and so do the blocks of each stage.

Reports gaps, overlaps, a wrong order, and layers that the model does not have. Without a readable model the last layer
is not known and only what is between the stages is checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..stage_chain import StageChain, stage_chain


def _stage_faults(chain: StageChain, total: int | None) -> Iterator[Finding]:
    parallel = chain.parallel_positions()
    expected: int | None = 0
    previous: StageView | None = None
    for stage in chain.stages:
        if stage.layers is None:
            expected, previous = None, stage
            continue
        start, end = stage.layers
        if end < start:
            # An empty stage (PP005); written backwards it leaves open where the next one begins.
            expected = expected if not stage.blocks else None
            continue
        if previous is not None and stage.node.position in parallel and stage.layers == previous.layers:
            continue
        if expected is not None and start != expected:
            yield Finding(
                "wrong-first-layer",
                f"stage {label(stage.node)} begins at layer {start} where layer {expected} is next",
                where=stage.node,
                nodes=(stage.node,) if previous is None else (stage.node, previous.node),
                value=[start, end],
                expected=[expected, end],
                lacks=("PipelineStageNode",),
            )
        expected, previous = end + 1, stage
    if total is not None and expected is not None and expected != total and previous is not None:
        yield Finding(
            "wrong-last-layer",
            f"the stages of {label(chain.phase.node)} end at layer {expected - 1}, the model at layer {total - 1}",
            where=previous.node,
            nodes=(previous.node,),
            value=expected - 1,
            expected=total - 1,
            lacks=("PipelineStageNode",),
        )


def _block_fault(stage: StageView) -> Finding | None:
    """The first place where the blocks of `stage` do not tile its layers."""
    if stage.layers is None or not stage.blocks or stage.layers[1] < stage.layers[0]:
        return None
    expected = stage.layers[0]
    for block in stage.blocks:
        if block.layers is None:
            return None
        start, end = block.layers
        if start != expected or end < start or end > stage.layers[1]:
            return Finding(
                "wrong-block",
                f"block {label(block)} holds layers {start} to {end} where layer {expected} of stage "
                f"{label(stage.node)} ({stage.layers[0]} to {stage.layers[1]}) is next",
                where=block,
                nodes=(stage.node,),
                value=[start, end],
                expected=[expected, stage.layers[1]],
                lacks=("LayerBlockNode",),
            )
        expected = end + 1
    if expected == stage.layers[1] + 1:
        return None
    return Finding(
        "missing-block",
        f"no block of stage {label(stage.node)} holds layers {expected} to {stage.layers[1]}",
        where=stage.node,
        nodes=(stage.blocks[-1],),
        value=expected - 1,
        expected=stage.layers[1],
        lacks=("LayerBlockNode",),
    )


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding | None]:
    """Yield every gap, overlap and excess of layers, stage by stage and then block by block."""
    total = view.num_layers
    named: set[str] = set()
    for finding in _stage_faults(stage_chain(phase), total):
        named.update(finding.node_ids)
        yield finding
    for stage in phase.stages:
        if stage.node.id not in named:
            yield _block_fault(stage)


RULE = Rule(
    id="PP004",
    name="uncovered layers",
    requirement="Stages own contiguous blocks of layers that cover every layer exactly once, in order.",
    rationale="A layer that no stage holds is not computed; one that two stages hold is computed twice.",
    source="002 §3.2, 003 §2.3",
    remedy="let each stage, and each block in it, begin where the one before it ends",
    visits="phase",
    decide=decide,
    bad=Example("dense-pp2-tp2", (Edit("set", "r0.prefill.s1", "layers", [5, 7]),)),
)
