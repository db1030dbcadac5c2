"""Reads nodes of foreign proposals: nested children, objects keyed by id, stages, replicas, expert placements, ranks.

Degrees that a stage or an operator states go back to the walk. Nodes that are only a name are not read.
"""

from __future__ import annotations

import re
from typing import Any

from ...checkpoint import checked
from ...input.shapes import is_list, is_nested, is_object
from ...plan.elements import as_list
from .claims import Claims
from .figures import Place, experts_of, span_of
from .lexicon import DEGREE_NAMES, any_case, concept_of, node_type_of, phase_of, words_of
from .nodes import (
    OPERATORS,
    are_stages,
    complete,
    holds_objects,
    members_of,
    new_item,
    set_field,
    stages_of_ranks,
    states_degree,
)
from .notes import shortened
from .scope import Item, Scope

MOST_ITEMS = 100_000
_LISTS: dict[str | None, str | None] = {
    "nodes": None, "node_count": None, "children": None, "stages": "PipelineStageNode", "pp": "PipelineStageNode",
    "replicas": "ReplicaNode", "dp": "ReplicaNode", "phases": "PhaseNode", "layers": "LayerBlockNode",
    "experts": "ExpertNode",
}  # fmt: skip
# Keys that may also hold a degree, a range or a list of numbers: only with objects do they list nodes.
_ONLY_OBJECTS = ("layers", "experts", "pp", "dp", "replicas")
_PLACEMENT = re.compile(r"/[^/]*(?:expert|moe)[^/]*/(?:placement|map|mapping|assignment)$")
_OF_EXPERTS = re.compile(r"experts? to\b")
_EXPERT = any_case(r"e(xperts?)?[\s_\-]?\d")


