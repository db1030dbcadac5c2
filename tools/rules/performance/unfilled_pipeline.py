"""PE009: with pipeline stages prefill counts the fill and decode its bubbles; one request gains nothing from them.

It names bubbles that are claimed away, and latencies that were divided by the stages.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield bubbles that are off, and figures that stages are to have made better."""
    for fault in faults_of(view, "PE009"):
        yield finding_of(fault, "the stages follow one another, and wait for one another")


RULE = Rule(
    id="PE009",
    name="pipeline without its bubbles",
    severity="error",
    requirement=(
        "With PP prefill counts the fill and decode its bubbles; a single request gains nothing in decode from PP."
    ),
    rationale=(
        "A pass takes the sum of its stages: prefill = stages + fill, and a token needs the one before it, so that "
        "with m microbatches a step takes max(sum of the stages, m × the slowest). PP saves memory, not time."
    ),
    source="004 §4.3",
    fix="local",
    remedy="count the time in which a stage waits for the others, as `estimate` does",
    check=check,
    good=Example("dense-pp4", (Edit("evaluate"),)),
    bad=Example(
        "dense-pp4", (Edit("evaluate"), Edit("set_top", field="/performance/latency/prefill/bubble_ms", value=0.0))
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
