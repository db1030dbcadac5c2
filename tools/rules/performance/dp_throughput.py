"""PE007: the DP-scaled throughput is that of one replica times the replicas that serve, and of the slower kind.

A latency that DP is to have lowered is DP004's; a batch that is off by itself is PE006's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of, replicas_serving
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield a claimed DP-scaled throughput that is not what the replicas do together."""
    for fault in faults_of(view, "PE007"):
        counts = {phase: replicas_serving(view, phase) for phase in ("prefill", "decode")}
        replicas = " and ".join(f"{count} that serve {phase}" for phase, count in counts.items())
        yield finding_of(fault, f"replicas do as much together as each of them does: there are {replicas}")


RULE = Rule(
    id="PE007",
    name="throughput out of step with the replicas",
    severity="error",
    requirement=(
        "DP scales throughput only: over all replicas it is the number of those that serve a phase × the rate of one "
        "(disaggregated: the lower of the two phases)."
    ),
    rationale=(
        "Throughput = DP × that of one replica, since replicas share nothing; where prefill and decode have replicas "
        "of their own, a request needs both, and the slower kind sets the rate."
    ),
    source="004 §4.1",
    fix="local",
    remedy="multiply the batched throughput of one replica by the replicas that serve it",
    check=check,
    good=Example("dense-dp2-tp2", (Edit("evaluate"),)),
    bad=Example(
        "dense-dp2-tp2",
        (Edit("evaluate"), Edit("scale", field="/performance/throughput/dp_scaled_tokens_per_s", value=2.0)),
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
