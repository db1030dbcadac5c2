"""Writes out replicas that are `like` another one: copies of its descendants and the edges among them.

Ids become `<new replica>/<old id>` and devices move by `device_offset`. What cannot be copied is reported as a fault
(rule ST001) and kept as it is. Nothing is read twice, and nothing at all once the document has grown too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..checkpoint import checked
from .element_reader import SchemaFault
from .elements import as_int, as_list, as_mapping, as_str, parse_device
from .plan_size import Room, size_of


class _Body(Struct, frozen=True):
    """The descendants of a replica, the edges among them, and the number of values in a copy."""

    nodes: tuple[Mapping[str, Any], ...]
    edges: tuple[Mapping[str, Any], ...]
    size: int


class ReplicaCopier:
    """Writes out the copies of one document; `faults` holds what could not be copied."""

    def __init__(self, document: Mapping[str, Any], room: Room) -> None:
        self.faults: list[SchemaFault] = []
        self._nodes = [as_mapping(item) for item in document["nodes"]]
        self._written: list[Any] = list(document["nodes"])
        self._edges = [as_mapping(item) for item in as_list(document.get("edges"))]
        self._all_edges: list[Any] = list(as_list(document.get("edges")))
        self._gpus_per_node = as_int(as_mapping(document.get("hardware")).get("gpus_per_node"))
        self._room = room
        self._is_full = False
        self._children: dict[str, list[Mapping[str, Any]]] = {}
        # Replicas with a descendant that is itself `like` another.
        self._holding_copies: set[str] = set()
        for node in self._nodes:
            parent = as_str(node.get("parent"))
            if parent is not None:
                self._children.setdefault(parent, []).append(node)
                if "like" in node:
                    self._holding_copies.add(parent)
        self._edges_from: dict[str, list[int]] = {}
        for position, edge in enumerate(self._edges):
            source = as_str(edge.get("source"))
            if source is not None:
                self._edges_from.setdefault(source, []).append(position)
        self._bodies: dict[str, _Body] = {}

    def run(self) -> tuple[list[Any], list[Any]]:
        """Nodes and edges with every copy after its replica; without copies if these are too large together."""
        nodes: list[Any] = []
        edges = self._all_edges
        bodies = self._bodies_by_position()
        for position, node in enumerate(self._nodes):
            if "like" not in node:
                nodes.append(self._written[position])
                continue
            nodes.append({key: value for key, value in node.items() if key not in ("like", "device_offset")})
            body = bodies.get(position)
            if body is None:
                continue
            nodes.extend(self._copied(body, node))
            edges.extend(
                {**edge, "source": f"{node['id']}/{edge['source']}", "target": f"{node['id']}/{edge['target']}"}
                for edge in checked(body.edges)
            )
        return nodes, edges

    def _bodies_by_position(self) -> dict[int, _Body]:
        """What to copy below each replica that is like another, by its position; notes faults of the others."""
        bodies: dict[int, _Body] = {}
        too_large: list[int] = []
        for position, node in enumerate(self._nodes):
            problem = self._problem(node) if "like" in node else None
            if problem is not None:
                self.faults.append(SchemaFault(f"/nodes/{position}/{problem[0]}", problem[1], node.get(problem[0])))
            elif "like" in node:
                body = self._body(str(node["like"]), str(node["id"]))
                if body is None:
                    too_large.append(position)
                else:
                    bodies[position] = body
        if not too_large:
            return bodies
        # A part of the copies is no useful plan, and as much work as all of them.
        for position in sorted({*bodies, *too_large}):
            fault = "like makes the document too large"
            pattern = self._nodes[position]["like"]
            self.faults.append(SchemaFault(f"/nodes/{position}/like", fault, pattern, str(self._room)))
        return {}

    def _problem(self, node: Mapping[str, Any]) -> tuple[str, str] | None:
        """The field that prevents copying, and why; `None` if nothing does."""
        if node.get("type") != "ReplicaNode":
            return "like", "only a ReplicaNode may be like another"
        pattern = as_str(node.get("like"))
        if as_str(node.get("id")) is None or pattern is None or pattern not in self._children:
            return "like", "names no replica that is written out"
        if pattern in self._holding_copies or pattern == node["id"]:
            return "like", "names a replica that is itself written as like another"
        if "device_offset" in node and as_int(node["device_offset"]) is None:
            return "device_offset", "is not a whole number"
        if self._gpus_per_node is None or self._gpus_per_node < 1:
            return "device_offset", "needs hardware.gpus_per_node"
        return None

    def _body(self, pattern: str, name: str) -> _Body | None:
        """The body of `pattern`; `None` if one more copy, named `name`, makes the document too large."""
        if self._is_full:
            return None
        if pattern not in self._bodies:
            self._bodies[pattern] = self._read_body(pattern)
        body = self._bodies[pattern]
        size = body.size + size_of(name) * (len(body.nodes) + len(body.edges))
        if self._room.take(nodes=len(body.nodes), edges=len(body.edges), values=size):
            return body
        self._is_full = True
        return None

    def _read_body(self, pattern: str) -> _Body:
        nodes: list[Mapping[str, Any]] = []
        seen = {pattern}
        queue = [pattern]
        for name in queue:
            for child in self._children.get(name, ()):
                nodes.append(child)
                child_id = as_str(child.get("id"))
                if child_id is not None and child_id not in seen:
                    seen.add(child_id)
                    queue.append(child_id)
            # Stop reading: this many are refused already.
            if len(nodes) > self._room.nodes:
                break
        inside = {name for name in map(as_str, (node.get("id") for node in nodes)) if name is not None}
        positions = sorted(position for name in inside for position in self._edges_from.get(name, ()))
        edges = [self._edges[position] for position in positions]
        edges = [edge for edge in edges if as_str(edge.get("target")) in inside]
        return _Body(tuple(nodes), tuple(edges), sum(map(size_of, nodes)) + sum(map(size_of, edges)))

    def _copied(self, body: _Body, replica: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        pattern, name, offset = replica["like"], replica["id"], as_int(replica.get("device_offset")) or 0
        for node in checked(body.nodes):
            copy = dict(node)
            copy["id"] = f"{name}/{node.get('id')}"
            copy["parent"] = name if node.get("parent") == pattern else f"{name}/{node.get('parent')}"
            if "devices" in node:
                copy["devices"] = [self._moved(device, offset) for device in as_list(node["devices"])]
            yield copy

    def _moved(self, device: object, offset: int) -> object:
        place = parse_device(device) if isinstance(device, str) else None
        if place is None:
            return device
        gpus = self._gpus_per_node or 1
        flat = place[0] * gpus + place[1] + offset
        return f"n{flat // gpus}.g{flat % gpus}" if flat >= 0 else device
