"""DE002: the decode phase states that token t+1 follows token t through the KV cache.

Reports a decode branch with no recurrence or another one. A second decode branch, which would be a further token, is
DE005's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from .decode_branches import decode_branches

RECURRENCE = "kv_cache:t->t+1"


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every decode branch that does not state the recurrence."""
    for phase in decode_branches(view):
        value = phase.node.raw.get("recurrence")
        if value != RECURRENCE:
            stated = "states no recurrence" if value is None else f"states recurrence {shown(value)}"
            yield Finding(
                f"{label(phase.node)} {stated}; it is {RECURRENCE!r}",
                where=phase.node,
                value=value,
                expected=RECURRENCE,
            )


_BASE = "dense-1"

RULE = Rule(
    id="DE002",
    name="unstated recurrence",
    severity="error",
    requirement="Strict temporal order: the decode phase states the recurrence t → t+1.",
    rationale="The graph is one step; only the recurrence says that the next step waits for the cache of this one.",
    source="000 §6",
    fix="local",
    remedy=f'set recurrence to "{RECURRENCE}"',
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set", "r0.decode", "recurrence", "none"),)),
)
