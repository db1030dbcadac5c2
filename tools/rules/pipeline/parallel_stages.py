"""PP002: no two stages of a phase run side by side.

Reports stages that both take their input from earlier stages with no edge from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..stage_chain import Gap, StageChain, stage_chain


def _runs(chain: StageChain) -> Iterator[list[Gap]]:
    """Runs of consecutive parallel gaps."""
    run: list[Gap] = []
    for gap in chain.gaps():
        if not gap.parallel:
            continue
        if run and run[-1].after is not gap.before:
            yield run
            run = []
        run.append(gap)
    if run:
        yield run


def decide(_: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield every run of stages that no edge orders."""
    chain = stage_chain(phase)
    for run in _runs(chain):
        branches = [run[0].before.node, *(gap.after.node for gap in run)]
        positions = {node.position for node in branches}
        edges = [link[0] for link in chain.links if link[2].position in positions and chain.span(link) > 0]
        yield Finding(
            "side-by-side",
            f"stages {' and '.join(label(node) for node in branches[:4])} of {label(phase.node)} run side by side",
            where=branches[1],
            nodes=branches,
            edges=edges,
            value=[[edge.source_id, edge.target_id] for edge in edges],
            expected=[[gap.before.node.id, gap.after.node.id] for gap in run],
        )


def _pipeline(source: str, target: str) -> dict[str, str]:
    return {"source": f"r0.prefill.{source}", "target": f"r0.prefill.{target}", "type": "pipeline"}


RULE = Rule(
    id="PP002",
    name="parallel stages",
    requirement="The stages of a phase form no parallel branches.",
    rationale=(
        "Layers run one after another, so stages cannot run side by side on the same tokens; what does is a replica "
        "(DP) or a split of an operator (TP, EP)."
    ),
    source="002 §5",
    remedy="chain the stages: each gets its input from the one before it alone",
    visits="phase",
    decide=decide,
    bad=Example(
        "dense-pp4",
        (
            Edit("remove_edge", value=_pipeline("s1", "s2")),
            Edit("add_edge", value={**_pipeline("s0", "s2"), "carries": "activations"}),
        ),
    ),
)
