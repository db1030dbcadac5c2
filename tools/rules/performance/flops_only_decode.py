"""PE005: a claimed decode step carries its memory term: the weights and the cache that it reads.

A time per token that is the computed one less the reading of memory is a FLOPs-only estimate too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .claims import claim_of, given
from .completeness import lacks_memory_term
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield a claimed decode step without a memory term."""
    if lacks_memory_term(view):
        step = given(given(claim_of(view)["latency"])["decode_step"])
        yield Finding(
            "the claimed decode step has no memory term: reading the weights and the KV cache is left out",
            where="/performance/latency/decode_step",
            value=sorted(step),
            expected=["memory_ms"],
        )
    for fault in faults_of(view, "PE005"):
        yield finding_of(fault, "each decode step reads the weights and the KV cache")


RULE = Rule(
    id="PE005",
    name="decode of FLOPs alone",
    severity="error",
    requirement="FLOPs-only estimates are rejected: decode carries its memory term.",
    rationale=(
        "A decode step does 2 FLOPs with each weight that it reads: at small batches it takes (weights + cache) / "
        "memory bandwidth, some hundred times as long as FLOPs / peak."
    ),
    source="004 §8",
    fix="local",
    remedy="give memory_ms of the decode step: the bytes of weights and cache over memory bandwidth",
    check=check,
    good=Example("dense-tp2", (Edit("evaluate"),)),
    bad=Example(
        "dense-tp2", (Edit("evaluate"), Edit("set_top", field="/performance/latency/decode_step/memory_ms", value=0.0))
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
