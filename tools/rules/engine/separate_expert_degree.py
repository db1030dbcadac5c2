"""EN005: engines run attention and experts on the same ranks; vLLM has no separate expert degree.

It needs a plan that names its engine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engines.engine import Engine
from ...plan.placement import attention_width
from ...plan.view import NodeView, PlanView, StageView
from ..base import Example, Finding, Rule, served_by
from ..legality import Case, DegreeLimit, Fault
from ..reading import label, named_engine, settled_devices
from ..shown_faults import shown_at


def _narrow_attention(stage: StageView, devices: frozenset[str]) -> list[NodeView]:
    """Attention operators of a stage that run on a part of its devices."""
    attention = [operator for operator in stage.operators if operator.type == "AttentionNode"]
    return [operator for operator in attention if 0 < len(settled_devices(operator) & devices) < len(devices)]


def _sliced_groups(stage: StageView) -> list[NodeView]:
    """MoE operators with several expert groups of several devices each."""
    sliced: list[NodeView] = []
    for operator in stage.operators:
        groups = operator.children_of_type("ExpertNode") if operator.type == "MoENode" else []
        if len(groups) > 1 and any(len(set(group.devices)) > 1 for group in groups):
            sliced.append(operator)
    return sliced


def _narrow_fault(engine: Engine, where: str, used: int, devices: int) -> Fault:
    return Fault(
        "narrow-attention",
        f"attention{where} runs on {used} of the {devices} devices of its FFN or experts; in {engine.title} all ranks "
        "of the group run both",
        value=used,
        expected=devices,
    )


def _sliced_fault(engine: Engine, groups: int, width: int, devices: int) -> Fault:
    return Fault(
        "sliced-groups",
        f"{groups} expert groups of {width} devices; {engine.title} keeps each expert whole on one rank, or slices "
        "every expert over all ranks",
        value=groups,
        expected=[1, devices],
    )


def _attention(case: Case) -> Iterator[Fault]:
    engine, used = case.conditions.engine, attention_width(case.degrees)
    if engine is not None and used < case.degrees.devices:
        yield _narrow_fault(engine, "", used, case.degrees.devices)


def _experts(case: Case) -> Iterator[Fault]:
    engine, ep, width = case.conditions.engine, case.degrees.ep, case.degrees.tp_expert
    if engine is not None and not engine.slices_groups and ep > 1 and width > 1:
        yield _sliced_fault(engine, ep, width, case.degrees.devices)


def decide(view: PlanView, stage: StageView) -> Iterator[Finding]:
    """Yield attention and experts of a stage that are placed in a way that the engine has no setting for."""
    engine = named_engine(view)
    if engine is None:
        return
    devices, name = stage.settled_devices, label(stage.node)
    narrow = _narrow_attention(stage, devices)
    if narrow:
        used = len(settled_devices(narrow[0]) & devices)
        yield shown_at(narrow, _narrow_fault(engine, f" in stage {name}", used, len(devices)))
    sliced = [] if engine.slices_groups else _sliced_groups(stage)
    if sliced:
        groups = sliced[0].children_of_type("ExpertNode")
        fault = _sliced_fault(engine, len(groups), len(set(groups[0].devices)), len(devices))
        yield shown_at(sliced, fault, f"stage {name} has ")


RULE = Rule(
    id="EN005",
    name="separate expert degree",
    requirement=(
        "In a plan that names its engine, attention (attention_dp × sp × tp) runs on all devices of a stage; in vLLM, "
        "moreover, ep is 1 or all of them."
    ),
    rationale=(
        "An engine's ranks compute all parts of a layer. The expert group is formed out of the attention ranks: EP = "
        "TP × DP in vLLM, a divisor of the tensor group in SGLang and TensorRT-LLM. vLLM's expert parallelism is a "
        "switch and no number, so that a degree between one and all cannot be asked for."
    ),
    source="vLLM 0.33.0 fused_moe/config.py; SGLang 0.5.23 arg_groups/parallel_hook.py; TensorRT-LLM mapping.py",
    fix="re-plan",
    remedy="let attention use all devices of the stage (tp, or attention_dp), and in vLLM ep be 1 or all of them",
    visits="stage",
    decide=decide,
    limits=(
        DegreeLimit(("tp", "sp", "kv_sp", "attention_dp", "devices"), _attention),
        DegreeLimit(("ep", "tp_expert", "devices"), _experts),
    ),
    good=Example(edits=(served_by("sglang"),)),
    bad=Example("relaxed-tp-in-expert", (served_by("vllm"),)),
)
