"""DE002: the decode phase states that token t+1 follows token t through the KV cache.

Reports a decode branch with no recurrence or another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.document import RECURRENCE
from ...plan.schema import shown
from ...plan.view import PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from .decode_branches import is_decode_branch


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield a decode branch that does not state the recurrence."""
    if not is_decode_branch(view, phase):
        return
    value = phase.node.raw.get("recurrence")
    if value != RECURRENCE:
        stated = "states no recurrence" if value is None else f"states recurrence {shown(value)}"
        yield Finding(
            "not-stated" if value is None else "other-recurrence",
            f"{label(phase.node)} {stated}; it is {RECURRENCE!r}",
            where=phase.node,
            value=value,
            expected=RECURRENCE,
        )


RULE = Rule(
    id="DE002",
    name="unstated recurrence",
    requirement="Strict temporal order: the decode phase states the recurrence t → t+1.",
    rationale="The graph is one step; only the recurrence says that the next step waits for the cache of this one.",
    source="000 §6",
    remedy=f'set recurrence to "{RECURRENCE}"',
    visits="phase",
    decide=decide,
    bad=Example("dense-1", (Edit("set", "r0.decode", "recurrence", "none"),)),
)
