"""The shards of an operator: their ranks and devices, and the collectives in which their results meet.

Shared by rules of TP, EP and SP; nothing here judges a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from types import MappingProxyType

from ..plan.degrees import ATTENTION_DEGREES, declared_degree, missing_rank
from ..plan.view import NodeView, PlanView, as_str, devices_of
from .findings import MAX_NAMES, Finding
from .reading import label, relaxed_holders, strange_devices

# Names of a rank; if two could be at fault, the first that is present is reported.
DIMENSIONS = ("tp", "sp", "dp", "kv_sp")
REDUCTIONS = ("AllReduceNode", "ReduceScatterNode", "AllGatherNode")
HOLDERS = frozenset({"AttentionNode", "FFNNode"})
SEQUENCE_ROLES = ("sequence_in", "sequence_out")


def names(nodes: Sequence[NodeView], most: int = MAX_NAMES) -> str:
    """The ids of `nodes` for a message, at most `most` of them."""
    return ", ".join(label(node) for node in nodes[:most]) + (", …" if len(nodes) > most else "")


def tensor_holders(view: PlanView) -> Iterator[NodeView]:
    """Operators that may hold TP shards: attention and FFN, and those that relaxations in force add."""
    yield from view.of_type(*HOLDERS, *relaxed_holders(view))


def rank_groups(operator: NodeView, dimension: str) -> list[list[NodeView]]:
    """The shards of each group along `dimension`: shards with equal ranks in all other dimensions."""
    others = [name for name in DIMENSIONS if name != dimension]
    groups: dict[tuple[int | None, ...], list[NodeView]] = {}
    for shard in operator.children_of_type("ShardNode"):
        rank = shard.rank
        groups.setdefault(tuple([rank.get(name) for name in others]), []).append(shard)
    return list(groups.values())


def tensor_degree(operator: NodeView) -> int:
    """Shards of the largest TP group; 1 if no shard has a `tp` rank."""
    sizes = (sum("tp" in shard.rank for shard in group) for group in rank_groups(operator, "tp"))
    return max(sizes, default=1) or 1


def sequence_degree(operator: NodeView) -> int:
    """The number of distinct `sp` ranks of the operator's shards; 1 if none has one."""
    return len({shard.rank["sp"] for shard in operator.children_of_type("ShardNode") if "sp" in shard.rank}) or 1


def lent_shards(operator: NodeView) -> list[NodeView]:
    """The operator's shards that only lead into others' collectives, and others' that only lead into its (TP004)."""
    sources = (edge.source for node in operator.children if node.is_collective for edge in node.edges_in)
    shards = {node.position: node for node in sources if node is not None and node.type == "ShardNode"}
    shards |= {shard.position: shard for shard in operator.children_of_type("ShardNode")}
    return [shard for shard in shards.values() if (homes := _homes(shard)) and shard.parent not in homes]


def _homes(shard: NodeView) -> list[NodeView | None]:
    """The operators of the collectives that a shard leads into."""
    ends = (edge.target for edge in shard.edges_out)
    return [end.parent for end in ends if end is not None and end.type in REDUCTIONS]


def runs_in_groups(view: PlanView) -> bool:
    """Whether attention runs in data-parallel groups; DP001 reports it without the relaxation."""
    return "attention_dp" in view.relaxations or view.once(
        runs_in_groups, lambda: any("dp" in shard.rank for shard in view.of_type("ShardNode"))
    )


def dimension_at_fault(view: PlanView, operator: NodeView) -> str | None:
    """The dimension of ranks that do not fit together, or along which the only shard is missing; `None` if all fit."""
    phase = operator.ancestor("PhaseNode")
    name = "" if phase is None else as_str(phase.raw.get("phase")) or ""
    declared = {rank: declared_degree(view, name, degree) or 0 for rank, degree in ATTENTION_DEGREES.items()}
    return misranked_dimension(operator, declared) or next(iter(missing_rank(view, operator) or ()), None)


