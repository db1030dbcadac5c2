"""The devices of a cluster: handed out node by node, ordered by an engine's ranks, written for people (`n0–3.g0–7`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from msgspec import Struct

from ..engines.engine import RankOrder
from .elements import parse_device, places_of


class NodeShare(Struct, frozen=True):
    """The GPUs that a replica has on one node, in the order of its ranks."""

    node: str
    gpus: tuple[int, ...]


def in_rank_order(stages: Sequence[Sequence[str]], groups: int, order: RankOrder) -> tuple[str, ...]:
    """The devices of all stages in the order of ranks: by stage, or by attention group and in each by stage."""
    if order == "stages":
        return tuple(chain.from_iterable(stages))
    return tuple(
        device
        for group in range(groups)
        for stage in stages
        for device in stage[group * (len(stage) // groups) : (group + 1) * (len(stage) // groups)]
    )


def in_stages(devices: Sequence[str], stages: int, groups: int, order: RankOrder) -> list[tuple[str, ...]]:
    """`devices` divided among stages so that the engine's ranks take them in their order.

    Devices of a single node are divided stage by stage: its processes may see them in any order.
    """
    width = len(devices) // stages
    if order == "stages" or len({device.partition(".")[0] for device in devices}) == 1:
        return [tuple(devices[stage * width : (stage + 1) * width]) for stage in range(stages)]
    ranks = width // groups
    starts = [[(group * stages + stage) * ranks for group in range(groups)] for stage in range(stages)]
    return [tuple(device for start in row for device in devices[start : start + ranks]) for row in starts]


def node_shares(ranks: Sequence[str]) -> tuple[NodeShare, ...]:
    """`ranks` in runs on one node; a node whose ranks are not consecutive occurs several times."""
    runs = groupby(places_of(ranks), key=lambda place: place[0])
    return tuple(NodeShare(f"n{node}", tuple(gpu for _, gpu in run)) for node, run in runs)


class Inventory:
    """Hands out devices node by node."""

    def __init__(self, nodes: int, gpus_per_node: int) -> None:
        self.gpus_per_node = gpus_per_node
        self.total = nodes * gpus_per_node
        self.next = 0

    def skip_to_room(self, width: int) -> None:
        """Go on to the next node if `width` devices in a row would span this one and the next."""
        used_in_node = self.next % self.gpus_per_node
        if used_in_node and used_in_node + width > self.gpus_per_node:
            self.next += self.gpus_per_node - used_in_node

    def take(self, width: int, *, align: bool) -> list[str] | None:
        """`width` devices in a row; `None` if too few are left. Aligned: inside one node, or from a node's start."""
        if align:
            self.skip_to_room(width)
        start = self.next
        if start + width > self.total:
            return None
        self.next = start + width
        return [f"n{i // self.gpus_per_node}.g{i % self.gpus_per_node}" for i in range(start, start + width)]


_MAX_RUNS = 6


def devices_text(names: Iterable[str]) -> str:
    """`names` with runs of GPUs and of nodes folded; beyond six runs only their number."""
    by_node: dict[int, list[int]] = {}
    others: list[str] = []
    for name in dict.fromkeys(names):
        place = parse_device(name)
        if place is None:
            others.append(name)
        else:
            by_node.setdefault(place[0], []).append(place[1])
    by_gpus: dict[str, list[int]] = {}
    for node in sorted(by_node):
        by_gpus.setdefault(runs_text(by_node[node], ""), []).append(node)
    runs = [f"n{nodes}.g{gpus}" for gpus, members in by_gpus.items() for nodes in runs_text(members, "").split(",")]
    runs += others
    shown = ", ".join(runs[:_MAX_RUNS])
    return shown if len(runs) <= _MAX_RUNS else f"{shown} and {len(runs) - _MAX_RUNS} more"


def runs_text(numbers: Iterable[int], separator_after: str = " ") -> str:
    """Whole numbers with runs folded: `0–7`, `0–3,8–11`."""
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs_of(set(numbers))]
    return f",{separator_after}".join(texts)


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Whole numbers in order, as the first and the last of each run; one that occurs again begins another run."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
