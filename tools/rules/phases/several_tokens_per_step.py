"""DE001: a decode step is one token (`tokens_per_step` = 1).

Speculative decoding, which takes more, has no plan in this format (R7). An absent figure does not count as 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import PhaseView, PlanView, as_int
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from .decode_branches import is_decode_branch


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield a decode branch that does not state one token a step."""
    if not is_decode_branch(view, phase):
        return
    value = phase.node.raw.get("tokens_per_step")
    if as_int(value) != 1:
        stated = "does not state tokens_per_step" if value is None else f"states tokens_per_step {shown(value)}"
        yield Finding(
            "not-stated" if value is None else "not-one",
            f"{label(phase.node)} {stated}; a decode step is 1 token",
            where=phase.node,
            value=value,
            expected=1,
        )


RULE = Rule(
    id="DE001",
    name="several tokens per step",
    requirement="Decode is one token a step: tokens_per_step = 1.",
    rationale="Each token depends on the one before it, so a step that makes several is not what the graph describes.",
    source="000 §6",
    remedy="set tokens_per_step to 1",
    visits="phase",
    decide=decide,
    bad=Example("dense-1", (Edit("set", "r0.decode", "tokens_per_step", 2),)),
)
