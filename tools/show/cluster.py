"""The cluster of a plan as racks, nodes and GPUs, each GPU with what it holds: layers, heads, experts, memory.

It is read off the graph as it stands: a broken plan shows what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..errors import ShardwrightError
from ..performance.layout import read_setting
from ..plan.branches import StageView
from ..plan.devices import runs_text
from ..plan.elements import NodeView, as_int, parse_device
from ..plan.performance import DeviceMemory
from ..plan.view import PlanView
from .page_model import ClusterNodeData, GpuData, RackData


def racks(
    view: PlanView, devices: Sequence[str], memory: Mapping[str, DeviceMemory]
) -> tuple[RackData, ...]:  # fmt: skip
    """The racks that the plan uses GPUs of; `memory` is that of each device where it is known."""
    holds = _holdings(view)
    nodes: dict[int, list[GpuData]] = {}
    for number, device in enumerate(devices):
        place = parse_device(device)
        nodes.setdefault(place[0] if place else -1, []).append(_gpu(number, holds.get(device, ()), memory.get(device)))
    each = as_int(view.hardware.get("gpus_per_node")) or 0
    joined = _nodes_joined(view)
    by_rack: dict[str, list[ClusterNodeData]] = {}
    for node, gpus in sorted(nodes.items()):
        name = f"Node n{node}" if node >= 0 else "Devices of no node"
        rack = f"Rack {node // joined} ({joined} nodes on one fabric)" if joined > 1 and node >= 0 else "Cluster"
        idle = max(0, each - len(gpus)) if node >= 0 else 0
        by_rack.setdefault(rack, []).append(ClusterNodeData(name=name, gpus=tuple(gpus), idle=idle))
    return tuple([RackData(name=name, nodes=tuple(inside)) for name, inside in by_rack.items()])


def _nodes_joined(view: PlanView) -> int:
    try:
        return read_setting(view).hardware.nodes_per_domain
    except ShardwrightError:
        return 1


def _gpu(number: int, holds: Sequence[str], memory: DeviceMemory | None) -> GpuData:
    if memory is None:
        return GpuData(device=number, holds=tuple(holds))
    terms = memory.weights_bytes, memory.kv_cache_bytes, memory.activation_bytes, memory.communication_bytes
    return GpuData(device=number, holds=tuple(holds), memory_bytes=terms, usable_bytes=memory.usable_bytes)


def _holdings(view: PlanView) -> dict[str, tuple[str, ...]]:
    """What each device holds, a line for each of its stages; phases that hold the same share a line."""
    phases: dict[str, dict[str, list[str]]] = {}
    for phase in view.phases:
        index = "" if phase.replica is None or phase.replica.index is None else f" {phase.replica.index}"
        for stage in phase.stages:
            for device in stage.devices:
                parts = ", ".join(_parts(view, stage, device))
                phase_names = phases.setdefault(device, {}).setdefault(f"replica{index}: {parts}", [])
                if phase.phase is not None and phase.phase not in phase_names:
                    phase_names.append(phase.phase)
    return {
        device: tuple([f"{' and '.join(names) or 'no phase'}, {text}" for text, names in lines.items()])
        for device, lines in phases.items()
    }


def _parts(view: PlanView, stage: StageView, device: str) -> Iterator[str]:
    if stage.index is not None and len(stage.siblings.stages) > 1:
        yield f"stage {stage.index}"
    if stage.layers is not None:
        first, last = stage.layers
        yield f"layers {first}–{last}" if last != first else f"layer {first}"
    seen: set[str] = set()
    for node in stage.nodes:
        if device in node.devices and (text := _part(view, node)) and text not in seen:
            seen.add(text)
            yield text


def _part(view: PlanView, node: NodeView) -> str:
    """What `node` holds, in words; "" where it is no weights and no cache."""
    match node.type:
        case "EmbeddingNode":
            return "embedding"
        case "LMHeadNode":
            return "LM head"
        case "ExpertNode":
            return f"experts {_ranges(node)}" if node.expert_ranges else ""
        case "ShardNode" if node.parent is not None:
            return _shard(view, node, node.parent)
        case _:
            return ""


def _ranges(node: NodeView) -> str:
    """The experts of a group, runs folded, of many runs the first three."""
    runs = runs_text(node.experts or ()).split(", ")
    return ", ".join(runs[:3]) + (f" and {len(runs) - 3} more runs" if len(runs) > 3 else "")


def _shard(view: PlanView, shard: NodeView, operator: NodeView) -> str:
    rank = shard.rank.get("tp")
    ranks = {child.rank["tp"] for child in operator.children_of_type("ShardNode") if "tp" in child.rank}
    if operator.type == "FFNNode":
        return f"1/{len(ranks)} of the FFN" if len(ranks) > 1 else ""
    layers = operator.parent.layers if operator.parent is not None else None
    layer = view.layer_spec(layers[0] + operator.offset) if layers is not None else None
    if operator.type != "AttentionNode" or layer is None or layer.attention is None:
        return ""
    heads = layer.attention.query_heads
    if rank is None or len(ranks) < 2:
        return f"all {heads} heads"
    first, last = heads * rank // len(ranks), heads * (rank + 1) // len(ranks) - 1
    return f"heads {first}–{last}" if last > first else f"head {first}"
