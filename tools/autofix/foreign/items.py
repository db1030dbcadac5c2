"""Reads nodes of foreign proposals: nested children, objects keyed by id, stages, replicas, expert placements, ranks.

Of each node it takes type, name, layers, devices, experts and rank where they can mean one thing only, and hands the
degrees that a stage or an operator states back to the walk. Nodes of which there is but a name are not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...checkpoint import checked
from .fields import finish, holds_objects, members_of, place_field, rank_field
from .figures import Place, PlacesOf, experts_of, span_of
from .lexicon import DEGREE_NAMES, concept_of, node_type_of, phase_of, words_of
from .notes import shortened
from .ranks import stages_of_ranks
from .scope import Item, Scope
from .shapes import is_list, is_nested, is_object

if TYPE_CHECKING:
    from .walker import Walker

MOST_ITEMS = 100_000
_LISTS: dict[str | None, str | None] = {
    "nodes": None, "node_count": None, "children": None, "stages": "PipelineStageNode", "pp": "PipelineStageNode",
    "replicas": "ReplicaNode", "dp": "ReplicaNode", "phases": "PhaseNode", "layers": "LayerBlockNode",
    "experts": "ExpertNode",
}  # fmt: skip
_OUTER = ("RequestNode", "ReplicaNode", "PhaseNode")
_OPERATORS = ("AttentionNode", "FFNNode", "MoENode")
_PLACEMENT = re.compile(r"/[^/]*(?:expert|moe)[^/]*/(?:placement|map|mapping|assignment)$")
# Fields that mean the same in our format under the same name.
_OWN_NUMBERS = ("offset", "period", "tokens_per_step")
_OWN_WORDS = ("recurrence",)


class ItemReader:
    """Reads the nodes of one proposal for its walk."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.count = 0
        self.replicas = 0

    def takes(self, concept: str | None, value: Any, scope: Scope) -> bool:
        """Read `value` where it holds nodes; whether it did."""
        if concept == "ranks" and is_list(value):
            return self._take_ranks(value, scope)
        is_placement = concept is None and _PLACEMENT.search(scope.where.lower()) is not None
        if (concept == "expert_placement" or is_placement) and is_nested(value):
            return self._take_experts(value, scope)
        if concept not in _LISTS and not scope.hardware and _are_stages(value, self.walker.places_of):
            return self.take_list("PipelineStageNode", value, scope)
        if concept not in _LISTS or scope.hardware or not is_nested(value):
            return False
        if concept == "phases" and is_list(value):
            return self._take_phases(value, scope)
        groups = concept in ("dp", "replicas") and is_list(value) and all(is_list(one) for one in value)
        if concept in ("layers", "experts", "pp", "dp", "replicas") and not groups and not holds_objects(value):
            return False
        if concept == "stages" and is_object(value) and not all(is_object(member) for member in value.values()):
            return False
        return self.take_list(_LISTS[concept], value, scope)

    def takes_phases(self, value: list[Any], scope: Scope) -> bool:
        """Read a list of objects of which each names its phase; whether it was one."""
        named = [self._phase_named(member) if is_object(member) else None for member in value[:10]]
        return len(named) == len(value) and None not in named and bool(named) and self._take_phases(value, scope)

    def take_list(self, default: str | None, value: Any, scope: Scope) -> bool:
        """Read nodes that stand side by side, as a list or as an object keyed by their names."""
        if is_object(value) and default is not None and any(map(phase_of, value)):
            if default == "PhaseNode":
                return False
            for key, member in value.items():
                if (phase := phase_of(key)) is not None and is_nested(member):
                    self.take_list(default, member, scope.inside(key, phase=phase))
                else:
                    self.walker.walk({key: member}, scope)
            return True
        found = [self._read(name, member, default, scope) for name, member in checked(members_of(value))]
        items = [item for item in found if item is not None]
        stages = [item for item in items if item.type == "PipelineStageNode"]
        for place, item in enumerate(stages):
            item.index = place if item.index is None else item.index
        if default == "PipelineStageNode" and stages and scope.item is None and not self.walker.is_cut:
            self.walker.facts.claim(f"{scope.phase or 'any'}.pp", len(stages), scope.where, weak=True)
        if default == "ReplicaNode" and items:
            if not self.walker.is_cut:
                self.walker.facts.claim(f"{scope.phase or 'any'}.replicas", len(items), scope.where, weak=True)
            for item in items:
                item.index = item.replica = self.replicas if item.index is None or scope.phase else item.index
                self.replicas += 1
        for item in items:
            self._attach(item, scope)
        return True

    def _attach(self, item: Item, scope: Scope) -> None:
        if scope.item is None:
            self.walker.items.append(item)
        else:
            item.parent = scope.item
            scope.item.children.append(item)

    def take_devices(self, value: Any, scope: Scope) -> None:
        """The devices of a phase, or of the whole plan, in their order."""
        devices = self.walker.places_of(value)
        if scope.hardware:
            self.walker.facts.claim("total", len(devices or ()), scope.where, weak=True)
        elif devices is not None:
            self._attach(Item("PhaseNode", None, scope.where, scope.phase, devices=devices), scope)

    def _take_phases(self, value: list[Any], scope: Scope) -> bool:
        for place, member in enumerate(value):
            inner = scope.inside(place)
            if is_object(member):
                members = member
                phase = self._phase_named(members)
                rest = {k: v for k, v in members.items() if not (isinstance(v, str) and phase_of(v))}
                self.walker.walk(rest, inner.but(phase=phase or scope.phase))
            else:
                self.walker.walk(member, inner)
        return True

    @staticmethod
    def _phase_named(members: dict[str, Any]) -> str | None:
        texts = [value for value in list(members.values())[:40] if isinstance(value, str)]
        named = {phase for text in texts if len(text) <= 60 and (phase := phase_of(text))}
        return named.pop() if len(named) == 1 else None

    def _take_ranks(self, value: list[Any], scope: Scope) -> bool:
        table = stages_of_ranks(value, scope, self.walker.places_of)
        if table is None:
            self.walker.notes.unclear("ranks that do not fit together", scope.where)
            return True
        for name, degree in table.degrees.items():
            self.walker.claim_degree(name, degree, scope)
        for item in table.stages:
            self._attach(item, scope)
        return True

    def _take_experts(self, value: Any, scope: Scope) -> bool:
        """ "gpu0": "0-15", a list of lists by device, or "expert_3": "gpu1"."""
        hosted: dict[Any, list[int | list[int]]] = {}
        names_experts = re.match(r"experts? to\b", words_of(scope.where.rpartition("/")[2])) is not None
        members: dict[Any, Any] = value if is_object(value) else dict(enumerate(value if is_list(value) else []))
        for key, member in members.items():
            by_expert = isinstance(key, str) and (
                names_experts or re.match(r"e(xperts?)?[\s_\-]?\d", key, re.IGNORECASE) is not None
            )
            places = self.walker.places_of(member if by_expert else key)
            experts = experts_of(key if by_expert else member)
            if places is None or experts is None or len(places) != 1:
                self.walker.notes.unclear(f"{shortened(key)}: {shortened(member)} places no experts", scope.where)
                return True
            hosted.setdefault(places[0], []).extend(experts)
        for place, experts in hosted.items():
            self._attach(Item("ExpertNode", None, scope.where, scope.phase, devices=[place], experts=experts), scope)
        return True

    def _read(self, name: str | None, value: Any, default: str | None, scope: Scope) -> Item | None:
        self.count += 1
        inner = scope.inside(name if name is not None else self.count)
        if self.count > MOST_ITEMS or inner.where.count("/") > 60:
            self.walker.notes.unclear("more, or deeper, nodes than are read", scope.where)
            return None
        if default == "PipelineStageNode" and (pair := self._span_and_devices(value)) is not None:
            return Item(default, name, inner.where, scope.phase, layers=pair[0], devices=pair[1])
        if default == "PipelineStageNode" and (span := span_of(value)) is not None:
            return Item(default, name, inner.where, scope.phase, layers=span)
        if not is_object(value):
            if default is None:
                self.walker.notes.unclear("nodes of which there is but a name", scope.where)
            elif (
                default in ("PipelineStageNode", "ReplicaNode")
                and (devices := self.walker.places_of(value)) is not None
            ):
                return Item(default, name, inner.where, scope.phase, devices=devices)
            else:
                self.walker.notes.unclear(f"{shortened(value)!r} is no {default.removesuffix('Node')}", inner.where)
            return None
        return self._read_object(name, value, default, inner)

    def _read_object(self, name: str | None, value: dict[str, Any], default: str | None, scope: Scope) -> Item:
        own_name = next((value[key] for key in _keys(value, "id") if isinstance(value[key], str | int)), None)
        label = str(own_name)[:120] if isinstance(own_name, str) else name
        item = Item(None, label, scope.where, scope.phase, scope.replica)
        if type(own_name) is int and item.index is None:
            item.index = own_name
        words = [str(value[key])[:80] for key in _keys(value, "type") if isinstance(value[key], str)]
        item.type = next((found for found in map(_type_of, words) if found), None)
        if item.type is None:
            item.type = (None if words else default) or _type_of(re.sub(r"[\d_\-. ]+$", "", label or "")) or default
        phase = next(
            (p for w in (*words, *_texts(value, "phase"), label or "") if (p := phase_of(w.rstrip("0123456789_")))),
            None,
        )
        if item.type == "AllToAllNode":
            spoken = " ".join((*words, label or "")).lower()
            item.role = next((role for role in ("dispatch", "combine") if role in spoken), None)
        if phase is not None and default == "PipelineStageNode" and not words:
            item.type = "PhaseNode"  # "stages" that are called prefill and decode
        if phase is not None and item.type in (None, "PhaseNode", "ReplicaNode"):
            item.type = item.type or "PhaseNode"
            item.phase = phase
        if item.type is None and words:
            self.walker.notes.unclear(f"a node of the type {shortened(words[0])!r}", scope.where)
        operator = item.type if item.type in _OPERATORS else None
        inside = scope.but(item=item, phase=item.phase, operator=operator)
        for key, member in value.items():
            if member is not None:
                self._field(item, str(key), member, inside)
        finish(item)
        return item

    def _field(self, item: Item, key: str, value: Any, scope: Scope) -> None:
        concept, phase, inner = concept_of(key), phase_of(key), scope.inside(key)
        if concept in ("id", "type", "phase", "aside"):
            return
        if key in _OWN_NUMBERS and type(value) is int:
            item.own[key] = value
        elif key in _OWN_WORDS and isinstance(value, str):
            item.own[key] = value[:200]
        elif place_field(item, concept, value, self.walker.places_of) or rank_field(item, key, concept, value):
            return
        elif concept == "parent" and (name := _only(value)) is not None:
            item.parent_name = name
        elif phase is not None and concept is None:
            self._phase_child(key, phase, value, inner)
        elif self.takes(concept, value, inner):
            return
        elif item.type == "ReplicaNode" and concept == "replicas" and (devices := self._group(value)) is not None:
            item.devices = item.devices or devices  # its workers
        elif concept == "tp" and (devices := self._group(value)) is not None:
            item.devices = item.devices or devices
            self.walker.facts.claim(f"{item.phase or 'any'}.tp", len(devices), inner.where, weak=True)
        elif concept in DEGREE_NAMES:
            if _states_degrees(item, concept) and not is_list(value):
                self.walker.degree(str(concept), value, inner)
        elif concept is None and is_nested(value) and (kind := node_type_of(key)) is not None:
            self.take_list(kind, value if is_list(value) and holds_objects(value) else {key: value}, inner)
        else:
            # What is said of the whole plan inside of a node is not said of one of its operators.
            outside = inner.but(operator=None) if item.type in ("RequestNode", None) else inner
            self.walker.walk({key: value}, outside)

    def _phase_child(self, key: str, phase: str, value: Any, scope: Scope) -> None:
        if is_object(value):
            item = self._read_object(key, value, "PhaseNode", scope.but(phase=phase))
            item.type, item.phase = "PhaseNode", phase
            self._attach(item, scope)
        else:
            self.walker.walk({key: value}, scope)

    def _span_and_devices(self, value: Any) -> tuple[tuple[int, int], list[Place]] | None:
        """A stage as a pair: its layers, then its devices."""
        if not is_list(value) or len(value) != 2 or isinstance(value[0], int):
            return None
        span, devices = span_of(value[0]), self.walker.places_of(value[1])
        return (span, devices) if span is not None and devices is not None else None

    def _group(self, value: Any) -> list[Place] | None:
        """Several devices, as a list or a text: those of one group, not the number of its members."""
        devices = self.walker.places_of(value) if is_list(value) or isinstance(value, str) else None
        return devices if devices is not None and len(devices) > 1 else None


