"""PE003: an evaluation gives throughput for a single request, for a batch, and over all replicas.

It asks whether the three are there; whether they match is PE006's and PE007's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView, as_mapping
from ..base import Edit, Example, Finding, Rule
from .claims import claim_of, given
from .completeness import lacking_throughput
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the throughputs that an evaluation leaves out."""
    lacking = lacking_throughput(view)
    if lacking:
        claimed = claim_of(view).get("throughput")
        yield Finding(
            f"the evaluation leaves out {', '.join(lacking)}",
            where="/performance/throughput" if as_mapping(claimed) else "/performance",
            value=sorted(given(claimed)),
            expected=list(lacking),
        )


RULE = Rule(
    id="PE003",
    name="throughput left out",
    severity="error",
    requirement="Throughput is given in tokens/s for a single request, batched, and DP-scaled.",
    rationale=(
        "The three answer different questions: what one user sees (output tokens / latency), what one replica sustains "
        "(requests × output tokens / their time), and what the deployment does (replicas × that). None follows from "
        "another one by a fixed factor."
    ),
    source="004 §2.2",
    fix="local",
    remedy="give the throughput of a single request, of a batch and over all replicas, as `estimate` prints it",
    check=check,
    good=Example("dense-dp2-tp2", (Edit("evaluate"),)),
    bad=Example(
        "dense-dp2-tp2",
        (Edit("evaluate"), Edit("set_top", field="/performance/throughput/batched_tokens_per_s", value=None)),
    ),
    mend=recomputed,
)
