"""PE008: a claimed MoE time counts the router and the slowest expert group, with the imbalance that is stated.

It looks at the router's and the experts' steps of a claimed critical path and at a claimed imbalance.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield claimed times without the router, experts' times off the slowest group's, and claimed balance."""
    for fault in faults_of(view, "PE008"):
        yield finding_of(fault, "a MoE layer takes its router and its slowest expert group")


RULE = Rule(
    id="PE008",
    name="experts taken as balanced",
    severity="error",
    requirement="MoE time counts the router and the slowest active expert group, with the load imbalance stated.",
    rationale=(
        "t = router + max over groups: of n groups with a mean load of m token copies each the largest has by chance "
        "m + sqrt(2 m ln n), which for the small batches of decode is more than twice the mean, and a measured half "
        "more than m on 32 ranks, since tokens prefer some experts."
    ),
    source="004 §4.4",
    fix="local",
    remedy="count router and routing, and the load of the slowest expert group, as `estimate` does",
    check=check,
    good=Example("moe-ep4", (Edit("evaluate"),)),
    bad=Example(
        "moe-ep4",
        (Edit("evaluate"), Edit("set_top", field="/performance/explanation/decode/expert_imbalance", value=1.0)),
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
