"""DE005: no two tokens of one request are decoded at once: a replica has one decode branch.

Tokens are not unrolled in this format, so a second decode PhaseNode of a replica can only be a second token.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every decode branch beyond the first of its replica."""
    prefilling = {replica for replica, phases in view.served.items() if "prefill" in phases}
    decodes = {replica: phases["decode"] for replica, phases in view.served.items() if "decode" in phases}
    for replica, phases in decodes.items():
        # If no replica prefills for this one, a branch is misnamed or missing (PH001).
        if replica not in prefilling and not prefilling - decodes.keys():
            continue
        for phase in phases[1:]:
            yield Finding(
                "second-decode",
                f"{label(phase.node)} is a second decode phase of its replica: tokens would be decoded side by side",
                where=phase.node,
                nodes=(phases[0].node,),
                value=len(phases),
                expected=1,
            )


_COPY = "again"


def _copy() -> tuple[Edit, ...]:
    """A complete second decode branch beside the first."""
    stage, block, device = f"{_COPY}.s0", f"{_COPY}.s0.b0", ["n0.g0"]
    attention, ffn = f"{block}.attn", f"{block}.ffn"
    nodes = (
        {"id": _COPY, "type": "PhaseNode", "parent": "r0", "phase": "decode", "tokens_per_step": 1,
         "recurrence": "kv_cache:t->t+1"},
        {"id": stage, "type": "PipelineStageNode", "parent": _COPY, "index": 0, "layers": [0, 7]},
        {"id": f"{stage}.emb", "type": "EmbeddingNode", "parent": stage, "devices": device},
        {"id": block, "type": "LayerBlockNode", "parent": stage, "layers": [0, 7]},
        {"id": attention, "type": "AttentionNode", "parent": block},
        {"id": f"{attention}.shard", "type": "ShardNode", "parent": attention, "devices": device},
        {"id": f"{attention}.kv", "type": "KVCacheUpdateNode", "parent": attention, "devices": device},
        {"id": ffn, "type": "FFNNode", "parent": block},
        {"id": f"{ffn}.shard", "type": "ShardNode", "parent": ffn, "devices": device},
        {"id": f"{stage}.head", "type": "LMHeadNode", "parent": stage, "devices": device},
    )  # fmt: skip
    edges = (
        (f"{stage}.emb", block),
        (block, f"{stage}.head"),
        (attention, ffn),
        (f"{attention}.shard", f"{attention}.kv"),
        ("r0.prefill.s0.b0.attn.kv", attention),
    )
    return (
        *(Edit("add_node", value=node) for node in nodes),
        *(Edit("add_edge", value={"source": source, "target": target, "type": "data"}) for source, target in edges),
    )


RULE = Rule(
    id="DE005",
    name="token parallelism",
    requirement="No cross-token parallelism: no two nodes of different tokens without an order between them.",
    rationale="A token is computed from all tokens before it; of two side by side, one would lack the other.",
    source="000 §6",
    remedy="keep one decode branch; its recurrence stands for all tokens",
    check=check,
    bad=Example("dense-1", _copy()),
)
