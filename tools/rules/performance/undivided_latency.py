"""PE001: latency is claimed as prefill and decode, each with compute, memory and communication, which add up.

A plan without an evaluation claims nothing, and a TTFT or TPOT by itself is no latency as a whole. What a total is
that does not match the graph is PE006's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView, as_mapping
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .claims import claim_of, given
from .completeness import lacking_latency
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield what a claimed latency lacks, and parts that do not add up to a total that is right."""
    lacking = lacking_latency(view)
    if lacking:
        claimed = claim_of(view).get("latency")
        yield Finding(
            f"the claimed latency is not taken apart: it lacks {', '.join(lacking)}",
            where="/performance/latency" if as_mapping(claimed) else "/performance",
            value=sorted(given(claimed)),
            expected=list(lacking),
        )
    for fault in faults_of(view, "PE001"):
        yield finding_of(fault, "the parts do not add up to the phase", "compute the parts again: they are the phase")


RULE = Rule(
    id="PE001",
    name="latency not taken apart",
    severity="error",
    requirement=(
        "Latency is given as prefill + decode, each with compute, memory and communication parts that add up to it."
    ),
    rationale=(
        "latency = prefill + (output tokens - 1) × decode step. The two phases have other limits: prefill is bound by "
        "arithmetic, decode by memory and communication; one figure for both hides which of them a strategy helps."
    ),
    source="004 §2.1, §8",
    fix="local",
    remedy="give prefill_ms and decode_ms, and the parts of prefill and decode_step, as `estimate` prints them",
    check=check,
    good=Example("dense-tp2", (Edit("evaluate"),)),
    bad=Example(
        "dense-tp2", (Edit("evaluate"), Edit("set_top", field="/performance/latency", value={"end_to_end_ms": 100.0}))
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
