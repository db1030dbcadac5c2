"""Makes the nodes of a foreign proposal in our format: each below a legal parent, devices and ranks by our names.

Implied containers are added (a replica above phases, a stage and a block around an operator); operators, collectives
and whole stages that nobody mentioned are not. Nodes that fit nowhere are noted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...plan.document import PHASES
from ...rules.tree import PARENTS
from .figures import Place
from .nodes import OPERATORS
from .notes import Notes
from .scope import Item, all_below

# How many containers are around each type of node, at least; parents are listed before their children.
_LEVELS: dict[str, int] = {}
for _name, _parents in PARENTS.items():
    _LEVELS[_name] = 1 + min((_LEVELS[parent] for parent in _parents if parent in _LEVELS), default=-1)
# Containers by level; an operator is implied only by parts that no other operator has.
_CONTAINERS = ("RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode")
_IMPLIED = {"RouterNode": "MoENode", "ExpertNode": "MoENode", "KVCacheUpdateNode": "AttentionNode"}
_SUFFIXES = {"PipelineStageNode": "s", "LayerBlockNode": "b", "MoENode": "moe", "AttentionNode": "attn"}
# Node types with fields that proposals write as our format does.
_OWNERS = {"offset": OPERATORS, "period": ("LayerBlockNode",)}
_MOST_NODES = 200_000


class Setting(Struct, frozen=True):
    """What reading the graph needs: the model's layers (and which are MoE), GPUs per node, degrees by phase."""

    layers: int | None
    moe_layers: tuple[int, int] | None
    gpus_per_node: int
    degrees: dict[str, dict[str, Any]]

    def stages(self, phase: str | None) -> int:
        """The stated number of pipeline stages of `phase`; 1 if none was stated."""
        return self.degrees.get(phase or "", {}).get("pp") or 1


class Spot(Struct, frozen=True):
    """A placed node, with the phase, replica and layers that everything below it inherits."""

    id: str | None
    type: str | None
    level: int
    phase: str | None = None
    replica: int = 0
    layers: tuple[int, int] | None = None
    above: Spot | None = None

    @property
    def parent(self) -> str | None:
        """The id of the node above."""
        return None if self.above is None else self.above.id


