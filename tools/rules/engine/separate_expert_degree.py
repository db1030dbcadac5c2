"""EN005: in a named engine the ranks of attention are the ranks of its experts; vLLM has no expert degree besides.

It needs a plan that names its engine. Devices that attention leaves idle are GP005's warning without one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..engines import named_engine
from ..reading import label, settled_devices, stage_devices

_MAX_NAMED = 64


def _narrow_attention(stage: StageView, devices: frozenset[str]) -> list[NodeView]:
    """Attention operators of a stage with experts that run on part of its devices."""
    operators = list(stage.operators())
    if not any(operator.type == "MoENode" for operator in operators):
        return []
    attention = [operator for operator in operators if operator.type == "AttentionNode"]
    return [operator for operator in attention if 0 < len(settled_devices(operator) & devices) < len(devices)]


def _sliced_groups(stage: StageView) -> list[NodeView]:
    """MoE operators with several expert groups of several devices each."""
    found: list[NodeView] = []
    for operator in stage.operators():
        groups = operator.children_of_type("ExpertNode") if operator.type == "MoENode" else []
        if len(groups) > 1 and any(len(set(group.devices)) > 1 for group in groups):
            found.append(operator)
    return found


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each stage whose experts are spread in a way that the engine has no setting for."""
    engine = named_engine(view)
    if engine is None:
        return
    for stage in view.stages:
        devices = stage_devices(stage)
        narrow = _narrow_attention(stage, devices)
        if narrow:
            used = len(settled_devices(narrow[0]) & devices)
            yield Finding(
                f"attention in stage {label(stage.node)} runs on {used} of the {len(devices)} devices of its experts; "
                f"in {engine.title} all ranks of the group run both",
                where=narrow[0],
                nodes=narrow[:_MAX_NAMED],
                value=used,
                expected=len(devices),
            )
        sliced = [] if engine.slices_groups else _sliced_groups(stage)
        if sliced:
            groups = sliced[0].children_of_type("ExpertNode")
            yield Finding(
                f"stage {label(stage.node)} has {len(groups)} expert groups of {len(set(groups[0].devices))} devices; "
                f"{engine.title} keeps each expert whole on one rank, or slices every expert over all ranks",
                where=sliced[0],
                nodes=sliced[:_MAX_NAMED],
                value=len(groups),
                expected=[1, len(devices)],
            )


_BASE = "relaxed-tp-in-expert"

RULE = Rule(
    id="EN005",
    name="separate expert degree",
    severity="error",
    requirement=(
        "In a plan that names its engine, attention (attention_dp × sp × tp) runs on all devices of a stage with "
        "experts; in vLLM, moreover, ep is 1 or all of them."
    ),
    rationale=(
        "Engines form the expert group out of the attention ranks: EP = TP × DP in vLLM, a divisor of the tensor group "
        "in SGLang and TensorRT-LLM. vLLM's expert parallelism is a switch and no number, so that a degree between "
        "one and all cannot be asked for."
    ),
    source="vLLM 0.33.0 fused_moe/config.py; SGLang 0.5.23 arg_groups/parallel_hook.py; TensorRT-LLM mapping.py",
    fix="re-plan",
    remedy="let attention use all devices of the stage (tp, or attention_dp), and in vLLM ep be 1 or all of them",
    check=check,
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "sglang"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "vllm"}),)),
)
