"""The decode branches that the decode rules read, less those that are a prefill under a wrong name."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView

_STEP_FIELDS = ("tokens_per_step", "recurrence")


def decode_branches(view: PlanView) -> Iterator[PhaseView]:
    """Decode phases, less those that are a prefill under a wrong name (PH001).

    That is one that states neither step field, where nobody prefills: in its replica beside another decode phase, or in
    the whole plan.
    """
    prefilling = {phase.replica.position for phase in view.phases if phase.phase == "prefill" and phase.replica}
    decodes = [phase for phase in view.phases if phase.phase == "decode"]
    stating = {
        phase.replica.position
        for phase in decodes
        if phase.replica is not None and any(name in phase.node.raw for name in _STEP_FIELDS)
    }
    for phase in decodes:
        silent = not any(name in phase.node.raw for name in _STEP_FIELDS)
        if silent and phase.replica is not None and stating:
            alone = phase.replica.position in stating and phase.replica.position not in prefilling
            if alone or not prefilling:
                continue
        yield phase
