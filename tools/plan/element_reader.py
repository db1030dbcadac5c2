"""Reads the nodes and edges of a document, and in the same pass whether each is of the format.

Nodes repeat one another: what a node says beside its id, parent and devices is read once for all nodes that say the
same, so that the models have to judge it once. It trusts nothing on the way: two nodes are taken for the same only
where every value has the same type and the same value. It never raises and judges nothing itself.
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
# Marshalled in this version, equal bytes mean values of equal types: later ones write references to what is repeated.
_MARSHAL_VERSION = 2
# `source`, `target` and `type`.
_PLAIN_EDGE_FIELDS = 3


def _read_rank(value: object) -> Mapping[str, int]:
    if not value or not isinstance(value, dict):
        return _NO_RANK
    return {key: place for key, place in as_mapping(cast("object", value)).items() if type(place) is int}


def _read_expert_ranges(value: object) -> tuple[tuple[int, int], ...] | None:
    """The inclusive ranges that a list of ids and ranges names, as listed; `None` where unreadable."""
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
        example=raw,
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
    )


class ElementReader:
    """Reads the elements of one document; what says the same is one object."""

    def __init__(self) -> None:
        self._node_contents: dict[bytes, NodeContent] = {}
        self._edge_contents: dict[object, EdgeContent] = {}
        self._devices: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
        # Whether an element was met that only the models can judge, or that is no node or edge at all.
        self._is_doubtful = False

    def examples(self) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] | None:
        """Nodes and edges of which the document is of the format exactly where all of these are.

        `None` where an element was met that only the models can judge, each by itself.
        """
        if self._is_doubtful or not all(parse_device(device) for devices in self._devices for device in devices):
            return None
        return (
            [content.example for content in self._node_contents.values()],
            [content.example for content in self._edge_contents.values()],
        )

    def nodes(self, items: Iterable[object]) -> list[NodeView]:
        """The nodes of a document in order, less what is no object with an id."""
        found: list[NodeView] = []
        # One loop and few calls: this is done for every node of a document.
        for position, item in enumerate(checked(items)):
            raw = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            own = raw.copy()
            name, parent, devices = own.pop("id", None), own.pop("parent", None), own.get("devices")
            if not isinstance(name, str):
                self._is_doubtful = True
                continue
            if parent.__class__ is not str and (parent is not None or "parent" not in raw):
                self._is_doubtful = True
                parent = parent if isinstance(parent, str) else None
            named = () if devices is None else self._device_list(devices)
            if devices is not None:
                # Lists of devices are judged by themselves; the format also asks whether there are none, one or more.
                own["devices"] = len(named) if len(named) < 2 else 2
            content = self._node_content(own, raw)
            found.append(
                NodeView(
                    position, name, content.type, parent, raw, named, content.rank, content.is_collective, content,
                    [], [], [],
                )
            )  # fmt: skip
        return found

    def _node_content(self, own: dict[str, Any], raw: Mapping[str, Any]) -> NodeContent:
        """The content of the node `raw`, of which `own` is what others may say too."""
        try:
            key = marshal.dumps(own, _MARSHAL_VERSION)
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
        """The edges of a document in order, hung onto their ends, less what names no two ends."""
        found: list[EdgeView] = []
        for position, item in enumerate(checked(items)):
            raw = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            source_id, target_id = raw.get("source"), raw.get("target")
            if not isinstance(source_id, str) or not isinstance(target_id, str):
                self._is_doubtful = True
                continue
            content = self._edge_content(raw)
            source, target = by_id.get(source_id), by_id.get(target_id)
            edge = EdgeView(position, source_id, target_id, content.type, raw, source, target, content)
            found.append(edge)
            if source is not None:
                source.edges_out.append(edge)
            if target is not None:
                target.edges_in.append(edge)
        return found

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
    """What `raw` says beside its ends, `None` where that has no key."""
    edge_type, carries = raw.get("type"), raw.get("carries")
    # With both ends and no more members than these, there is no room for another field.
    if edge_type.__class__ is str:
        if carries is None and len(raw) == _PLAIN_EDGE_FIELDS:
            return edge_type
        if carries.__class__ is str and len(raw) == _PLAIN_EDGE_FIELDS + 1:
            return edge_type, carries
    own = raw.copy()
    del own["source"], own["target"]
    try:
        return marshal.dumps(own, _MARSHAL_VERSION)
    except ValueError:
        return None


class SchemaFault(Struct, frozen=True):
    """One place at which a document is not of the format: rule ST001 in the making."""

    path: str
    message: str
    value: Any = None
    expected: Any = None