class ItemReader:
    """Reads the nodes of one proposal for its walk."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.count = 0
        self.replicas = 0

    def takes(self, concept: str | None, value: Any, scope: Scope) -> bool:
        """Read `value` if it holds nodes; return whether it did."""
        if concept == "ranks" and is_list(value):
            return self._take_ranks(value, scope)
        is_placement = concept is None and _PLACEMENT.search(scope.where.lower()) is not None
        if (concept == "expert_placement" or is_placement) and is_nested(value):
            return self._take_experts(value, scope)
        if scope.hardware:
            return False
        if concept not in _LISTS:
            return are_stages(value, self.claims.places_of) and self.take_list("PipelineStageNode", value, scope)
        if not is_nested(value):
            return False
        if concept == "phases" and is_list(value):
            return self._take_phases(value, scope)
        groups = concept in ("dp", "replicas") and is_list(value) and all(map(is_list, value))
        if concept in _ONLY_OBJECTS and not groups and not holds_objects(value):
            return False
        if concept == "stages" and is_object(value) and not all(map(is_object, value.values())):
            return False
        return self.take_list(_LISTS[concept], value, scope)

    def takes_phases(self, value: list[Any], scope: Scope) -> bool:
        """Read a list of objects that each name a phase; return whether it was one."""
        is_one = 0 < len(value) <= 10 and all(is_object(member) and _phase_named(member) for member in value)
        return is_one and self._take_phases(value, scope)

    def take_list(self, default: str | None, value: Any, scope: Scope) -> bool:
        """Read sibling nodes from a list, or from an object keyed by their names."""
        if is_object(value) and default is not None and any(map(phase_of, value)):
            if default == "PhaseNode":
                return False
            for key, member in value.items():
                if (phase := phase_of(key)) is not None and is_nested(member):
                    self.take_list(default, member, scope.inside(key, phase=phase))
                else:
                    self.claims.walk({key: member}, scope)
            return True
        read = [self._read(name, member, default, scope) for name, member in checked(members_of(value))]
        items = [item for item in read if item is not None]
        stages = [item for item in items if item.type == "PipelineStageNode"]
        for place, item in enumerate(stages):
            item.index = place if item.index is None else item.index
        if default == "PipelineStageNode" and scope.item is None:
            self._claim_count("pp", stages, scope)
        if default == "ReplicaNode":
            self._claim_count("replicas", items, scope)
            for item in items:
                item.index = item.replica = self.replicas if item.index is None or scope.phase else item.index
                self.replicas += 1
        for item in items:
            self._attach(item, scope)
        return True

    def _claim_count(self, degree: str, items: list[Item], scope: Scope) -> None:
        if items and not self.claims.is_cut:
            self.claims.facts.claim(f"{scope.phase_or_any}.{degree}", len(items), scope.where, weak=True)

    def _attach(self, item: Item, scope: Scope) -> None:
        if scope.item is None:
            self.claims.items.append(item)
        else:
            scope.item.adopt(item)

    def take_devices(self, value: Any, scope: Scope) -> None:
        """Read the ordered devices of a phase, or of the whole plan."""
        devices = self.claims.places_of(value)
        if scope.hardware:
            self.claims.facts.claim("total", len(devices or ()), scope.where, weak=True)
        elif devices is not None:
            self._attach(Item("PhaseNode", None, scope.where, scope.phase, devices=devices), scope)

    def _take_phases(self, value: list[Any], scope: Scope) -> bool:
        for place, member in enumerate(value):
            inner = scope.inside(place)
            if is_object(member):
                inner = inner.but(phase=_phase_named(member) or scope.phase)
                member = {k: v for k, v in member.items() if not (isinstance(v, str) and phase_of(v))}
            self.claims.walk(member, inner)
        return True

    def _take_ranks(self, value: list[Any], scope: Scope) -> bool:
        stages = stages_of_ranks(value, scope, self.claims.places_of)
        if not stages:
            self.claims.notes.unclear("ranks that do not fit together", scope.where)
            return True
        self.claims.claim_degree("tp", len(stages[0].devices or ()), scope)
        self.claims.claim_degree("pp", len(stages), scope)
        for item in stages:
            self._attach(item, scope)
        return True

    def _take_experts(self, value: Any, scope: Scope) -> bool:
        """ "gpu0": "0-15", a list of lists by device, or "expert_3": "gpu1"."""
        hosted: dict[Place, list[int | list[int]]] = {}
        names_experts = _OF_EXPERTS.match(words_of(scope.key)) is not None
        members: dict[Any, Any] = value if is_object(value) else dict(enumerate(as_list(value)))
        for key, member in members.items():
            by_expert = isinstance(key, str) and (names_experts or _EXPERT.match(key) is not None)
            places = self.claims.places_of(member if by_expert else key)
            experts = experts_of(key if by_expert else member)
            if places is None or experts is None or len(places) != 1:
                self.claims.notes.unclear(f"{shortened(key)}: {shortened(member)} places no experts", scope.where)
                return True
            hosted.setdefault(places[0], []).extend(experts)
        for place, experts in hosted.items():
            self._attach(Item("ExpertNode", None, scope.where, scope.phase, devices=[place], experts=experts), scope)
        return True

    def _read(self, name: str | None, value: Any, default: str | None, scope: Scope) -> Item | None:
        self.count += 1
        inner = scope.inside(name if name is not None else self.count)
        if self.count > MOST_ITEMS or inner.where.count("/") > 60:
            self.claims.notes.unclear("more, or deeper, nodes than are read", scope.where)
            return None
        item = Item(default, name, inner.where, scope.phase)
        if default == "PipelineStageNode":
            item.layers, item.devices = self._layers_and_devices(value)
            if item.layers is not None:
                return item
        if is_object(value):
            return self._read_object(name, value, default, inner)
        if default in ("PipelineStageNode", "ReplicaNode"):
            item.devices = self.claims.places_of(value)
            if item.devices is not None:
                return item
        if default is None:
            self.claims.notes.unclear("nodes of which there is but a name", scope.where)
        else:
            self.claims.notes.unclear(f"{shortened(value)!r} is no {default.removesuffix('Node')}", inner.where)
        return None

    def _layers_and_devices(self, value: Any) -> tuple[tuple[int, int] | None, list[Place] | None]:
        """The layers and devices of a stage that is written as its layers, or as a pair of both."""
        if is_list(value) and len(value) == 2 and not isinstance(value[0], int):
            span, devices = span_of(value[0]), self.claims.places_of(value[1])
            if span is not None and devices is not None:
                return span, devices
        return span_of(value), None

    def _read_object(self, name: str | None, value: dict[str, Any], default: str | None, scope: Scope) -> Item:
        item, unknown_type = new_item(name, value, default, scope)
        if unknown_type is not None:
            self.claims.notes.unclear(f"a node of the type {shortened(unknown_type)!r}", scope.where)
        operator = item.type if item.type in OPERATORS else None
        inside = scope.but(item=item, phase=item.phase, operator=operator)
        for key, member in value.items():
            if member is not None:
                self._field(item, str(key), member, inside)
        complete(item)
        return item

    def _field(self, item: Item, key: str, value: Any, scope: Scope) -> None:
        concept, phase, inner = concept_of(key), phase_of(key), scope.inside(key)
        if concept in ("id", "type", "phase", "aside") or set_field(item, key, concept, value, self.claims.places_of):
            return
        if concept == "parent" and (name := _only(value)) is not None:
            item.parent_name = name
        elif phase is not None and concept is None and is_object(value):
            child = self._read_object(key, value, "PhaseNode", inner.but(phase=phase))
            child.type, child.phase = "PhaseNode", phase
            self._attach(child, inner)
        elif phase is not None and concept is None:
            self.claims.walk({key: value}, inner)
        elif self.takes(concept, value, inner):
            return
        elif item.type == "ReplicaNode" and concept == "replicas" and (devices := self._group(value)) is not None:
            item.devices = item.devices or devices  # its workers
        elif concept == "tp" and (devices := self._group(value)) is not None:
            item.devices = item.devices or devices
            self.claims.facts.claim(f"{item.phase or 'any'}.tp", len(devices), inner.where, weak=True)
        elif concept in DEGREE_NAMES:
            if states_degree(item, concept) and not is_list(value):
                self.claims.degree(str(concept), value, inner)
        elif concept is None and is_nested(value) and (kind := node_type_of(key)) is not None:
            self.take_list(kind, value if is_list(value) and holds_objects(value) else {key: value}, inner)
        else:
            # Statements on the whole plan inside a node do not belong to one of its operators.
            outside = inner.but(operator=None) if item.type in ("RequestNode", None) else inner
            self.claims.walk({key: value}, outside)

    def _group(self, value: Any) -> list[Place] | None:
        """Several devices of one group, from a list or a text; `None` for a number of members."""
        devices = self.claims.places_of(value) if is_list(value) or isinstance(value, str) else None
        return devices if devices is not None and len(devices) > 1 else None


def _phase_named(members: dict[str, Any]) -> str | None:
    """The only phase that texts among the members name; `None` if there are none or two."""
    texts = [value for value in list(members.values())[:40] if isinstance(value, str) and len(value) <= 60]
    named = set(filter(None, map(phase_of, texts)))
    return named.pop() if len(named) == 1 else None


def _only(value: Any) -> str | None:
    """The only name that `value` is or holds."""
    items = value if is_list(value) else [value]
    return str(items[0]) if len(items) == 1 and isinstance(items[0], str | int) else None
