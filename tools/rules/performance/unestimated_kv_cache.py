"""PE002: an evaluation gives the KV cache in bytes, per token and per device, as the model and the shards have it.

The other terms of memory are PE006's. A plan without an evaluation, or one of latency alone, claims no cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView, as_mapping
from ..base import Edit, Example, Finding, Rule
from .attribution import faults_of, finding_of
from .claims import claim_of, given
from .completeness import lacking_cache
from .recompute import recomputed


def check(view: PlanView) -> Iterator[Finding]:
    """Yield what a claim lacks of the KV cache, and claimed sizes of it that are off."""
    lacking = lacking_cache(view)
    if lacking:
        claimed = claim_of(view).get("memory")
        yield Finding(
            f"the evaluation does not give the KV cache in full: it lacks {', '.join(lacking)}",
            where="/performance/memory" if as_mapping(claimed) else "/performance",
            value=sorted(given(claimed)),
            expected=list(lacking),
        )
    for fault in faults_of(view, "PE002"):
        yield finding_of(fault, "that is not the KV cache of this model and these shards, in bytes")


RULE = Rule(
    id="PE002",
    name="KV cache not estimated",
    severity="error",
    requirement="The KV cache is estimated in bytes, per token and per device.",
    rationale=(
        "Bytes per token = layers × 2 × KV heads × head size × bytes of an element (MLA: its latent); a device holds "
        "its layers and heads of it, heads repeated where there are more tensor ranks than heads. The cache decides "
        "how many requests run at once, and what each decode step reads."
    ),
    source="004 §2.3, §8",
    fix="local",
    remedy="give kv_cache_bytes_per_token and the kv_cache_bytes of each device, as `estimate` prints them",
    check=check,
    good=Example("dense-tp2", (Edit("evaluate"),)),
    bad=Example(
        "dense-tp2",
        (Edit("evaluate"), Edit("set_top", field="/performance/memory/kv_cache_bytes_per_token", value=None)),
    ),
    rests_on_estimate=True,
    mend=recomputed,
)
