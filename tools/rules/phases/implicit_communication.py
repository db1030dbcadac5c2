"""DE004: no device computes on data that no node brings to it.

Every collective of an operator spans the devices that the operator computes on, and where the next operator of the
stage runs on devices that this one does not use, this one closes with a collective over the union of both. Shards along
the cache (`kv_sp`), which no other rule names, are checked here. Between stages the pipeline edge carries the
activations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import pairwise

from msgspec import Struct

from ...plan.view import NodeView, PlanView, StageView, devices_of
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import (
    COMPUTE_TYPES,
    StrangeDevices,
    compute_devices,
    label,
    operators_in_order,
    settled_devices,
    strange_devices,
)


class _Step(Struct, frozen=True, eq=False):
    """An operator of a stage, and the nodes that may run after it inside the stage."""

    operator: NodeView
    following: tuple[NodeView, ...]

    @property
    def likeness(self) -> Hashable:
        """A key that is equal for steps of like operators on like stages; `None` if unknown."""
        parts = (self.operator.likeness, *[node.likeness for node in self.following])
        return None if None in parts else parts


def _steps(stage: StageView) -> Iterator[_Step]:
    runs = [(block, operators_in_order(block)) for block in stage.blocks]
    runs = [(block, operators) for block, operators in runs if operators]
    heads = tuple(stage.node.children_of_type("LMHeadNode"))
    for embedding in stage.node.children_of_type("EmbeddingNode"):
        yield _Step(embedding, (runs[0][1][0],) if runs else ())
    for place, (block, operators) in enumerate(runs):
        for operator, after in pairwise(operators):
            yield _Step(operator, (after,))
        following = (runs[place + 1][1][0],) if place + 1 < len(runs) else heads
        if block.layers is not None and block.layers[1] - block.layers[0] + 1 > block.period:
            following = (operators[0], *following)
        yield _Step(operators[-1], following)
    for head in heads:
        yield _Step(head, ())


def _closing(operator: NodeView) -> list[NodeView]:
    """Collectives of the operator that pass on its result: no further node of the operator follows them."""
    return [
        child
        for child in operator.children
        if child.is_collective
        and child.role not in ("sequence_in", "dispatch")
        and not any(edge.target is not None and edge.target.parent is operator for edge in child.edges_out)
    ]


def _misplaced(operator: NodeView, in_stage: frozenset[str]) -> frozenset[str]:
    """Devices that a shard, expert or router of the operator is on, and no other node of the stage."""
    # A part on several devices is TP002's or EP003's.
    parts = [
        part
        for part in operator.children_of_type(*COMPUTE_TYPES)
        if part.type == "RouterNode" or len(part.devices) == 1
    ]
    return devices_of(parts) - in_stage


def _computing(stage: StageView) -> frozenset[str]:
    """Devices on which any operator of the stage computes."""
    ends = stage.node.children_of_type("EmbeddingNode", "LMHeadNode")
    return frozenset[str]().union(*(compute_devices(node) for node in (*stage.operators_and_shared, *ends)))


def _has_groups(operator: NodeView) -> bool:
    """Whether the operator is split by TP, SP or EP: TP003, SP002 and EP002 then check its collectives."""
    ranks = [shard.rank for shard in operator.children_of_type("ShardNode")]
    return operator.type == "MoENode" or any(len({rank.get(name) for rank in ranks}) > 1 for name in ("tp", "sp"))


def _narrow(
    operator: NodeView, strange: StrangeDevices, in_stage: frozenset[str], in_use: frozenset[str]
) -> Finding | None:
    """A collective of `operator` that leaves out a computing device, or includes one where nothing runs.

    `in_use` are those devices of the stage on which some operator of it computes.
    """
    collectives = [child for child in operator.children if child.is_collective]
    if not collectives:
        return None
    computing = compute_devices(operator) - strange.both
    expected = (_misplaced(operator, in_stage) if _has_groups(operator) else computing) - strange.both
    # A part on another stage's device is the fault then, and not the collective that follows it there.
    astray = strange.absent | (strange.elsewhere & compute_devices(operator))
    # Nothing runs after an expert whose devices its collective would have to reach.
    reached = computing.union(operator.devices if operator.type == "ExpertNode" else in_use)
    for collective in collectives:
        spans = frozenset(collective.devices)
        if not spans or not computing or spans & astray:
            continue
        lacking = expected - spans
        idle = frozenset[str]() if computing - spans else spans - reached
        if not lacking and not idle:
            continue
        named = ", ".join(sorted(lacking or idle)[:MAX_NAMES])
        why = f"leaves out {named}, where it computes" if lacking else f"takes in {named}, where nothing of it runs"
        parts = [part for part in operator.children_of_type(*COMPUTE_TYPES) if lacking.intersection(part.devices)]
        return Finding(
            "device-left-out" if lacking else "idle-device",
            f"{label(collective)} of {label(operator)} {why}",
            where=collective,
            nodes=(*parts, operator),
            value=sorted(spans),
            expected=sorted((spans | lacking) - idle),
            remedy="let the collective span exactly the devices of the operator and of the next one",
        )
    return None


def _where(operator: NodeView, in_stage: frozenset[str]) -> frozenset[str]:
    """Devices that the operator runs on; if its parts disagree, those that its stage uses."""
    settled = settled_devices(operator)
    return settled if settled & in_stage else (compute_devices(operator) & in_stage) or settled


def _is_unsettled(operator: NodeView) -> bool:
    """Whether an attention operator without collectives writes its cache on other devices than its shards.

    A shard, or the cache, is then missing or misplaced, which other rules report.
    """
    updates = operator.children_of_type("KVCacheUpdateNode")
    written = devices_of(updates)
    gathered = any(child.is_collective for child in operator.children)
    return bool(written) and not gathered and compute_devices(operator) != written


def _unreached(step: _Step, strange: frozenset[str], in_stage: frozenset[str]) -> Finding | None:
    operator = step.operator
    used = (_where(operator, in_stage) | (compute_devices(operator) & in_stage)) - strange
    wanted = frozenset[str]().union(*(_where(node, in_stage) for node in step.following)) - strange
    if operator.type == "MoENode":
        # Experts on a part of the stage's devices are another fault.
        used |= in_stage
    # An embedding on another stage's devices is PP006's; the rest of its list is not judged.
    astray = strange.intersection(operator.devices)
    # A device may wait for its shard on another stage's device (PP006).
    is_reached = len(wanted - used) <= len(compute_devices(operator) & strange)
    if not used or is_reached or (operator.type == "EmbeddingNode" and astray) or _is_unsettled(operator):
        return None
    union = wanted | used
    closing = _closing(operator)
    # A collective that leaves out the operator's devices, or names strange ones, is reported elsewhere; so is a split
    # operator that no collective closes (TP003, SP002), but for one split expert, which closes by itself.
    is_one_expert = operator.type == "MoENode" and len(operator.children_of_type("ExpertNode")) == 1
    is_open = not closing and len(used) > 1 and _has_groups(operator) and not is_one_expert
    if is_open or any(_is_named(child, used, union, strange) for child in closing):
        return None
    reached = used.union(*(child.devices for child in closing))
    lacking = sorted(union - reached) or sorted(wanted - used)
    return Finding(
        "result-not-brought",
        f"no collective of {label(operator)} brings its result to {', '.join(lacking[:MAX_NAMES])}, where the next "
        "operator runs",
        where=operator,
        nodes=(operator, *closing, *(node for node in step.following if not settled_devices(node) <= used)),
        value=sorted(reached),
        expected=sorted(union),
    )


def _is_named(closing: NodeView, used: frozenset[str], union: frozenset[str], strange: frozenset[str]) -> bool:
    spans = frozenset(closing.devices)
    twice = len(spans) < len(closing.devices)
    return twice or union <= spans or not used <= spans or not spans.isdisjoint(strange)


def _unmerged(view: PlanView, operator: NodeView) -> Finding | None:
    """Shards of the cache (`kv_sp`) whose partial results no collective merges."""
    shards = operator.children_of_type("ShardNode")
    # A split of the cache that the plan does not allow is SP003's.
    if (
        "kv_sequence_decode" not in view.relaxations
        or len({shard.rank.get("kv_sp") for shard in shards}) < 2
        or any(shard.rank.get(name, 0) > 0 for shard in shards for name in ("tp", "sp"))
    ):
        return None
    computing = compute_devices(operator)
    if len(computing) < 2 or _closing(operator):
        return None
    return Finding(
        "shards-not-merged", f"no collective merges the cache shards of {label(operator)}",
        where=operator, nodes=shards, expected=sorted(computing),
    )  # fmt: skip


def _unshared(operator: NodeView, strange: frozenset[str], in_stage: frozenset[str]) -> Finding | None:
    """A shared expert on a device where nothing else of the stage runs, so that no node brings tokens to it."""
    for shared in operator.children_of_type("FFNNode"):
        alone = compute_devices(shared) - strange - in_stage
        if alone:
            return Finding(
                "shared-expert-apart",
                f"nothing brings tokens to {', '.join(sorted(alone)[:MAX_NAMES])}, where {label(shared)} runs alone",
                where=shared,
                nodes=[shard for shard in shared.children_of_type("ShardNode") if alone.intersection(shard.devices)],
                value=sorted(alone),
                expected=sorted(in_stage),
                remedy="let the shared expert run on devices of its MoE operator",
            )
    return None


def _inner(operator: NodeView) -> list[NodeView]:
    """The operator and the nodes in it that have their own collectives: a shared expert, split experts.

    A split expert whose shards are not on its devices is EP003's, such an embedding or LM head TP002's.
    """
    experts = operator.children_of_type("ExpertNode")
    split = [part for part in (operator, *experts) if part.children]
    agreed = [
        part
        for part in split
        if not part.devices or devices_of(part.children_of_type("ShardNode")).issubset(part.devices)
    ]
    return [*operator.children_of_type("FFNNode"), *agreed]


def decide(view: PlanView, stage: StageView) -> Iterator[Finding]:
    """Yield each operator whose activations should reach a device but no node brings them there."""
    strange, in_stage = strange_devices(view)[stage.node.position], stage.settled_devices
    in_use = in_stage & _computing(stage)
    sound = view.once(decide, set[Hashable])
    for step in _steps(stage):
        likeness = None if strange.both else step.likeness
        if likeness in sound:
            continue
        inner = (_narrow(node, strange, in_stage, in_use) for node in _inner(step.operator))
        fault = next((finding for finding in inner if finding is not None), None)
        fault = fault or _unmerged(view, step.operator) or _unshared(step.operator, strange.both, in_stage)
        finding = fault or _unreached(step, strange.both, in_stage)
        if finding is not None:
            yield finding
        elif likeness is not None:
            sound.add(likeness)


RULE = Rule(
    id="DE004",
    name="implicit communication",
    requirement=(
        "Where an operator's devices are more than one, the collective is a node; where the next operator of the stage "
        "runs on devices that this one does not use, this one closes with a collective over the union, even if it has "
        "one shard."
    ),
    rationale="Activations that no node brings to a device are sent for free in every estimate and by nobody in fact.",
    source="000 §6, §8",
    remedy="close the operator with an AllGather (one shard) or AllReduce over the devices of both operators",
    visits="stage",
    decide=decide,
    bad=Example("dense-tp2", (Edit("set", "r0.decode.s0.emb", "devices", ["n0.g0"]),)),
)
