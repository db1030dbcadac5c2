"""Puts the nodes of a foreign proposal into one tree before they are placed: parents by name, layers by count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from .notes import Notes
from .scope import Item


def rooted(items: list[Item], layers: int | None, notes: Notes) -> list[Item]:
    """The items without a parent, once those that name theirs hang below it and counted layers have become ranges."""
    everything = list(_all(items))
    by_name: dict[str, list[Item]] = {}
    for item in everything:
        by_name.setdefault(item.name or "", []).append(item)
    for item in everything:
        if item.parent is None and item.parent_name is not None:
            found = by_name.get(item.parent_name, [])
            same = [other for other in found if other.phase == item.phase] if len(found) > 1 else found
            if len(same) == 1 and not _is_below(same[0], item):
                item.parent = same[0]
                same[0].children.append(item)
            else:
                notes.unclear(f"parent {item.parent_name[:60]!r} of {item.name or 'a node'}", item.where)
    roots = [item for item in items if item.parent is None]
    for siblings in (roots, *(item.children for item in everything)):
        _span(siblings, layers)
        _count_from_zero(siblings, layers, notes)
    return roots


def sides_apart(items: list[Item], replicas: dict[str, int]) -> list[Item]:
    """The items, each of a phase that has replicas of its own in one of these; devices of several are dealt out evenly.

    `replicas` says how many each phase has.
    """
    found: list[Item] = []
    for item in items:
        if item.phase not in replicas or item.replica is not None:
            found.append(item)
            continue
        count, devices = replicas[item.phase], item.devices or []
        first = 0 if item.phase == next(iter(replicas)) else sum(replicas.values()) - count
        share = len(devices) // count
        if item.type != "PhaseNode" or item.children or not devices or share * count < len(devices):
            item.replica = first
            found.append(item)
            continue
        parts = [devices[at * share : (at + 1) * share] for at in range(count)]
        found += [replace(item, replica=first + at, devices=part) for at, part in enumerate(parts)]
    return found


def devices_from_zero(items: list[Item], total: int, notes: Notes) -> None:
    """Number GPUs from 0 where their numbers run from 1 to the `total` that there is."""
    named = [item for item in _all(items) if item.devices]
    places = {place for item in named for place in item.devices or () if isinstance(place, int)}
    if not places or min(places) != 1 or max(places) != total:
        return
    notes.assumed(f"GPUs 1 to {total} are counted from 1", "/")
    for item in named:
        item.devices = [place - 1 if isinstance(place, int) else place for place in item.devices or ()]


def _all(items: list[Item]) -> Iterator[Item]:
    waiting = [*items]
    for item in waiting:
        yield item
        waiting.extend(item.children)


def _is_below(item: Item, other: Item) -> bool:
    """Whether `item` is `other` or hangs below it."""
    while item is not other:
        if item.parent is None:
            return False
        item = item.parent
    return True


def _span(siblings: list[Item], layers: int | None) -> None:
    """Ranges for stages that state how many layers they have, where together they have all of the model's."""
    for phase in {item.phase for item in siblings}:
        stages = [item for item in siblings if item.type == "PipelineStageNode" and item.phase == phase]
        counts = [item.layer_count for item in stages]
        if not stages or any(item.layers for item in stages) or layers is None:
            continue
        whole = [count for count in counts if count is not None and count > 0]
        if len(whole) != len(stages) or sum(whole) != layers:
            continue
        first = 0
        for item, count in zip(stages, whole, strict=True):
            item.layers = (first, first + count - 1)
            first += count


def _count_from_zero(siblings: list[Item], layers: int | None, notes: Notes) -> None:
    """Inclusive ranges from 0, where those of the stages fit the model only as counted from 1 or as half open."""
    for phase in {item.phase for item in siblings}:
        stages = [item for item in siblings if item.type == "PipelineStageNode" and item.phase == phase]
        spans = sorted(item.layers for item in stages if item.layers is not None)
        if layers is None or not spans or len(spans) != len(stages):
            continue
        joins = {after[0] - before[1] for before, after in pairwise(spans)}
        if spans[0][0] == 1 and spans[-1][1] == layers and joins <= {1}:
            notes.assumed(f"layers 1 to {layers} are counted from 1", stages[0].where)
            shift = (1, 1)
        elif spans[0][0] == 0 and spans[-1][1] == layers and joins <= {0}:
            notes.assumed("the last layer of each range is not part of it", stages[0].where)
            shift = (0, 1)
        else:
            continue
        for item in stages:
            if item.layers is not None:
                item.layers = (item.layers[0] - shift[0], item.layers[1] - shift[1])