class GraphMaker:
    """Makes the nodes of one proposal; `named` has them by the proposal's names."""

    def __init__(self, setting: Setting, notes: Notes) -> None:
        self.setting = setting
        self.notes = notes
        self.nodes: list[dict[str, Any]] = []
        self.named: dict[str, list[Spot]] = {}
        self._ids: set[str] = set()
        self._containers: dict[tuple[Any, ...], Spot] = {}

    def make(self, items: list[Item]) -> None:
        """Place every item and everything below it."""
        for item in items:
            self._place(item, Spot(None, None, -1))

    def _place(self, item: Item, spot: Spot) -> None:
        replica = spot.replica if item.replica is None else item.replica
        spot = replace(spot, phase=item.phase or spot.phase, replica=replica)
        level = -1 if item.type is None else _LEVELS[item.type]
        if level >= 2 and spot.phase is None:
            for phase in PHASES:
                self._place(item, replace(spot, phase=phase))
            return
        placed = spot if item.type is None else self._spot_of(item, level, spot)
        if placed is None:
            return
        for child in item.children:
            self._place(child, placed)
        if level in (1, 2, 3) and item.devices and not any(child.devices for child in all_below(item.children)):
            self._occupy(item, placed)

    def _spot_of(self, item: Item, level: int, spot: Spot) -> Spot | None:
        """The node of `item`, below `spot` or an ancestor of it; `None` if it is unclear what it is a part of."""
        while spot.above is not None and spot.level >= level:
            if spot.type in ("MoENode", "ExpertNode") and level >= 5:
                break
            spot = replace(spot.above, phase=spot.phase, replica=spot.replica)
        parent: Spot | None = spot
        while parent is not None and parent.level < level - 1:
            parent = self._container(parent, item)
        if parent is None or len(self.nodes) >= _MOST_NODES:
            what = f"{str(item.type).removesuffix('Node')} {item.name or ''}"
            self.notes.unclear(f"{what}: not clear what it is a part of", item.where)
            return None
        if level > 2:
            placed = self._new(item, parent, level)
        else:
            index = item.index if item.type == "ReplicaNode" else None
            placed = self._outer(replace(parent, replica=parent.replica if index is None else index), item.name)
        self.named.setdefault(item.name or "", []).append(placed)
        return placed

    def _container(self, spot: Spot, item: Item) -> Spot | None:
        """The container below `spot` that `item` belongs in, added if absent; `None` if that is open."""
        if spot.level < 2:
            return self._outer(spot, None)
        kind = _CONTAINERS[spot.level + 1] if spot.level < 4 else _IMPLIED.get(str(item.type))
        layers = spot.layers
        if kind == "PipelineStageNode":
            layers = item.layers if self.setting.layers is None else (0, self.setting.layers - 1)
        elif kind == "LayerBlockNode":
            is_moe = item.type in ("ExpertNode", "RouterNode", "MoENode")
            layers = item.layers or (self.setting.moe_layers if is_moe else None) or spot.layers
        if kind is None or (kind == "PipelineStageNode" and self.setting.stages(spot.phase) != 1):
            return None
        key = (kind, spot.id, layers)
        if key not in self._containers:
            count = sum(1 for known in self._containers if known[:2] == (kind, spot.id))
            fields: dict[str, Any] = {"index": count} if kind == "PipelineStageNode" else {}
            if layers is not None and spot.level < 4:
                fields["layers"] = [*layers]
            identity = self._node(kind, f"{spot.id}.{_SUFFIXES[kind]}{count}", spot.id, fields)
            self._containers[key] = Spot(identity, kind, spot.level + 1, spot.phase, spot.replica, layers, spot)
        return self._containers[key]

    def _outer(self, parent: Spot, name: str | None) -> Spot:
        """The request, replica or phase below `parent`, made once each."""
        kind = _CONTAINERS[parent.level + 1]
        key = (kind, parent.id, (None, parent.replica, parent.phase)[parent.level + 1])
        if key not in self._containers:
            usual, fields = (
                ("request", {}),
                (f"replica{parent.replica}", {"index": parent.replica}),
                (f"{parent.id}.{parent.phase}", {"phase": parent.phase}),
            )[parent.level + 1]
            identity = self._node(kind, name or usual, parent.id, dict[str, Any](fields))
            self._containers[key] = Spot(identity, kind, parent.level + 1, above=parent)
        return replace(self._containers[key], phase=parent.phase, replica=parent.replica)

    def _new(self, item: Item, parent: Spot, level: int) -> Spot:
        """The node of `item` below `parent`."""
        kind = str(item.type)
        name = f"{parent.id}.{kind.removesuffix('Node').lower()}{'' if item.index is None else item.index}"
        if item.name:
            is_apart = item.phase is not None or (item.parent is not None and item.parent.phase is not None)
            name = item.name if is_apart else f"{parent.phase}.{item.name}"
        identity = self._node(kind, name, parent.id, self._fields(item, parent, level))
        return Spot(identity, kind, level, parent.phase, parent.replica, item.layers or parent.layers, parent)

    def _fields(self, item: Item, parent: Spot, level: int) -> dict[str, Any]:
        kind, fields = str(item.type), dict[str, Any]()
        if kind == "PipelineStageNode" and item.index is not None:
            fields["index"] = item.index
        layers = item.layers or (parent.layers if kind == "LayerBlockNode" else None)
        if layers is not None and kind in ("PipelineStageNode", "LayerBlockNode"):
            fields["layers"] = [*layers]
        fields |= {key: value for key, value in item.fields.items() if kind in _OWNERS.get(key, ("PhaseNode",))}
        if kind in ("ShardNode", "LinearNode"):
            fields["rank"] = self._rank(item)
        if kind == "ExpertNode" and item.experts is not None:
            fields["experts"] = item.experts
        if kind == "AllToAllNode" and item.role is not None:
            fields["role"] = item.role
        if item.devices and (level == 6 or kind in ("EmbeddingNode", "LMHeadNode")):
            fields["devices"] = self._devices(item.devices)
        return fields

    def _rank(self, item: Item) -> dict[str, int]:
        if isinstance(item.rank, dict):
            return {name: number for name, number in item.rank.items() if name in ("tp", "sp", "dp", "kv_sp")}
        if item.rank is not None:
            return {"tp": item.rank}
        siblings = [] if item.parent is None else [child for child in item.parent.children if child.type == "ShardNode"]
        if len(siblings) < 2:
            return {}
        self.notes.assumed("shards without a rank are in the order in which they are written", item.where)
        return {"tp": siblings.index(item)}

    def _occupy(self, item: Item, spot: Spot) -> None:
        """Place devices that were stated for a whole stage, phase or replica: its attention runs there."""
        devices = item.devices or []
        if spot.level == 3:
            if (block := self._container(spot, item)) is not None:
                operator = self._node("AttentionNode", f"{block.id}.attn", block.id, {})
                self._node("KVCacheUpdateNode", f"{operator}.kv", operator, {"devices": self._devices(devices)})
            return
        if any(child.type in ("PipelineStageNode", "PhaseNode") for child in item.children):
            return
        for phase in (spot.phase,) if spot.phase else PHASES:
            branch = spot if spot.level == 2 else self._outer(replace(spot, phase=phase), None)
            pp = self.setting.stages(phase)
            if len(devices) % pp:
                self.notes.unclear(f"{len(devices)} devices for {pp} stages", item.where)
                return
            if pp > 1:
                in_order = f"the stages of {phase} take the devices in the order in which they are written"
                self.notes.assumed(in_order, item.where)
            share = len(devices) // pp
            whole = (0, self.setting.layers - 1) if self.setting.layers is not None and pp == 1 else None
            for index in range(pp):
                part = devices[index * share : (index + 1) * share]
                stage = Item("PipelineStageNode", None, item.where, phase, index=index, layers=whole, devices=part)
                self._place(stage, branch)

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