def misranked_dimension(operator: NodeView, declared: Mapping[str, int] = MappingProxyType({})) -> str | None:
    """The dimension whose ranks do not fit together; `None` if the ranks fill a whole grid.

    A wrong rank shows in its own dimension: some ranks then occur more often than others, or leave a gap. If whole
    ranks repeat, it is the first with fewer ranks than `declared`.
    """
    ranks = [shard.rank for shard in operator.children_of_type("ShardNode")]
    if not ranks:
        return None
    sizes: dict[str, int] = {}
    faulty: list[str] = []
    for name in DIMENSIONS:
        if not any(name in rank for rank in ranks):
            continue
        counts = Counter([rank.get(name) for rank in ranks])
        sizes[name] = len(counts)
        if set(counts) != set(range(len(counts))) or len(set(counts.values())) > 1:
            faulty.append(name)
    if faulty:
        return faulty[0]
    places = {tuple([rank.get(name) for name in DIMENSIONS]) for rank in ranks}
    if len(places) == len(ranks) == prod(sizes.values()):
        return None
    short = (name for name, size in sizes.items() if size < declared.get(name, 0))
    return next(chain(short, sizes), "tp")


def undefined_ranks(operator: NodeView) -> bool:
    """Whether a shard is ranked along a dimension that the format does not have (rule CO001)."""
    return any(name not in DIMENSIONS for shard in operator.children_of_type("ShardNode") for name in shard.rank)


def reached(start: NodeView, *through: str) -> list[NodeView]:
    """Sibling collectives (and siblings of the types `through`) that edges from `start` reach, directly or not."""
    nodes: dict[int, NodeView] = {}
    stack = [start]
    while stack:
        for edge in stack.pop().edges_out:
            target = edge.target
            if target is None or target.parent is not start.parent or target.position in nodes:
                continue
            if target.is_collective or target.type in through:
                nodes[target.position] = target
                stack.append(target)
    return list(nodes.values())


def leading_to(ends: Iterable[NodeView], *through: str) -> set[int]:
    """Positions of `ends` and of the siblings that reach them by collectives and nodes of the types `through`."""
    stack = list(ends)
    positions = {node.position for node in stack}
    while stack:
        node = stack.pop()
        for edge in node.edges_in:
            source = edge.source
            if source is None or source.parent is not node.parent or source.position in positions:
                continue
            positions.add(source.position)
            if source.is_collective or source.type in through:
                stack.append(source)
    return positions


def _at_home(parts: Iterable[NodeView]) -> Iterator[NodeView]:
    """The parts without shards on several devices (TP002) or off their expert's devices (EP003)."""
    for part in parts:
        holder = part.parent
        split = holder is not None and holder.type == "ExpertNode"
        if part.type != "ShardNode" or (
            len(part.devices) == 1 and not (split and holder is not None and part.devices[0] not in holder.devices)
        ):
            yield part


def left_out(view: PlanView, collective: NodeView, parts: Sequence[NodeView]) -> list[str]:
    """Devices of the collective's stage that `parts` compute on and that it does not reach.

    A shard on a wrong device is the fault of that shard, not of the collective. Empty if the collective names a device
    twice, or one of another stage, in place of the missing one: a rule on devices (GP004, DP002, TP004) reports that.
    """
    around, reached = collective.ancestor("PipelineStageNode"), set(collective.devices)
    stages = view.once(left_out, lambda: {stage.node.position: stage.settled_devices for stage in view.stages})
    home = frozenset[str]() if around is None else stages.get(around.position, frozenset[str]())
    missing = (devices_of(parts) & home) - reached
    if missing:
        missing = (devices_of(_at_home(parts)) & home) - reached
    if not missing or len(reached) < len(collective.devices) or _is_abroad(view, collective, around):
        return []
    return sorted(missing)


def leaving_out(message_id: str, collective: NodeView, lacking: Sequence[str], where: str, remedy: str) -> Finding:
    """The finding that `collective` leaves out the devices `lacking`; `where` names what is on them."""
    return Finding(
        message_id,
        f"{label(collective)} leaves out {', '.join(lacking[:MAX_NAMES])}, where {where}",
        where=collective,
        value=list(collective.devices),
        expected=sorted({*collective.devices, *lacking}),
        remedy=remedy,
    )


def _is_abroad(view: PlanView, collective: NodeView, stage: NodeView | None) -> bool:
    operator = collective.parent
    strange = None if stage is None else strange_devices(view).get(stage.position)
    if strange is None or operator is None:
        return False
    # TP004 checks the TP groups of attention and FFN, PP006 the exchanges of experts; other nodes that reach into
    # another stage are reported by the rule of their operator.
    in_group = operator.type == "MoENode" or (operator.type in HOLDERS and tensor_degree(operator) > 1)
    return not (strange.both if in_group else strange.absent).isdisjoint(collective.devices)
