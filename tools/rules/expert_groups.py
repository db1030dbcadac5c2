"""The expert groups of MoE operators: the experts that they host, and their devices. Nothing here judges a plan.

Works on ranges of ids, whose cost does not depend on the number of experts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..plan.view import NodeView, PlanView, devices_of

# Runs of ids that a message names.
_MOST_SHOWN = 8


class Run(Struct, frozen=True):
    """Consecutive expert ids, both ends included, that are listed equally often."""

    first: int
    last: int
    times: int = 1


def runs_of(ranges: Iterable[tuple[int, int]]) -> list[Run]:
    """The ids in `ranges` as sorted runs, with the number of times each occurs."""
    ranges = tuple(ranges)
    if len(ranges) == 1:
        return [Run(*ranges[0])]
    changes: Counter[int] = Counter()
    for first, last in ranges:
        changes[first] += 1
        changes[last + 1] -= 1
    runs: list[Run] = []
    times, start = 0, 0
    for place in sorted(place for place, change in changes.items() if change):
        if times:
            runs.append(Run(start, place - 1, times))
        times, start = times + changes[place], place
    return runs


def gaps(runs: Sequence[Run], total: int) -> list[Run]:
    """The ids from 0 to `total` - 1 that are in none of `runs`."""
    missing: list[Run] = []
    free = 0
    for run in (*runs, Run(total, total)):
        missing.append(Run(free, min(run.first, total) - 1))
        free = max(free, run.last + 1)
    return [run for run in missing if run.first <= run.last]


def beyond(runs: Sequence[Run], total: int) -> list[Run]:
    """The ids of `runs` outside 0 to `total` - 1."""
    below = [Run(run.first, min(run.last, -1)) for run in runs if run.first < 0]
    return below + [Run(max(run.first, total), run.last) for run in runs if run.last >= total]


def listed(operator: NodeView) -> list[Run]:
    """The expert ids that the groups of `operator` list, as runs."""
    groups = operator.children_of_type("ExpertNode")
    return runs_of(item for group in groups for item in group.expert_ranges or ())


def copies(operator: NodeView) -> int:
    """The number of groups that host each expert, if it is the same for all experts; else 0."""
    groups = operator.children_of_type("ExpertNode")
    runs_by_group = [runs_of(group.expert_ranges or ()) for group in groups]
    times = {run.times for run in runs_of((run.first, run.last) for runs in runs_by_group for run in runs)}
    return times.pop() if len(times) == 1 else 0


def ids_text(runs: Sequence[Run]) -> str:
    """Expert ids for a message."""
    shown = [str(run.first) if run.first == run.last else f"{run.first}–{run.last}" for run in runs[:_MOST_SHOWN]]
    return ", ".join(shown) + (", …" if len(runs) > _MOST_SHOWN else "")


def group_excess(view: PlanView, operator: NodeView, devices: frozenset[str]) -> int:
    """The devices that the groups of `operator` need beyond the stage's `devices`; negative if they leave some unused.

    0 if another rule reports the fault: experts split without the relaxation (TP006), a MoE operator that as a whole
    runs on a part of the stage (GP003).
    """
    groups = operator.children_of_type("ExpertNode")
    split = "tp_in_expert" not in view.relaxations and any(group.children_of_type("ShardNode") for group in groups)
    excess = len(groups) * group_width(view, groups) - len(devices)
    if not devices or split or not excess:
        return 0
    return 0 if groups and _is_narrow_throughout(operator, groups, devices) else excess


def _is_narrow_throughout(operator: NodeView, groups: list[NodeView], devices: frozenset[str]) -> bool:
    """Whether router, exchanges and experts all run on the same part of the stage's devices."""
    used = devices_of(groups)
    parts = [child for child in operator.children if child.is_collective or child.type == "RouterNode"]
    return bool(parts) and used < devices and all(frozenset(part.devices) == used for part in parts)


def empty_groups(operator: NodeView) -> list[NodeView]:
    """The groups of `operator` that list no expert."""
    return [group for group in operator.children_of_type("ExpertNode") if group.expert_ranges == ()]


def group_width(view: PlanView, groups: list[NodeView]) -> int:
    """Devices of an expert group: 1; under `tp_in_expert` the number of shards that most groups have."""
    if "tp_in_expert" not in view.relaxations:
        return 1
    widths = Counter(len(group.children_of_type("ShardNode")) or len(set(group.devices)) for group in groups)
    return max(widths, key=lambda size: (widths[size], size), default=1) or 1
