"""DP003: DP splits no layers and no operators: each replica holds the whole model for the phases that it serves.

Reports replicas that divide the model: each holds layers, experts or shards that the others lack.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...plan.stage_reading import sharding
from ...plan.view import PHASES, NodeView, PhaseView, PlanView
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..reading import clipped, label


class _Share(Struct, frozen=True):
    """The part of something that one replica holds (a set, or a set as the bits of a number)."""

    branch: PhaseView
    parts: int | frozenset[Hashable]
    nodes: tuple[NodeView, ...]


def _bits(ranges: Iterable[tuple[int, int]], total: int | None) -> int:
    """The numbers in inclusive `ranges` as bits, without those from `total` on (`None`: from 10,000 on)."""
    bits = 0
    for item in ranges:
        numbers = clipped(item, total)
        bits |= ((1 << len(numbers)) - 1) << numbers.start
    return bits


def _layers(view: PlanView, branch: PhaseView) -> _Share:
    total = view.num_layers
    layers = _bits((stage.layers for stage in branch.stages if stage.layers is not None), total)
    return _Share(branch, layers, tuple(stage.node for stage in branch.stages))


def _operators(branches: Iterable[PhaseView]) -> dict[Hashable, list[tuple[PhaseView, NodeView]]]:
    """Operators of all branches by type and layers, without those that are alike in all branches."""
    by_place: dict[Hashable, list[tuple[PhaseView, NodeView]]] = {}
    for branch in branches:
        for stage in branch.stages:
            for operator in stage.operators:
                block = operator.parent
                key = (operator.type, None if block is None else block.layers, operator.offset)
                by_place.setdefault(key, []).append((branch, operator))
    return {key: entries for key, entries in by_place.items() if not _are_alike([operator for _, operator in entries])}


def _are_alike(operators: Sequence[NodeView]) -> bool:
    first = operators[0].likeness
    return first is not None and all(operator.likeness == first for operator in operators)


def _shares(branch: PhaseView, operator: NodeView) -> Iterator[_Share]:
    """The experts of a MoE operator, or the shards of another one if they do not make a whole."""
    shards = operator.children_of_type("ShardNode")
    if operator.type == "MoENode":
        groups = operator.children_of_type("ExpertNode")
        experts = _bits((item for group in groups for item in group.expert_ranges or ()), None)
        yield _Share(branch, experts, (operator, *groups))
    elif shards and not sharding(operator).is_grid:
        ranks = frozenset(tuple(sorted(shard.rank.items())) for shard in shards)
        yield _Share(branch, ranks, (operator, *shards))


def _divided(shares: Sequence[_Share]) -> list[_Share]:
    """The shares that are a part of the whole and have nothing that all shares have."""
    shares = [share for share in shares if share.parts]
    if len(shares) < 2:
        return []
    parts: list[Any] = [share.parts for share in shares]
    common: Any = parts[0]
    whole: Any = parts[0]
    for part in parts[1:]:
        common, whole = common & part, whole | part
    divided = [share for share, part in zip(shares, parts, strict=True) if part != whole and not part & common]
    return divided if len(divided) > 1 else []


def _finding(message_id: str, name: str, what: str, divided: Sequence[_Share]) -> Finding:
    replicas = [share.branch.replica for share in divided if share.branch.replica is not None]
    nodes = [node for share in divided for node in (share.branch.node, *share.nodes)]
    return Finding(
        message_id,
        f"{what} of {name} are divided among replicas {', '.join(label(replica) for replica in replicas[:4])}; each "
        "must hold the whole model",
        where=replicas[-1],
        nodes=[*replicas, *nodes][:MAX_NODES],
        value=[replica.id for replica in replicas],
    )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the layers, or else the operators, that replicas divide among them."""
    for name in PHASES:
        first = [phases[name][0] for phases in view.served.values() if name in phases]
        if len(first) < 2:
            continue
        divided = _divided([_layers(view, branch) for branch in first])
        if divided:
            yield _finding("divided-layers", name, "layers", divided)
            continue
        for key, operators in _operators(first).items():
            divided = _divided([share for branch, operator in operators for share in _shares(branch, operator)])
            if divided:
                what = "experts" if isinstance(key, tuple) and key[0] == "MoENode" else "shards of one operator"
                yield _finding("divided-operators", name, what, divided)


_GROUPS = (("r0", 0, [[0, 3]]), ("r0", 1, [[4, 7]]), ("r1", 0, [[8, 11]]), ("r1", 1, [[12, 15]]))

RULE = Rule(
    id="DP003",
    name="model divided by DP",
    requirement="DP splits no layers or operators: each replica holds the whole model for the phases it serves.",
    rationale=(
        "A request is answered by one replica alone. What that replica does not hold is not computed; layers are "
        "divided by PP, operators by TP and EP."
    ),
    source="002 §3.1, 003 §2.1",
    fix="re-plan",
    remedy="give every replica the whole model, or make them stages or expert groups of one replica",
    check=check,
    bad=Example(
        "moe-dp2-ep2",
        tuple(
            Edit("set", f"{replica}.{phase}.s0.b0.moe.e{group}", "experts", experts)
            for replica, group, experts in _GROUPS
            for phase in PHASES
        ),
    ),
)
