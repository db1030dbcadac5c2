"""Which expert groups of a MoE operator host which experts, and on how many devices; nothing here judges a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..plan.view import NodeView, PlanView


def hosts_by_expert(operator: NodeView) -> dict[int, list[NodeView]]:
    """The ExpertNodes that host each expert id, one entry for each time that it is listed."""
    hosts: dict[int, list[NodeView]] = {}
    for group in operator.children_of_type("ExpertNode"):
        for expert in group.experts or ():
            hosts.setdefault(expert, []).append(group)
    return hosts


def is_replication(operator: NodeView) -> bool:
    """Whether every expert is hosted by the same number of groups, two or more: EP used to copy, not to distribute."""
    copies = {len({id(group) for group in groups}) for groups in hosts_by_expert(operator).values()}
    return len(copies) == 1 and min(copies) > 1


def group_width(view: PlanView, groups: list[NodeView]) -> int:
    """Devices that an expert group has: one, under `tp_in_expert` as many as most groups have shards."""
    if "tp_in_expert" not in view.relaxations:
        return 1
    widths = Counter(len(group.children_of_type("ShardNode")) or len(set(group.devices)) for group in groups)
    return max(widths, key=lambda size: (widths[size], size), default=1) or 1


def id_runs(ids: Iterable[int], most: int = 8) -> str:
    """Expert ids for a message: runs of them, at most `most` runs."""
    runs: list[list[int]] = []
    for expert in sorted(ids):
        if runs and expert == runs[-1][1] + 1:
            runs[-1][1] = expert
        else:
            runs.append([expert, expert])
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:most]]
    return ", ".join(shown) + (", …" if len(runs) > most else "")
