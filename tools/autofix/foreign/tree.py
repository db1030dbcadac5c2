"""Puts the nodes of a foreign proposal into one tree before they are placed: parents by name, layers by count."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise

from .notes import Notes
from .scope import Item, all_below


def rooted(items: list[Item], layers: int | None, notes: Notes) -> list[Item]:
    """The items without a parent, once those that name theirs hang below it and counted layers have become ranges."""
    everything = list(all_below(items))
    by_name: dict[str, list[Item]] = {}
    for item in everything:
        by_name.setdefault(item.name or "", []).append(item)
    for item in everything:
        if item.parent is not None or item.parent_name is None:
            continue
        named = by_name.get(item.parent_name, [])
        same = [other for other in named if other.phase == item.phase] if len(named) > 1 else named
        if len(same) == 1 and not _is_below(same[0], item):
            same[0].adopt(item)
        else:
            notes.unclear(f"parent {item.parent_name[:60]!r} of {item.name or 'a node'}", item.where)
    roots = [item for item in items if item.parent is None]
    for siblings in (roots, *(item.children for item in everything)):
        for phase in dict.fromkeys(item.phase for item in siblings):
            stages = [item for item in siblings if item.type == "PipelineStageNode" and item.phase == phase]
            if layers is not None and stages:
                _count_layers(stages, layers, notes)
    return roots


def _is_below(item: Item, other: Item) -> bool:
    """Whether `item` is `other` or hangs below it."""
    while item is not other:
        if item.parent is None:
            return False
        item = item.parent
    return True


def _count_layers(stages: list[Item], layers: int, notes: Notes) -> None:
    """Give stages inclusive ranges from 0, where their counts or ranges can mean all layers in one way only."""
    counts = [stage.layer_count or 0 for stage in stages]
    if not any(stage.layers for stage in stages) and min(counts) > 0 and sum(counts) == layers:
        for stage, count, end in zip(stages, counts, accumulate(counts), strict=True):
            stage.layers = (end - count, end - 1)
    spans = sorted(stage.layers for stage in stages if stage.layers is not None)
    if len(spans) < len(stages) or spans[-1][1] != layers:
        return
    steps = {after[0] - before[1] for before, after in pairwise(spans)}
    if spans[0][0] == 1 and steps <= {1}:
        notes.assumed(f"layers 1 to {layers} are counted from 1", stages[0].where)
    elif spans[0][0] == 0 and steps <= {0}:
        notes.assumed("the last layer of each range is not part of it", stages[0].where)
    else:
        return
    for stage in stages:
        if stage.layers is not None:
            stage.layers = (stage.layers[0] - spans[0][0], stage.layers[1] - 1)


def sides_apart(items: list[Item], replicas: dict[str, int]) -> list[Item]:
    """The items, each of a phase that has replicas of its own in one of these; devices of several are dealt out evenly.

    `replicas` says how many each phase has.
    """
    placed: list[Item] = []
    for item in items:
        if item.phase not in replicas or item.replica is not None:
            placed.append(item)
            continue
        count, devices = replicas[item.phase], item.devices or []
        first = 0 if item.phase == next(iter(replicas)) else sum(replicas.values()) - count
        share = len(devices) // count
        if item.type != "PhaseNode" or item.children or not devices or share * count < len(devices):
            item.replica = first
            placed.append(item)
            continue
        parts = [devices[at * share : (at + 1) * share] for at in range(count)]
        placed += [replace(item, replica=first + at, devices=part) for at, part in enumerate(parts)]
    return placed


def devices_from_zero(items: list[Item], total: int, notes: Notes) -> None:
    """Number GPUs from 0 where their numbers run from 1 to the `total` that there is."""
    everything = list(all_below(items))
    numbers = {place for item in everything for place in item.devices or () if isinstance(place, int)}
    if not numbers or min(numbers) != 1 or max(numbers) != total:
        return
    notes.assumed(f"GPUs 1 to {total} are counted from 1", "/")
    for item in everything:
        item.devices = item.devices and [place - 1 if isinstance(place, int) else place for place in item.devices]
