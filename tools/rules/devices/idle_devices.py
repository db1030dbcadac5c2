"""GP005 (warning): devices of a stage that an attention or FFN operator leaves idle are named.

A shared expert runs beside the routed ones, so nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.placement import attention_width, ffn_width
from ...plan.view import NodeView, PlanView, StageView
from ..base import MAX_NAMES, Example, Finding, Rule
from ..legality import Case, DegreeLimit, Fault
from ..reading import compute_devices, label, settled_devices

_NAMES = {"AttentionNode": "attention", "FFNNode": "FFN"}


def decide(_: PlanView, stage: StageView) -> Iterator[Finding]:
    """Yield, for each kind of operator, the devices of the stage that wait while it runs."""
    devices = stage.settled_devices
    idle: dict[tuple[str, tuple[str, ...]], list[NodeView]] = {}
    for operator in stage.operators:
        used = settled_devices(operator)
        # A shard on another shard's device (GP004) or off the stage (DE004, TP004) leaves its device idle: one fault.
        computing = compute_devices(operator)
        misplaced = len(operator.children_of_type("ShardNode")) > len(computing & devices)
        if operator.type in _NAMES and used and devices - used and not misplaced:
            idle.setdefault((operator.type, tuple(sorted(devices - used))), []).append(operator)
    for (operator_type, waiting), operators in idle.items():
        yield Finding(
            "idle",
            f"{_NAMES[operator_type]} in stage {label(stage.node)} leaves {len(waiting)} of {len(devices)} devices "
            f"idle: {', '.join(waiting[:MAX_NAMES])}{', …' if len(waiting) > MAX_NAMES else ''}",
            where=operators,
            value=list(waiting),
            expected=[],
        )


def _idle(what: str, used: int, case: Case) -> Iterator[Fault]:
    if used < case.degrees.devices:
        message = f"{what} leaves {case.degrees.devices - used} of {case.degrees.devices} devices idle"
        yield Fault("idle", message, case.degrees.devices - used, 0, severity="warning", is_proposed=True)


def _idle_attention(case: Case) -> Iterator[Fault]:
    return _idle("attention", attention_width(case.degrees), case)


def _idle_ffn(case: Case) -> Iterator[Fault]:
    return iter(()) if case.layer.ffn is None else _idle("FFN", ffn_width(case.degrees), case)


RULE = Rule(
    id="GP005",
    name="idle devices",
    severity="warning",
    requirement="Devices of a stage that an operator leaves idle are named.",
    rationale="Idle devices are paid for; a higher degree of that operator, or a narrower stage, may be cheaper.",
    source="003 §8",
    fix="none",
    remedy="raise the operator's degree if the model's shapes allow it, or accept the idle devices",
    visits="stage",
    decide=decide,
    limits=(
        DegreeLimit(("tp", "sp", "kv_sp", "attention_dp", "devices"), _idle_attention),
        DegreeLimit(("tp_ffn", "tp", "attention_dp", "devices"), _idle_ffn),
    ),
    good=Example("moe-shared-tp4-ep4"),
    bad=Example("moe-shared-tp2-ep4"),
)
