"""The nodes of a foreign proposal in our format: each below a parent that may hold it, devices and ranks by our names.

Containers that follow from what is there are put in (a replica above phases, a stage and a block around an operator);
operators, collectives and whole stages that nobody mentioned are not. What fits nowhere is noted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...plan.document import PHASES
from .figures import Place
from .notes import Notes
from .scope import Item

LEVELS = {
    "RequestNode": 0, "ReplicaNode": 1, "PhaseNode": 2, "PipelineStageNode": 3, "EmbeddingNode": 4, "LMHeadNode": 4,
    "LayerBlockNode": 4, "AttentionNode": 5, "FFNNode": 5, "MoENode": 5, "ShardNode": 6, "LinearNode": 6,
    "RouterNode": 6, "ExpertNode": 6, "KVCacheUpdateNode": 6, "AllReduceNode": 6, "AllGatherNode": 6,
    "ReduceScatterNode": 6, "AllToAllNode": 6,
}  # fmt: skip
# Operators that follow from what is inside of them alone.
_IMPLIED = {"RouterNode": "MoENode", "ExpertNode": "MoENode", "KVCacheUpdateNode": "AttentionNode"}
_MOST_NODES = 200_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What the graph is read with: layers of the model (and those that are MoE), GPUs of a node, degrees by phase."""

    layers: int | None
    moe_layers: tuple[int, int] | None
    gpus_per_node: int
    degrees: dict[str, dict[str, Any]]

    def degree(self, phase: str | None, name: str) -> int | None:
        """A degree of `phase` as it was stated."""
        return self.degrees.get(phase or "", {}).get(name)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the tree: a node of ours, and what it says of everything below it."""

    id: str | None
    type: str | None
    level: int
    phase: str | None = None
    replica: int = 0
    layers: tuple[int, int] | None = None
    above: Spot | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A node of ours with the name that the proposal has for it."""

    id: str
    parent: str | None
    type: str
    phase: str | None


