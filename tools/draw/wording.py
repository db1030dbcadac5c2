"""The text of a node in a picture, or of several alike: a title, and a few short lines below it."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog.attention.kinds import kind_named
from ..plan.devices import devices_text, runs_text
from ..plan.elements import NodeView, as_int, as_str
from .box import BoxKind
from .style import clipped

_KINDS: dict[str, BoxKind] = {
    "RequestNode": "request", "ReplicaNode": "replica", "PhaseNode": "phase", "PipelineStageNode": "stage",
    "LayerBlockNode": "block", "AttentionNode": "attention", "FFNNode": "ffn", "MoENode": "moe", "RouterNode": "moe",
    "ExpertNode": "moe", "EmbeddingNode": "end", "LMHeadNode": "end", "KVCacheUpdateNode": "cache",
    "AllReduceNode": "communication", "AllGatherNode": "communication", "ReduceScatterNode": "communication",
    "AllToAllNode": "communication",
}  # fmt: skip
_TITLES = {
    "EmbeddingNode": "Embedding", "LMHeadNode": "LM head", "MoENode": "MoE", "RouterNode": "Router",
    "AllReduceNode": "All-reduce", "AllGatherNode": "All-gather", "ReduceScatterNode": "Reduce-scatter",
    "AllToAllNode": "All-to-all", "LinearNode": "Linear", "RequestNode": "Request",
}  # fmt: skip
_DIMENSIONS = {"dp": "DP", "kv_sp": "KV-SP", "sp": "SP", "tp": "TP"}
_MOST_NAMES = 4


def kind_of(node: NodeView, parent: NodeView | None) -> BoxKind:
    """The family of colours of a node; a shard has that of the operator that it is a shard of."""
    if node.type in ("ShardNode", "LinearNode"):
        return "unknown" if parent is None else _KINDS.get(parent.type, "unknown")
    return _KINDS.get(node.type, "unknown")


def title_of(members: Sequence[NodeView], parent: NodeView | None) -> str:
    """The title of nodes that are alike."""
    node = members[0]
    many = len(members) > 1
    match node.type:
        case "ReplicaNode" | "PipelineStageNode":
            word = "Replica" if node.type == "ReplicaNode" else "Stage"
            indices = [member.index for member in members if member.index is not None]
            return f"{word}{'s' if many else ''} {runs_text(indices)}".strip()
        case "PhaseNode":
            phase = as_str(node.raw.get("phase")) or "phase not stated"
            return clipped(f"{phase[:1].upper()}{phase[1:]}", 40)
        case "LayerBlockNode":
            return _layers(members) or "Layers not stated"
        case "AttentionNode":
            kind = f" ({clipped(node.kind, 20)})" if node.kind not in (None, "full") else ""
            return f"Attention{kind}"
        case "FFNNode":
            return "Shared expert" if parent is not None and parent.type == "MoENode" else "FFN"
        case "ShardNode":
            return "Shards" if many else "Shard"
        case "ExpertNode":
            return "Expert groups" if many else "Expert group"
        case "KVCacheUpdateNode":
            kind = kind_named(parent.kind or "") if parent is not None else None
            return "State write" if kind is not None and kind.is_recurrent else "KV cache write"
        case "":
            return "No type"
        case other:
            return _TITLES.get(other, clipped(other, 28))


def lines_of(
    members: Sequence[NodeView], children: Sequence[NodeView], lane: frozenset[str] = frozenset()
) -> list[str]:
    """The lines below the title: degrees, roles, layers, and devices unless they are all those of the lane."""
    node = members[0]
    lines: list[str] = []
    if node.type == "PipelineStageNode":
        lines.append(_layers(members))
    if node.type == "LayerBlockNode" and node.period > 1:
        lines.append(f"a pattern of {node.period} layers")
    if node.type in ("AttentionNode", "FFNNode", "ExpertNode", "EmbeddingNode", "LMHeadNode"):
        lines.append(degrees_of(children))
    if node.type == "MoENode":
        groups = sum(1 for child in children if child.type == "ExpertNode")
        lines.append(f"EP {groups}" if groups > 1 else "")
    if node.type == "ExpertNode":
        lines.append(_experts(node, len(members)))
    if node.role is not None:
        lines.append(clipped(node.role.replace("_", " "), 28))
    if node.type in _KINDS and node.is_collective:
        lines.append(f"over {len(node.devices)} GPU{'s' if len(node.devices) != 1 else ''}")
    devices = [name for member in members for name in member.devices]
    if devices and lane != frozenset(devices):
        lines.append(clipped(devices_text(devices), 40))
    if node.type not in _KINDS and node.type not in ("ShardNode", "LinearNode"):
        lines.append(clipped(_names(members), 40))
    return [line for line in lines if line]


def degrees_of(children: Sequence[NodeView]) -> str:
    """The degrees that the ranks of an operator's shards show: `SP 2 × TP 4`."""
    shards = [child for child in children if child.type == "ShardNode"]
    values = {name: {shard.rank[name] for shard in shards if name in shard.rank} for name in _DIMENSIONS}
    shown = [f"{_DIMENSIONS[name]} {len(ranks)}" for name, ranks in values.items() if len(ranks) > 1]
    return " × ".join(shown)


def _experts(node: NodeView, groups: int) -> str:
    count = sum(last - first + 1 for first, last in node.expert_ranges or ())
    each = " each" if groups > 1 else ""
    return f"{count:,} expert{'s' if count != 1 else ''}{each}" if node.expert_ranges is not None else ""


def _layers(members: Sequence[NodeView]) -> str:
    """The layers of stages or blocks: `Layers 0–15`, or how many each has where they are many."""
    spans = [member.layers for member in members if member.layers is not None]
    if not spans:
        return ""
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    word = "Layers" if last != first else "Layer"
    if members[0].type == "LayerBlockNode":
        return f"{word} {first}–{last}" if last != first else f"{word} {first}"
    each = spans[0][1] - spans[0][0] + 1
    many = f", {each} each" if len(members) > 1 else ""
    return f"{word.lower()} {first}–{last}{many}" if last != first else f"{word.lower()} {first}"


def _names(members: Sequence[NodeView]) -> str:
    names = ", ".join(member.id for member in members[:_MOST_NAMES])
    return f"{names} and {len(members) - _MOST_NAMES} more" if len(members) > _MOST_NAMES else names


def repeats_of(members: Sequence[NodeView]) -> int:
    """How often a box repeats: nodes that are alike, and the periods of a block of layers."""
    node = members[0]
    if node.type != "LayerBlockNode":
        return len(members)
    return sum(
        max(1, (member.layers[1] - member.layers[0] + 1) // member.period) if member.layers is not None else 1
        for member in members
    )


def heading(view_model: str | None, hardware_name: object, gpus: int, nodes: object) -> str:
    """The first line of a picture: the model, and what it runs on."""
    model = clipped(view_model or "a model without a name", 60)
    accelerator = clipped(hardware_name, 30) if isinstance(hardware_name, str) else ""
    count = as_int(nodes)
    over = f" on {count} nodes" if count is not None and count > 1 else ""
    return f"{model} · {gpus} {accelerator} GPU{'s' if gpus != 1 else ''}{over}".replace("  ", " ")
