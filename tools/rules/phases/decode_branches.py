"""Tells decode branches, which the decode rules read, from prefill branches under a wrong name."""

from __future__ import annotations

from ...plan.view import PhaseView, PlanView, once_for_whole

_STEP_FIELDS = ("tokens_per_step", "recurrence")


def is_decode_branch(view: PlanView, phase: PhaseView) -> bool:
    """Whether `phase` is a decode branch, and not a prefill under a wrong name (PH001).

    A misnamed prefill states neither step field, and nothing else prefills: in its replica, which has another decode
    phase, or in the whole plan.
    """
    if phase.phase != "decode" or phase.replica is None or _states_step(phase):
        return phase.phase == "decode"
    prefilling, stating = _serving(view)
    alone = phase.replica.position in stating - prefilling
    return not stating or not (alone or not prefilling)


@once_for_whole
def _serving(view: PlanView) -> tuple[set[int], set[int]]:
    """Positions of the replicas that prefill, and of those with a decode branch that states a step field."""
    served = view.served.items()
    stating = {replica for replica, phases in served if any(map(_states_step, phases.get("decode", ())))}
    return {replica for replica, phases in served if "prefill" in phases}, stating


def _states_step(phase: PhaseView) -> bool:
    return any(name in phase.node.raw for name in _STEP_FIELDS)
