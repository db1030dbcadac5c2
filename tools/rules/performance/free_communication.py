"""PE004: what runs on several devices communicates, and a claimed latency counts the time of it.

It looks at communication that is claimed to take no time, as a part of a phase or as a step of its critical path.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield claimed communication times of nothing where the graph has collectives."""
    for fault in faults_of(view, "PE004"):
        yield finding_of(fault, "the collectives and transfers of the graph take time")


RULE = Rule(
    id="PE004",
    name="communication free of charge",
    severity="error",
    requirement="Communication is accounted: there is no multi-device operator with zero communication time.",
    rationale=(
        "A collective costs a latency and bytes over bandwidth, t = alpha + bytes × (n - 1) / (n × bandwidth) or more. "
        "In decode the latency alone is paid twice a layer; without it a plan looks faster the more devices it takes."
    ),
    source="004 §8",
    fix="local",
    remedy="count the collectives of every operator on more than one device, as `estimate` does",
    check=check,
    good=Example("dense-tp4", (Edit("evaluate"),)),
    bad=Example(
        "dense-tp4",
        (Edit("evaluate"), Edit("set_top", field="/performance/latency/decode_step/communication_ms", value=0.0)),
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
