"""TP004: a TP group lies inside one operator, hence inside one layer and one stage.

Reports shards and collectives of a split operator on devices of another stage of the phase, and shards that lead into
the collective of another operator of the stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...plan.view import Link, PhaseView, PlanView, devices_of
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..reading import label, strange_devices
from ..sharding import HOLDERS, REDUCTIONS, names, tensor_degree


def _foreign_devices(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    strange = strange_devices(view)
    for stage in phase.stages:
        home, elsewhere = stage.settled_devices, strange[stage.node.position].elsewhere
        for operator in stage.nodes if elsewhere else ():
            if operator.type not in HOLDERS or tensor_degree(operator) < 2:
                continue
            # A shard on several devices is TP002's.
            shards = [shard for shard in operator.children_of_type("ShardNode") if len(shard.devices) == 1]
            parts = [*shards, *operator.children_of_type(*REDUCTIONS)]
            foreign = sorted(devices_of(parts) & elsewhere)
            # A group entirely on foreign devices spans nothing: its stage is on the wrong devices (PP006).
            if not foreign or not devices_of(parts) & home:
                continue
            other = next(neighbour.node for neighbour in phase.stages if foreign[0] in neighbour.settled_devices)
            yield Finding(
                "spans-stages",
                f"the TP group of {label(operator)} spans stages {label(stage.node)} and {label(other)}: "
                f"{names([part for part in parts if not home.issuperset(part.devices)])} on {', '.join(foreign[:16])}",
                where=[part for part in parts if not home.issuperset(part.devices)],
                nodes=(operator,),
                value=sorted(devices_of(parts)),
                expected=sorted(home),
                remedy="keep the group on the devices of its own stage",
            )


def _foreign_collectives(view: PlanView) -> Iterator[Finding]:
    """Shards of an attention or FFN operator that lead into a collective of another operator of the stage."""
    strayed: dict[tuple[int, int], list[Link]] = {}
    for link in view.links:
        _, shard, target = link
        home, other = shard.parent, target.parent
        if shard.type != "ShardNode" or target.type not in REDUCTIONS or home is other:
            continue
        if home is None or other is None or not {home.type, other.type} <= HOLDERS:
            continue
        stage = shard.ancestor("PipelineStageNode")
        if stage is not None and stage is target.ancestor("PipelineStageNode"):
            strayed.setdefault((home.position, target.position), []).append(link)
    for links in strayed.values():
        yield _strayed(links)


def _strayed(links: Sequence[Link]) -> Finding:
    """The finding about the edges from the shards of one operator into a collective of another."""
    shards, (_, first, target) = [shard for _, shard, _ in links[:MAX_NODES]], links[0]
    home, other = first.parent, target.parent
    assert home is not None and other is not None
    what = "a shard" if len(links) == 1 else f"{len(links)} shards"
    return Finding(
        "spans-operators",
        f"{names(shards)}, {what} of {label(home)}, lead{'s' if len(links) == 1 else ''} into {label(target)} of "
        f"{label(other)}: a TP group lies inside one operator",
        where=links[0][0],
        nodes=(*shards, target, home, other),
        edges=[edge for edge, _, _ in links[:MAX_NODES]],
        value=other.id,
        expected=home.id,
        remedy="lead the shard into a collective of its own operator",
    )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every TP group that goes beyond its operator."""
    for phase in view.phases:
        yield from _foreign_devices(view, phase)
    yield from _foreign_collectives(view)


RULE = Rule(
    id="TP004",
    name="TP group across layers or stages",
    requirement="A TP group never spans layers or stages.",
    rationale=(
        "The shards of a group work on the same product at the same time. Layers follow one another and stages work on "
        "different requests, so a group across them waits for itself."
    ),
    source="002 §3.3, §5",
    fix="re-plan",
    remedy="give every operator a TP group of its own, on devices of its own stage",
    visits="parts",
    check=check,
    bad=Example("dense-pp2-tp2", (Edit("set", "r0.prefill.s0.b0.attn.ar", "devices", ["n0.g0", "n0.g1", "n0.g2"]),)),
)
