"""EN006: TensorRT-LLM's attention DP has one device a group.

It needs a plan that names TensorRT-LLM and looks at attention alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Example, Rule, served_by
from ..legality import Case, DegreeLimit, Fault


def _ranks(case: Case) -> Iterator[Fault]:
    engine, tp = case.conditions.engine, case.degrees.tp
    most = None if engine is None else engine.most_group_ranks
    if engine is not None and most is not None and case.degrees.attention_dp > 1 and tp > most:
        message = f"attention groups of tp {tp}; attention DP of {engine.title} has one device a group"
        yield Fault("several-ranks", message, tp, most)


RULE = Rule(
    id="EN006",
    name="split attention group",
    requirement="In a plan that names TensorRT-LLM, attention_dp groups have tp 1.",
    rationale=(
        "TensorRT-LLM switches attention DP on or off: the degree is the whole tensor group and each rank computes the "
        "attention of its own requests alone. A group of several ranks has no setting."
    ),
    source="TensorRT-LLM mapping.py (enable_attention_dp)",
    fix="re-plan",
    remedy="set attention_dp to all devices of the stage and tp to 1, or leave attention_dp out",
    limits=(DegreeLimit(("tp", "attention_dp"), _ranks),),
    good=Example(edits=(served_by("vllm"),)),
    bad=Example("relaxed-attention-dp2-ep4", (served_by("tensorrt-llm"),)),
)
