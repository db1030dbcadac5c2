"""SP004 (warning): sequence parallelism is for long prompts.

Below the stated length a prompt's attention is too small a part of prefill to pay for the exchange of K and V. It
looks at the prompt's length alone and estimates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, as_int
from ..base import Edit, Example, Finding, Rule
from ..sharding import sequence_degree

LONG_PROMPT_TOKENS = 8192
_MAX_NAMED = 64


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the prefill attention operators with SP where prompts are short."""
    tokens = as_int(view.workload.get("input_tokens"))
    if tokens is None or tokens >= LONG_PROMPT_TOKENS:
        return
    split: list[NodeView] = [
        node
        for phase in view.phases
        if phase.phase == "prefill"
        for stage in phase.stages
        for node in stage.operators()
        if node.type == "AttentionNode" and sequence_degree(node) > 1
    ]
    if split:
        yield Finding(
            f"prefill uses SP {sequence_degree(split[0])} for prompts of {tokens} tokens; it is for "
            f"{LONG_PROMPT_TOKENS} and more",
            where=split[0],
            nodes=split[:_MAX_NAMED],
            value=tokens,
            expected=LONG_PROMPT_TOKENS,
        )


_BASE = "dense-sp2-tp2"

RULE = Rule(
    id="SP004",
    name="SP for short prompts",
    severity="warning",
    requirement="SP only for long context: below 8,192 input tokens it is not worth its communication.",
    rationale=(
        "The work that SP splits and TP does not grows with the square of the prompt, the exchange of K and V with its "
        "length; below some thousand tokens the same devices do more as TP."
    ),
    source="004 §4.5",
    fix="re-plan",
    remedy="use the devices as tp",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set_top", field="/workload/input_tokens", value=2048),)),
)
