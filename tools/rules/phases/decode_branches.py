"""The decode branches that the decode rules read, less those that are a prefill under a wrong name."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView

_STEP_FIELDS = ("tokens_per_step", "recurrence")


def decode_branches(view: PlanView) -> Iterator[PhaseView]:
    """Decode phases; of two in a replica without prefill, one that states neither step field is left out (PH001)."""
    prefilling = {phase.replica.position for phase in view.phases if phase.phase == "prefill" and phase.replica}
    stating: set[int] = set()
    decodes = [phase for phase in view.phases if phase.phase == "decode"]
    for phase in decodes:
        if phase.replica is not None and any(name in phase.node.raw for name in _STEP_FIELDS):
            stating.add(phase.replica.position)
    for phase in decodes:
        silent = not any(name in phase.node.raw for name in _STEP_FIELDS)
        if silent and phase.replica is not None and phase.replica.position in stating - prefilling:
            continue
        yield phase
