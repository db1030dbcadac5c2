"""Reads the nodes and edges of a document, and collects what has to be validated, in one pass.

Nodes repeat each other: the fields of a node beside id, parent and devices are read once for all nodes with the same,
so that the models validate them once. Two nodes count as the same only if every value has the same type and value. The
reader never raises and judges nothing itself.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import Struct

from ..checkpoint import checked
from .elements import (
    COLLECTIVE_TYPES,
    EdgeContent,
    EdgeView,
    NodeContent,
    NodeView,
    as_int,
    as_list,
    as_mapping,
    as_str,
    parse_device,
    read_layers,
)

_NO_RANK: Mapping[str, int] = {}
# In this version of marshal equal bytes mean equal values and types; later ones write references to repeated objects.
_MARSHAL_VERSION = 2
# `source`, `target` and `type`.
_PLAIN_EDGE_FIELDS = 3


def _read_rank(value: object) -> Mapping[str, int]:
    if not value or not isinstance(value, dict):
        return _NO_RANK
    return {key: place for key, place in as_mapping(cast("object", value)).items() if type(place) is int}


def _read_expert_ranges(value: object) -> tuple[tuple[int, int], ...] | None:
    """The inclusive ranges of a list of ids and ranges, as listed; `None` if unreadable."""
    if not isinstance(value, list | tuple):
        return None
    ranges: list[tuple[int, int]] = []
    for item in as_list(cast("object", value)):
        single = as_int(item)
        bounds = read_layers(item) if single is None else (single, single)
        if bounds is None or bounds[1] < bounds[0]:
            return None
        ranges.append(bounds)
    return tuple(ranges)


def _read_content(raw: Mapping[str, Any]) -> NodeContent:
    node_type = as_str(raw.get("type")) or ""
    period = as_int(raw.get("period", 1))
    return NodeContent(
        type=node_type,
        is_collective=node_type in COLLECTIVE_TYPES,
        index=as_int(raw.get("index")),
        layers=read_layers(raw["layers"]) if "layers" in raw else None,
        rank=_read_rank(raw.get("rank")),
        expert_ranges=_read_expert_ranges(raw["experts"]) if "experts" in raw else None,
        period=period if period is not None and period >= 1 else 1,
        offset=as_int(raw.get("offset", 0)) or 0,
        kind=as_str(raw.get("kind")),
        role=as_str(raw.get("role")),
        example=raw,
    )


class ElementReader:
    """Reads the elements of one document; elements with the same content share one object."""

    def __init__(self) -> None:
        self._node_contents: dict[bytes, NodeContent] = {}
        self._edge_contents: dict[object, EdgeContent] = {}
        self._devices: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
        # Whether there is an element that only the models can judge, or that is no node or edge.
        self._is_doubtful = False

    def examples(self) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] | None:
        """Nodes and edges that stand for all: the document's elements are valid exactly if these are.

        `None` if there is an element that the models have to judge by itself.
        """
        if self._is_doubtful or not all(parse_device(device) for devices in self._devices for device in devices):
            return None
        return (
            [content.example for content in self._node_contents.values()],
            [content.example for content in self._edge_contents.values()],
        )

    def nodes(self, items: Iterable[object]) -> list[NodeView]:
        """The nodes of a document in order, without entries that are no object with an id."""
        views: list[NodeView] = []
        # One loop and few calls, since it runs for every node of a document.
        for position, item in enumerate(checked(items)):
            raw = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            shared = raw.copy()
            name, parent, devices = shared.pop("id", None), shared.pop("parent", None), shared.get("devices")
            if not isinstance(name, str):
                self._is_doubtful = True
                continue
            if parent.__class__ is not str and (parent is not None or "parent" not in raw):
                self._is_doubtful = True
                parent = parent if isinstance(parent, str) else None
            named = () if devices is None else self._device_list(devices)
            if devices is not None:
                # Lists of devices are validated separately; the format also depends on whether they have 0, 1 or more.
                shared["devices"] = len(named) if len(named) < 2 else 2
            content = self._node_content(shared, raw)
            views.append(
                NodeView(
                    type=content.type, is_collective=content.is_collective, index=content.index,
                    layers=content.layers, rank=content.rank, expert_ranges=content.expert_ranges,
                    period=content.period, offset=content.offset, kind=content.kind, role=content.role,
                    position=position, id=name, parent_id=parent, raw=raw, devices=named, content=content,
                    children=[], edges_in=[], edges_out=[],
                )
            )  # fmt: skip
        return views

    def _node_content(self, shared: dict[str, Any], raw: Mapping[str, Any]) -> NodeContent:
        """The content of the node `raw`; `shared` are its fields that other nodes may have too."""
        try:
            key = marshal.dumps(shared, _MARSHAL_VERSION)
        except ValueError:
            # Nested too deeply, or of types that JSON does not have.
            self._is_doubtful = True
            return _read_content(raw)
        content = self._node_contents.get(key)
        if content is None:
            content = self._node_contents[key] = _read_content(raw)
        return content

    def _device_list(self, value: object) -> tuple[str, ...]:
        if value.__class__ is list:
            listed = tuple(cast("list[Any]", value))
            try:
                known = self._devices.get(listed)
            except TypeError:
                known = None
            if known is not None:
                return known
        else:
            self._is_doubtful = True
            listed = as_list(value)
        named = tuple([device for device in listed if isinstance(device, str)])
        if len(named) < len(listed):
            self._is_doubtful = True
        return self._devices.setdefault(named, named)

    def edges(self, items: Iterable[object], by_id: Mapping[str, NodeView]) -> list[EdgeView]:
        """The edges of a document in order, added to their nodes, without entries that do not name two ends."""
        edges: list[EdgeView] = []
        for position, item in enumerate(checked(items)):
            raw = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            source_id, target_id = raw.get("source"), raw.get("target")
            if not isinstance(source_id, str) or not isinstance(target_id, str):
                self._is_doubtful = True
                continue
            content = self._edge_content(raw)
            source, target = by_id.get(source_id), by_id.get(target_id)
            edge = EdgeView(
                position=position, source_id=source_id, target_id=target_id, type=content.type,
                carries=content.carries, raw=raw, source=source, target=target, content=content,
            )  # fmt: skip
            edges.append(edge)
            if source is not None:
                source.edges_out.append(edge)
            if target is not None:
                target.edges_in.append(edge)
        return edges

    def _edge_content(self, raw: dict[str, Any]) -> EdgeContent:
        """The content of the edge `raw`, which has both ends."""
        key = _edge_key(raw)
        if key is None:
            self._is_doubtful = True
        content = self._edge_contents.get(key) if key is not None else None
        if content is None:
            content = EdgeContent(raw, as_str(raw.get("type")) or "", as_str(raw.get("carries")))
            if key is not None:
                self._edge_contents[key] = content
        return content


def _edge_key(raw: dict[str, Any]) -> object:
    """A key of an edge's fields beside its ends; `None` if they have none."""
    edge_type, carries = raw.get("type"), raw.get("carries")
    # With both ends and no more members than these, there is no other field.
    if edge_type.__class__ is str:
        if carries is None and len(raw) == _PLAIN_EDGE_FIELDS:
            return edge_type
        if carries.__class__ is str and len(raw) == _PLAIN_EDGE_FIELDS + 1:
            return edge_type, carries
    shared = raw.copy()
    del shared["source"], shared["target"]
    try:
        return marshal.dumps(shared, _MARSHAL_VERSION)
    except ValueError:
        return None


class SchemaFault(Struct, frozen=True):
    """A place at which a document breaks the format, as rule ST001 reports it."""

    path: str
    message: str
    value: Any = None
    expected: Any = None
