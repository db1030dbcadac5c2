"""DE004: no device computes on activations that no node brings to it.

Where the next operator of the stage runs on devices that this one does not use, this one must close with a collective
over the union of both. A missing collective of TP, SP or EP shards is TP003's, SP002's or EP002's; shards along the
cache (`kv_sp`), which none of these names, are checked here. Between stages the pipeline edge carries the activations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ...plan.view import NodeView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..reading import compute_devices, label, operators_in_order, settled_devices

_MAX_NAMED = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One operator of a stage and what may run after it inside the stage."""

    operator: NodeView
    following: tuple[NodeView, ...]


def _steps(stage: StageView) -> Iterator[_Step]:
    runs = [(block, operators_in_order(block)) for block in stage.blocks]
    runs = [(block, operators) for block, operators in runs if operators]
    heads = tuple(stage.node.children_of_type("LMHeadNode"))
    if runs:
        for embedding in stage.node.children_of_type("EmbeddingNode"):
            yield _Step(embedding, (runs[0][1][0],))
    for place, (block, operators) in enumerate(runs):
        for operator, after in pairwise(operators):
            yield _Step(operator, (after,))
        following = (runs[place + 1][1][0],) if place + 1 < len(runs) else heads
        if block.layers is not None and block.layers[1] - block.layers[0] + 1 > block.period:
            following = (operators[0], *following)
        yield _Step(operators[-1], following)


def _closing(operator: NodeView) -> list[NodeView]:
    """Collectives of the operator that hand on its result: no further node of the operator follows them."""
    return [
        child
        for child in operator.children
        if child.is_collective
        and child.role not in ("sequence_in", "dispatch")
        and not any(edge.target is not None and edge.target.parent is operator for edge in child.edges_out)
    ]


def _unreached(step: _Step) -> Finding | None:
    own = settled_devices(step.operator)
    # A MoE operator runs on all devices of its stage (GP003), and its combine closes it (EP002).
    if not own or step.operator.type == "MoENode":
        return None
    wanted = frozenset[str]().union(*(settled_devices(node) for node in step.following))
    if wanted <= own:
        return None
    union = wanted | own
    closing = _closing(step.operator)
    if any(union <= set(child.devices) for child in closing):
        return None
    reached = own.union(*(child.devices for child in closing))
    lacking = sorted(union - reached) or sorted(wanted - own)
    return Finding(
        f"no collective of {label(step.operator)} brings its result to {', '.join(lacking[:_MAX_NAMED])}, where the "
        "next operator runs",
        where=step.operator,
        nodes=(step.operator, *closing, *(node for node in step.following if not settled_devices(node) <= own)),
        value=sorted(reached),
        expected=sorted(union),
    )


def _unmerged(operator: NodeView) -> Finding | None:
    """Shards of the cache (`kv_sp`) whose partial results no collective merges."""
    shards = operator.children_of_type("ShardNode")
    if not any("kv_sp" in shard.rank for shard in shards) or any(
        shard.rank.get(name, 0) > 0 for shard in shards for name in ("tp", "sp")
    ):
        return None
    computing = compute_devices(operator)
    if len(computing) < 2 or _closing(operator):
        return None
    return Finding(
        f"no collective merges the cache shards of {label(operator)}",
        where=operator, nodes=(operator, *shards), value=None, expected=sorted(computing),
    )  # fmt: skip


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every operator whose result does not reach the devices of the next one."""
    for stage in view.stages:
        for step in _steps(stage):
            for finding in (_unmerged(step.operator), _unreached(step)):
                if finding is not None:
                    yield finding


_BASE = "dense-tp2"

RULE = Rule(
    id="DE004",
    name="implicit communication",
    severity="error",
    requirement=(
        "Where an operator's devices are more than one, the collective is a node; where the next operator of the stage "
        "runs on devices that this one does not use, this one closes with a collective over the union, even if it has "
        "one shard."
    ),
    rationale="Activations that no node brings to a device are sent for free in every estimate and by nobody in fact.",
    source="000 §6, §8",
    fix="local",
    remedy="close the operator with an AllGather (one shard) or AllReduce over the devices of both operators",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set", "r0.decode.s0.emb", "devices", ["n0.g0"]),)),
)