class GraphMaker:
    """Makes the nodes of one proposal; `named` finds them again by the proposal's own names."""

    def __init__(self, setting: Setting, notes: Notes) -> None:
        self.setting = setting
        self.notes = notes
        self.nodes: list[dict[str, Any]] = []
        self.named: dict[str, list[Placed]] = {}
        self._ids: set[str] = set()
        self._made: dict[tuple[Any, ...], Spot] = {}
        self._root = Spot(None, None, -1)

    def make(self, items: list[Item]) -> None:
        """Place every item and what hangs below it."""
        for item in items:
            self._place(item, self._root)

    def _place(self, item: Item, spot: Spot) -> None:
        spot = replace(
            spot, phase=item.phase or spot.phase, replica=spot.replica if item.replica is None else item.replica
        )
        if item.type is None:
            self._children(item, spot)
            return
        level = LEVELS[item.type]
        if level >= 2 and spot.phase is None:
            for phase in PHASES:
                self._place(item, replace(spot, phase=phase))
            return
        while (
            spot.above is not None
            and spot.level >= level
            and not (spot.type in ("MoENode", "ExpertNode") and level >= 5)
        ):
            spot = replace(spot.above, phase=spot.phase, replica=spot.replica)
        parent = spot if spot.level >= level else self._ensure(spot, level - 1, item)
        if parent is None or len(self.nodes) >= _MOST_NODES:
            self.notes.unclear(
                f"{item.type.removesuffix('Node')} {item.name or ''}: not clear what it is a part of", item.where
            )
            return
        here = self._container(item, parent) if level in (0, 1, 2) else self._add(item, parent, level)
        self._children(item, here)
        if level in (1, 2, 3) and item.devices and not _names_devices(item.children):
            self._occupy(item, here)

    def _children(self, item: Item, spot: Spot) -> None:
        for child in item.children:
            self._place(child, spot)

    def _container(self, item: Item, parent: Spot) -> Spot:
        """The root, a replica or a phase: each of them once."""
        index = item.index if item.type == "ReplicaNode" and item.index is not None else parent.replica
        spot = self._made_once(str(item.type), replace(parent, replica=index), item.name)
        self.named.setdefault(item.name or "", []).append(Placed(str(spot.id), parent.id, str(item.type), spot.phase))
        return spot

    def _made_once(self, kind: str, parent: Spot, name: str | None) -> Spot:
        key = (
            kind,
            parent.id,
            parent.replica if kind == "ReplicaNode" else parent.phase if kind == "PhaseNode" else None,
        )
        if key not in self._made:
            fields: dict[str, Any] = {}
            if kind == "ReplicaNode":
                fields, usual = {"index": parent.replica}, f"replica{parent.replica}"
            elif kind == "PhaseNode":
                fields, usual = {"phase": parent.phase}, f"{parent.id}.{parent.phase}"
            else:
                usual = "request"
            identity = self._node(kind, name or usual, parent.id, fields)
            phase = None if kind == "RequestNode" else parent.phase
            self._made[key] = Spot(identity, kind, LEVELS[kind], phase, parent.replica, None, parent)
        return replace(self._made[key], phase=parent.phase, replica=parent.replica)

    def _ensure(self, spot: Spot, level: int, item: Item) -> Spot | None:
        """The container of `level` below `spot` that `item` belongs in, put in where there is none."""
        while spot.level < level:
            step = spot.level + 1
            if step <= 2:
                spot = self._made_once(("RequestNode", "ReplicaNode", "PhaseNode")[step], spot, None)
                continue
            made = self._made_between(step, spot, item)
            if made is None:
                return None
            spot = made
        return spot

    def _made_between(self, step: int, spot: Spot, item: Item) -> Spot | None:
        """A stage, a block or an operator around what was written without one, where only one can be meant."""
        if step == 3:
            if (self.setting.degree(spot.phase, "pp") or 1) != 1:
                return None
            whole = None if self.setting.layers is None else (0, self.setting.layers - 1)
            kind, layers = "PipelineStageNode", whole or item.layers
        elif step == 4:
            own = item.layers or (
                self.setting.moe_layers if item.type in ("ExpertNode", "RouterNode", "MoENode") else None
            )
            kind, layers = "LayerBlockNode", own or spot.layers
        else:
            kind, layers = _IMPLIED.get(str(item.type)), spot.layers
        if kind is None:
            return None
        key = (kind, spot.id, layers)
        if key not in self._made:
            count = sum(1 for made in self._made if made[:2] == (kind, spot.id))
            suffix = {"PipelineStageNode": "s", "LayerBlockNode": "b", "MoENode": "moe"}.get(kind, "attn")
            fields: dict[str, Any] = {"index": count} if step == 3 else {}
            if layers is not None and step < 5:
                fields["layers"] = [*layers]
            identity = self._node(kind, f"{spot.id}.{suffix}{count}", spot.id, fields)
            self._made[key] = Spot(identity, kind, step, spot.phase, spot.replica, layers, spot)
        return self._made[key]

    def _add(self, item: Item, parent: Spot, level: int) -> Spot:
        """The node of `item` below `parent`."""
        kind = str(item.type)
        name = item.name or f"{parent.id}.{kind.removesuffix('Node').lower()}{'' if item.index is None else item.index}"
        if item.name and item.phase is None and (parent.phase is not None and level >= 3):
            name = item.name if item.parent is not None and item.parent.phase else f"{parent.phase}.{item.name}"
        identity = self._node(kind, name, parent.id, self._fields(item, parent, level))
        self.named.setdefault(item.name or "", []).append(Placed(identity, parent.id, kind, parent.phase))
        layers = item.layers or parent.layers
        return Spot(identity, kind, level, parent.phase, parent.replica, layers, parent)

    def _fields(self, item: Item, parent: Spot, level: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if item.type == "PipelineStageNode" and item.index is not None:
            fields["index"] = item.index
        layers = item.layers or (parent.layers if item.type == "LayerBlockNode" else None)
        if layers is not None and item.type in ("PipelineStageNode", "LayerBlockNode"):
            fields["layers"] = [*layers]
        fields |= {key: value for key, value in item.fields.items() if _has(str(item.type), key)}
        if item.type in ("ShardNode", "LinearNode"):
            fields["rank"] = self._rank(item)
        if item.type == "ExpertNode" and item.experts is not None:
            fields["experts"] = item.experts
        if item.type == "AllToAllNode" and item.role is not None:
            fields["role"] = item.role
        if item.devices and (level == 6 or item.type in ("EmbeddingNode", "LMHeadNode")):
            fields["devices"] = self._devices(item.devices)
        return fields

    def _rank(self, item: Item) -> dict[str, int]:
        if isinstance(item.rank, dict):
            return {name: number for name, number in item.rank.items() if name in ("tp", "sp", "dp", "kv_sp")}
        siblings = [] if item.parent is None else [child for child in item.parent.children if child.type == "ShardNode"]
        if item.rank is None and len(siblings) < 2:
            return {}
        if item.rank is None:
            self.notes.assumed("shards without a rank are in the order in which they are written", item.where)
        return {"tp": siblings.index(item) if item.rank is None else item.rank}

    def _occupy(self, item: Item, spot: Spot) -> None:
        """Devices that were said of a stage, a phase or a replica as a whole: its attention runs there."""
        devices = item.devices or []
        if spot.level == 3:
            block = self._made_between(4, spot, item)
            if block is not None:
                operator = self._node("AttentionNode", f"{block.id}.attn", block.id, {})
                self._node("KVCacheUpdateNode", f"{operator}.kv", operator, {"devices": self._devices(devices)})
            return
        for phase in (spot.phase,) if spot.phase else PHASES:
            if any(child.type == "PipelineStageNode" or child.type == "PhaseNode" for child in item.children):
                return
            branch = self._ensure(replace(spot, phase=phase), 2, item)
            pp = self.setting.degree(phase, "pp") or 1
            if branch is None or len(devices) % pp:
                self.notes.unclear(f"{len(devices)} devices for {pp} stages", item.where)
                return
            if pp > 1:
                self.notes.assumed(
                    f"the stages of {phase} take the devices in the order in which they are written", item.where
                )
            share = len(devices) // pp
            whole = (0, self.setting.layers - 1) if self.setting.layers is not None and pp == 1 else None
            for index in range(pp):
                part = Item("PipelineStageNode", None, item.where, phase, index=index, layers=whole,
                            devices=devices[index * share : (index + 1) * share])  # fmt: skip
                self._place(part, branch)

    def _node(self, kind: str, name: str, parent: str | None, fields: dict[str, Any]) -> str:
        identity, count = name, 2
        if identity in self._ids and parent is not None:
            identity = f"{parent}.{name}"
        while identity in self._ids:
            identity = f"{parent}.{name}.{count}"
            count += 1
        self._ids.add(identity)
        self.nodes.append({"id": identity, "type": kind, "parent": parent, **fields})
        return identity

    def _devices(self, places: Iterable[Place]) -> list[str]:
        size = self.setting.gpus_per_node
        pairs = [divmod(place, size) if isinstance(place, int) else place for place in places]
        return [f"n{node}.g{gpu}" for node, gpu in pairs]


def _has(kind: str, field: str) -> bool:
    """Whether nodes of `kind` have a field that is written as ours is."""
    owners = {"offset": ("AttentionNode", "FFNNode", "MoENode"), "period": ("LayerBlockNode",)}
    return kind in owners.get(field, ("PhaseNode",))


def _names_devices(items: list[Item]) -> bool:
    """Whether any of `items`, or of what hangs below them, names devices."""
    waiting = [*items]
    for item in waiting:
        if item.devices:
            return True
        waiting.extend(item.children)
    return False
