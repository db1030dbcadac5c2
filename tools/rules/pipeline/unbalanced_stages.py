"""PP008 (warning): the slowest stage of a phase is within 20% of the mean, by the performance model's stage times.

It has no finding if the graph is faulty.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...performance.layout import layout_from_view
from ...plan.view import PlanView
from ..base import Example, Finding, Rule, set_top


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each phase with a stage that is much slower than the mean."""
    if not view.is_sound or all(len(phase.stages) < 2 for phase in view.phases):
        return
    # The performance model is needed only if a plan has several stages.
    from ...performance.balance import MOST_IMBALANCE, unbalanced_phases

    for phase, seconds in unbalanced_phases(layout_from_view(view)).items():
        mean = sum(seconds) / len(seconds)
        slowest = max(range(len(seconds)), key=lambda stage, of=seconds: of[stage])
        branches = [branch for branch in view.phases if branch.phase == phase and len(branch.stages) > slowest]
        nodes = [branch.stages[slowest].node for branch in branches]
        yield Finding(
            "slow-stage",
            f"{phase}: stage {slowest} takes {seconds[slowest] * 1e3:.4g} ms, {seconds[slowest] / mean - 1:.0%} more "
            f"than the mean of {len(seconds)} stages, {mean * 1e3:.4g} ms",
            where=nodes[0] if nodes else "",
            nodes=nodes,
            value=[round(value * 1e3, 6) for value in seconds],
            expected=f"at most {MOST_IMBALANCE * mean * 1e3:.4g} ms",
        )


RULE = Rule(
    id="PP008",
    name="unbalanced stages",
    severity="warning",
    requirement="Stages are balanced: the slowest stage is within 20% of the mean.",
    rationale=(
        "Batches follow one another through the stages at the pace of the slowest one: throughput is 1 / max(stage), "
        "and the others stand still for 1 - mean / max of the time."
    ),
    source="004 §5",
    fix="re-plan",
    remedy="move layers from the slowest stage to its neighbours (stage_layers), or choose another pp",
    check=check,
    # A vocabulary so large that the LM head of the last stage outweighs its layers.
    bad=Example("dense-pp4", (set_top("/model/config/vocab_size", 262_144),)),
    rests_on_estimate=True,
)
