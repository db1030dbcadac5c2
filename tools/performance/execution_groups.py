"""On which devices each instance of an operation runs: one device each, or one group of a collective."""

from __future__ import annotations

from ..plan.layout import PhaseLayout, StageLayout
from .operation import PER_DEVICE, Where
from .stage_shape import (
    expert_tensor_groups,
    ffn_tensor_groups,
    sequence_groups,
    tensor_groups,
    token_groups,
    union_devices,
    vocabulary_groups,
)


def instance_groups(phase: PhaseLayout, index: int, where: Where, *, folded: bool) -> list[tuple[str, ...]]:
    """The devices of each instance in stage `index`; `folded`: those of all instances in one."""
    stage = phase.stages[index]
    following = phase.stages[index + 1] if index + 1 < len(phase.stages) else None
    if where in PER_DEVICE:
        devices = _devices_of(stage, where)
        return [devices] if folded else [(device,) for device in devices]
    groups = _collective_groups(phase, stage, following, where)
    if folded and len(groups) > 1:
        return [tuple(dict.fromkeys(device for group in groups for device in group))]
    return groups


def _devices_of(stage: StageLayout, where: Where) -> tuple[str, ...]:
    return {
        "attention": stage.attention_devices,
        "ffn": stage.ffn_devices,
        "stage": stage.devices,
        "embedding": stage.embedding_devices,
        "head": stage.head_devices,
    }[where]


def _collective_groups(
    phase: PhaseLayout, stage: StageLayout, following: StageLayout | None, where: Where
) -> list[tuple[str, ...]]:
    """The device groups that a collective runs on."""
    if where in ("pipeline", "received") and following is not None:
        if where == "pipeline":
            return [(*stage.devices, *following.devices)]
        return token_groups(phase, following)
    if "+" in where:
        own, _, other = where.partition("+")
        sets = {"attention": stage.attention_devices, "ffn": stage.ffn_devices, "stage": stage.devices}
        return [union_devices(sets[own], sets[other], stage) or sets[own]]
    return {
        "tp": lambda: tensor_groups(phase, stage),
        "sp": lambda: sequence_groups(phase, stage),
        "kv_sp": lambda: sequence_groups(phase, stage),
        "ffn_tp": lambda: ffn_tensor_groups(phase, stage),
        "ffn_all": lambda: [stage.ffn_devices],
        "stage_all": lambda: [stage.devices],
        "tokens": lambda: token_groups(phase, stage),
        "vocabulary": lambda: vocabulary_groups(stage),
        "expert_tp": lambda: expert_tensor_groups(phase, stage),
    }[where]()
