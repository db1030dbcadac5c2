"""Where the ranks of a replica stand as an engine numbers them, and which of them each node starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from ..engines.engine import RankOrder
from .elements import parse_device


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The GPUs that a replica has on one node, in the order of its ranks."""

    node: str
    gpus: tuple[int, ...]


def in_rank_order(stages: Sequence[Sequence[str]], groups: int, order: RankOrder) -> tuple[str, ...]:
    """The devices of all stages in the order of ranks: stage by stage, or attention group by group and in each so."""
    if order == "stages":
        return tuple(chain.from_iterable(stages))
    return tuple(
        device
        for group in range(groups)
        for stage in stages
        for device in stage[group * (len(stage) // groups) : (group + 1) * (len(stage) // groups)]
    )


def in_stages(devices: Sequence[str], stages: int, groups: int, order: RankOrder) -> list[tuple[str, ...]]:
    """`devices` dealt out to stages so that the engine's ranks take them in their order.

    Those of one node alone are taken stage by stage: its processes may see them in any order.
    """
    width = len(devices) // stages
    if order == "stages" or len({device.partition(".")[0] for device in devices}) == 1:
        return [tuple(devices[stage * width : (stage + 1) * width]) for stage in range(stages)]
    ranks = width // groups
    starts = [[(group * stages + stage) * ranks for group in range(groups)] for stage in range(stages)]
    return [tuple(device for start in row for device in devices[start : start + ranks]) for row in starts]


def node_shares(ranks: Sequence[str]) -> tuple[NodeShare, ...]:
    """`ranks` as far as they follow each other on one node: a node stands twice where its ranks do not."""
    places = [place for place in map(parse_device, ranks) if place is not None]
    return tuple(
        NodeShare(f"n{node}", tuple(gpu for _, gpu in run)) for node, run in groupby(places, key=lambda place: place[0])
    )