def _keys(value: dict[str, Any], concept: str) -> list[str]:
    """The keys of a concept, the plainest first: "id" before "name", "type" before "op"."""
    plain = ("id", "name", "type", "kind", "op")
    found = [key for key in value if concept_of(key) == concept]
    return sorted(found, key=lambda key: plain.index(key) if key in plain else 9)


def _texts(value: dict[str, Any], concept: str) -> list[str]:
    return [text for key in _keys(value, concept) if isinstance(text := value[key], str) and len(text) < 80]


def _type_of(words: str) -> str | None:
    return "PhaseNode" if phase_of(words) else node_type_of(words)


def _states_degrees(item: Item, concept: str | None) -> bool:
    """Whether a figure of this concept in the node is a degree: not a rank, nor what only the whole plan has."""
    if item.type in ("PipelineStageNode", "LayerBlockNode"):
        return concept not in ("pp", "dp", "replicas")
    return item.type is None or item.type in _OPERATORS or item.type in _OUTER


def _only(value: Any) -> str | None:
    """The one name that `value` is or holds."""
    items = value if is_list(value) else [value]
    return str(items[0]) if len(items) == 1 and isinstance(items[0], str | int) else None


def _are_stages(value: Any, places_of: PlacesOf) -> bool:
    """Whether every member is an object that states its layers and its devices."""
    if not is_nested(value) or not value:
        return False
    for _, member in members_of(value):
        if not is_object(member):
            return False
        fields = {concept_of(str(key)): one for key, one in list(member.items())[:40]}
        has_devices = any(places_of(fields.get(name)) for name in ("devices", "accelerator", "gpu_total"))
        if not has_devices or span_of(fields.get("layers")) is None or "type" in fields:
            return False
    return True
