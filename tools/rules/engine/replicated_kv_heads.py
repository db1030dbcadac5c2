"""EN001 (warning): copies of KV heads do not fill the larger part of a device's memory.

Tensor parallelism beyond the number of KV heads repeats them, which is legal in every engine and costs little while the
cache is small. Reported are copies that take more than half of what a device may use; not those of MLA, whose only
latent is always repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ...performance.layout import layout_from_view
from ...performance.memory import device_memory
from ...plan.performance import DeviceMemory
from ...plan.view import NodeView, PhaseView, PlanView, StageView
from ..base import Example, Finding, Rule, set_top
from ..layer_specs import operator_specs
from ..reading import label
from ..sharding import misranked_dimension, tensor_degree

_MOST_COPIED_SHARE = Fraction(1, 2)


def _copied_heads(view: PlanView, phase: PhaseView) -> dict[int, tuple[NodeView, int, int]]:
    """By position of the block: its attention operator that repeats KV heads least, with tp and KV heads.

    A block with an operator that repeats none is left out, since the copies in its cache have no lower bound.
    """
    copied_by_block: dict[int, tuple[NodeView, int, int]] = {}
    whole: set[int] = set()
    for operator, specs in operator_specs(view, phase):
        for _, layer in specs:
            spec, block = layer.attention, operator.parent
            if operator.type != "AttentionNode" or spec is None or block is None or spec.is_recurrent:
                continue
            tp, heads = tensor_degree(operator), spec.copied_heads
            if heads is None or tp <= heads or misranked_dimension(operator) is not None:
                whole.add(block.position)
                continue
            known = copied_by_block.get(block.position)
            if known is None or tp * known[2] < known[1] * heads:
                copied_by_block[block.position] = (operator, tp, heads)
    return {position: copied for position, copied in copied_by_block.items() if position not in whole}


def _fullest(stage: StageView, devices: dict[str, DeviceMemory]) -> DeviceMemory | None:
    known = [devices[device] for device in sorted(stage.devices) if device in devices]
    return max(known, key=lambda memory: memory.kv_cache_bytes, default=None)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each decode stage whose devices hold more copies of KV heads than anything else."""
    distinct = view.distinct
    if not any(_copied_heads(distinct, phase) for phase in distinct.phases if phase.phase == "decode"):
        return
    copied = {id(phase): _copied_heads(view, phase) for phase in view.phases if phase.phase == "decode"}
    devices = {memory.device: memory for memory in device_memory(layout_from_view(view)).per_device}
    for phase in view.phases:
        for stage in phase.stages if id(phase) in copied else ():
            blocks = [copied[id(phase)].get(block.position) for block in stage.blocks]
            whole = [block for block in blocks if block is not None]
            memory = _fullest(stage, devices)
            if memory is None or not whole or len(whole) < len(blocks):
                continue
            operator, tp, heads = min(whole, key=lambda item: Fraction(item[1], item[2]))
            copies_bytes = memory.kv_cache_bytes * (1 - Fraction(heads, tp))
            if copies_bytes > _MOST_COPIED_SHARE * memory.usable_bytes:
                yield _finding(stage, operator, (tp, heads), memory, int(copies_bytes))


def _finding(
    stage: StageView, operator: NodeView, degrees: tuple[int, int], memory: DeviceMemory, copies_bytes: int
) -> Finding:
    tp, heads = degrees
    return Finding(
        "copies-fill-memory",
        f"tp {tp} holds each of the {heads} KV heads {tp // heads} times in stage {label(stage.node)}: "
        f"{copies_bytes / 1e9:,.1f} GB of the {memory.usable_bytes / 1e9:,.1f} GB usable on {memory.device} are copies",
        where=operator,
        nodes=(stage.node,),
        value={"tp": tp, "kv_heads": heads, "kv_cache_bytes": memory.kv_cache_bytes, "copies_bytes": copies_bytes},
        expected=heads,
        severity="warning",
    )


_LOAD = set_top("/workload/concurrency", 1900)

RULE = Rule(
    id="EN001",
    name="replicated KV heads",
    severity="warning",
    requirement=(
        "Where tp exceeds the number of KV heads, the repeated heads take at most half of a device's usable memory."
    ),
    rationale=(
        "A rank keeps max(1, KV heads / tp) heads, so that beyond the number of heads more ranks make no rank's cache "
        "smaller: tp / KV heads copies of each. Where the copies fill the device, the same devices serve a multiple of "
        "the requests as attention groups, as more replicas, or with the cache cut along the sequence."
    ),
    source="vLLM 0.33.0 config/model.py (KV heads per rank), layers/linear.py; SGLang 0.5.23 models",
    fix="none",
    remedy="lower tp to the number of KV heads, or allow attention_dp or kv_sequence_decode",
    check=check,
    good=Example(edits=(_LOAD,)),
    bad=Example("dense-tp4", (_LOAD, set_top("/model/config/num_key_value_heads", 1))),
)
