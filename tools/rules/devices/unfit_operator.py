"""GP003: every operator of a stage fits the stage's devices D: shards ≤ |D|, a MoE operator exactly D.

Only what is simultaneous in one operator multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, StageView, devices_of
from ..base import MAX_NAMES, Edit, Example, Finding, Rule, set_top
from ..reading import label
from ..sharding import lent_shards


def shard_excess(operator: NodeView, width: int) -> int:
    """The number of shards that `operator` has beyond the `width` devices of its stage; 0 if it fits.

    A shard that leads into the collective of another operator belongs to that one (TP004).
    """
    return max(0, len(operator.children_of_type("ShardNode")) - len(lent_shards(operator)) - width)


def _crowded(stage: StageView, width: int) -> Iterator[Finding]:
    for operator in stage.operators_and_shared:
        if operator.type != "MoENode" and shard_excess(operator, width):
            shards = operator.children_of_type("ShardNode")
            what = "sp × tp" if operator.type == "AttentionNode" else "tp"
            yield Finding(
                "too-many-shards",
                f"{label(operator)} has {len(shards)} shards ({what}) on a stage of {width} devices",
                where=operator,
                nodes=(stage.node,),
                value=len(shards),
                expected=f"at most {width}",
                remedy=f"lower its degree to {width}, or widen the stage",
            )


def _narrow(stage: StageView, devices: frozenset[str]) -> Iterator[Finding]:
    for operator in stage.operators:
        if operator.type != "MoENode":
            continue
        experts = operator.children_of_type("ExpertNode")
        used = devices_of(experts)
        parts = [child for child in operator.children if child.is_collective or child.type == "RouterNode"]
        agreed = bool(parts) and all(frozenset(part.devices) == used for part in parts)
        if not used or not agreed or used >= devices:
            continue
        idle = sorted(devices - used)
        yield Finding(
            "narrow-experts",
            f"the experts of {label(operator)} run on {len(used)} of the {len(devices)} devices of stage "
            f"{label(stage.node)}; ep must be the number of devices (without: {', '.join(idle[:MAX_NAMES])})",
            where=operator,
            nodes=(*experts, stage.node),
            value=len(used),
            expected=len(devices),
            remedy="spread the experts over all devices of the stage, or narrow its other operators",
        )


def decide(_: PlanView, stage: StageView) -> Iterator[Finding]:
    """Yield every operator that its stage's devices cannot hold or that leaves experts off some of them."""
    yield from _crowded(stage, len(stage.devices))
    yield from _narrow(stage, stage.settled_devices)


_FFN = "r0.prefill.s0.b0.ffn"


def _shard(rank: int) -> tuple[Edit, Edit]:
    """Another shard of the prefill FFN, on a device that has one already."""
    name = f"{_FFN}.tp{rank}"
    node = {"id": name, "type": "ShardNode", "parent": _FFN, "rank": {"tp": rank}, "devices": [f"n0.g{rank % 2}"]}
    edge = {"source": name, "target": f"{_FFN}.ar", "type": "synchronization"}
    return Edit("add_node", value=node), Edit("add_edge", value=edge)


RULE = Rule(
    id="GP003",
    name="operator that does not fit its stage",
    requirement=(
        "Inside a stage every operator runs on the stage's devices: attention sp × tp ≤ |D|, FFN tp ≤ |D|, MoE ep = "
        "|D|; only what is simultaneous in one operator multiplies."
    ),
    rationale=(
        "The operators of a stage take turns on the same devices: none can have more shards than there are devices, "
        "and experts live on all of them."
    ),
    source="003 §1, §4",
    fix="re-plan",
    remedy="fit each operator's degree to the devices of its stage",
    visits="stage",
    decide=decide,
    bad=Example("dense-tp2", (set_top("/strategy/prefill/tp_ffn", 4), *_shard(2), *_shard(3))),
)
