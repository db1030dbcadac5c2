"""Fields of one node of a foreign proposal that are read alike wherever the node stands: place, experts, rank, name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .figures import PlacesOf, experts_of, span_of, whole_number
from .lexicon import words_of
from .scope import Item
from .shapes import is_nested, is_object

_NUMBER_AT_END = re.compile(r"(\d{1,6})$")
_RANK_IN_NAME = re.compile(r"(?<![a-z])(tp|sp)[ _\-.]?(?:rank[ _\-.]?)?(\d{1,5})$", re.IGNORECASE)


def members_of(value: Any) -> Iterator[tuple[str | None, Any]]:
    """The members of an object by name, or of a list without names."""
    if is_object(value):
        yield from ((str(key), member) for key, member in value.items())
    else:
        yield from ((None, member) for member in value)


def holds_objects(value: dict[str, Any] | list[Any]) -> bool:
    """Whether `value` lists objects, or is made of nothing else."""
    if is_object(value):
        return bool(value) and all(is_object(member) for member in value.values())
    return any(is_object(item) for item in value)


def place_field(item: Item, concept: str | None, value: Any, places_of: PlacesOf) -> bool:
    """Layers, devices, experts: whether the field was one of these and could be read."""
    if concept == "layers":
        span = span_of(value)
        if span is None and type(value) is int and item.type in ("PipelineStageNode", "LayerBlockNode"):
            item.layer_count = value
            return True
        item.layers = span or item.layers
        return span is not None
    if concept in ("layers_first", "layers_last") and (number := whole_number(value)) is not None:
        item.own[str(concept)] = number
        return True
    if concept == "layer_count" and item.type in ("PipelineStageNode", "LayerBlockNode"):
        item.layer_count = whole_number(value)
        return True
    if concept in ("devices", "accelerator", "gpu_total", "hardware"):
        if concept == "gpu_total" and type(value) is int:
            return item.type not in ("RequestNode", None)  # a count of devices that are not named
        devices = places_of(value)
        item.devices = devices or item.devices
        return devices is not None
    if concept == "experts" and not _is_objects(value):
        item.experts = experts_of(value)
        return item.experts is not None
    return False


def rank_field(item: Item, key: str, concept: str | None, value: Any) -> bool:
    """Rank, index, role: whether the field was one of these and could be read."""
    words = words_of(key)
    shard_rank = item.type == "ShardNode" and words in ("tp", "sp")
    if (shard_rank or words in ("tp rank", "sp rank")) and (number := whole_number(value)) is not None:
        ranks = item.rank if is_object(item.rank) else {}
        item.rank = {**ranks, words[:2]: number}
        return True
    if concept == "rank" and is_object(value):
        ranks = {str(name).lower(): number for name, number in value.items()}
        item.rank = {name: number for name, number in ranks.items() if type(number) is int and len(name) <= 5}
        return True
    if concept == "rank" and item.type == "ShardNode" and (number := whole_number(value)) is not None:
        item.rank = number if item.rank is None else item.rank
        return True
    if concept == "index" and (number := whole_number(value)) is not None:
        item.index = number
        return True
    if concept == "role" and isinstance(value, str):
        item.role = value[:60]
        return True
    return False


def finish(item: Item) -> None:
    """What follows from two fields together, or from the name."""
    first, last = item.own.pop("layers_first", None), item.own.pop("layers_last", None)
    if item.layers is None and first is not None and last is not None and first <= last:
        item.layers = (first, last)
    if item.index is None and item.type in ("PipelineStageNode", "ReplicaNode") and item.name:
        match = _NUMBER_AT_END.search(item.name)
        item.index = int(match[1]) if match and item.parent_name is not None else None
    if item.rank is None and item.type == "ShardNode" and item.name and (match := _RANK_IN_NAME.search(item.name)):
        item.rank = {match[1].lower(): int(match[2])}


def _is_objects(value: Any) -> bool:
    return is_nested(value) and holds_objects(value)
