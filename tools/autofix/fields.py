"""Which fields of a node or an edge differ from what they should say: in meaning, or (`strictly`) in writing.

What only looks different is no difference: devices in another order, a default left out or stated, experts one by one,
an attention kind by another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

from ..plan.document import Carries, Node
from ..plan.view import COLLECTIVE_TYPES, NodeView, as_list, as_mapping
from ..rules.pipeline.ignored_layer_structure import kind_fits
from .freedoms import same_experts

ABSENT: Any = object()
_DEFAULTS: Mapping[str, Any] = {"period": 1, "offset": 0}
# Nodes whose devices are a set: no order among them means anything.
_ON_ALL = COLLECTIVE_TYPES | {"EmbeddingNode", "LMHeadNode", "RouterNode", "KVCacheUpdateNode"}
_CARRIES = frozenset(get_args(Carries))


@lru_cache(maxsize=64)
def fields_of(node_type: str) -> frozenset[str]:
    """The fields that the format has for nodes of a type; none for a type that it does not have."""
    models = get_args(get_args(Node)[0])
    return next(
        (frozenset(model.model_fields) for model in models if model.__name__ == node_type), frozenset[str]()
    )  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal and of one type: 1, 1.0 and true are three."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        mine, theirs = as_list(one), as_list(other)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(one, dict) and isinstance(other, dict):
        own, wanted = as_mapping(one), as_mapping(other)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
        return own.keys() == wanted.keys() and all(same(own[key], wanted[key]) for key in own)
    return type(one) is type(other) and one == other  # pyright: ignore[reportUnknownArgumentType] - raw JSON


def node_differences(node: NodeView, wanted: Mapping[str, Any], *, strictly: bool) -> Iterator[tuple[str, Any]]:
    """Fields of `node` that do not say what `wanted` does, with what they should (`ABSENT`: nothing)."""
    raw = node.raw
    for name, value in wanted.items():
        if name != "id" and not same(raw.get(name, ABSENT), value) and (strictly or not _agrees(node, name, value)):
            yield name, value
    known = fields_of(str(wanted["type"]))
    for name in raw:
        if name in wanted or (name in known and _means_nothing(name, raw[name], node)):
            continue
        yield name, ABSENT


def _means_nothing(name: str, value: Any, node: NodeView) -> bool:
    """Whether a field that the reference leaves out says what it means where it is left out."""
    if name == "rank":
        return isinstance(value, dict) and not any(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - raw JSON
    if name in _DEFAULTS:
        return same(value, _DEFAULTS[name])
    # What decode states of its steps says nothing in prefill.
    return value is None and node.type == "PhaseNode"


def _agrees(node: NodeView, name: str, value: Any) -> bool:
    """Whether the field says in its own way what `value` does."""
    raw = node.raw
    if name == "devices" and node.type in _ON_ALL:
        listed = raw.get("devices")
        return isinstance(listed, list) and len(listed) == len(node.devices) and sorted(node.devices) == sorted(value)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
    if name == "rank":
        stated = raw.get("rank", {})
        return isinstance(stated, dict) and same(_non_zero(stated), _non_zero(value))  # pyright: ignore[reportUnknownArgumentType] - raw JSON
    if name == "experts":
        return same_experts(node, value)
    if name == "kind":
        return raw.get("kind") is None or (node.kind is not None and kind_fits(node.kind, str(value)))
    return name in _DEFAULTS and same(raw.get(name, _DEFAULTS[name]), value)


def _non_zero(rank: Mapping[str, Any]) -> dict[str, Any]:
    return {name: place for name, place in rank.items() if not same(place, 0) and place is not None}


def edge_differences(raw: Mapping[str, Any], wanted: Mapping[str, Any], *, is_cache: bool) -> Iterator[tuple[str, Any]]:
    """Fields of an edge that do not say what `wanted` does, less what an author may say otherwise."""
    if raw.get("type") != wanted["type"]:
        yield "type", wanted["type"]
    carries = raw.get("carries")
    if carries is not None and (carries not in _CARRIES if isinstance(carries, str) else True):
        yield "carries", wanted.get("carries", ABSENT)
    elif is_cache and carries not in (None, "kv_cache"):
        yield "carries", "kv_cache"
    size = raw.get("bytes")
    if size is not None and (type(size) is not int or not 0 <= size <= 10**18):
        yield "bytes", ABSENT
    for name in raw:
        if name not in ("source", "target", "type", "carries", "bytes"):
            yield name, ABSENT
