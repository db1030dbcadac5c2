"""CO002: the declared strategy is the one that the graph shows, and it is the same in all of a phase.

Operators whose parts do not fit together show no degree. If all operators are such, a declaration is wrong if nothing
of them supports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...plan.degrees import (
    DEGREE_NAMES,
    MULTIPLIED,
    PhaseDegrees,
    declared_degree,
    exchange_of,
    phase_degrees,
    root_replicas,
)
from ...plan.view import PHASES, NodeView, PlanView, as_int, as_list, as_mapping, devices_of
from ..base import MAX_NODES, Example, Finding, Rule, set_top
from ..legality import RELAXATION_OF, splits
from ..reading import label, stage_of, unlike_phases

# The nodes that a degree counts, if they are not shards.
_PARTS = {"pp": ("PipelineStageNode",), "ep": ("ExpertNode",), "tp_expert": ("ShardNode", "ExpertNode")}


def _replica_counts(view: PlanView) -> Iterator[Finding]:
    replicas = root_replicas(view)
    counted = {id(replica) for replica in replicas}
    stated_dp = as_int(view.strategy.get("dp"))
    # A replica below the root's fan-out is DP001's, and may be meant to count.
    dp = stated_dp if stated_dp == len(view.replicas) else len(replicas)
    served = {phase.phase for phase in view.phases}
    serving_any = {id(phase.replica) for phase in view.phases if phase.phase in PHASES}
    # A phase that nobody serves, and a replica that serves none, are PH001's.
    whole = served.issuperset(PHASES) and counted <= serving_any
    if not whole and stated_dp is not None and (dp or 0) < stated_dp:
        return
    counts = {"/strategy/dp": (stated_dp, dp, "ReplicaNodes")}
    for name in PHASES if whole else ():
        serving = {id(phase.replica) for phase in view.phases if phase.phase == name and id(phase.replica) in counted}
        stated = as_int(as_mapping(view.strategy.get(name)).get("replicas"))
        counts[f"/strategy/{name}/replicas"] = (stated, len(serving), f"replicas that serve {name}")
    for path, (stated, count, what) in counts.items():
        if stated is not None and count and stated != count:
            yield Finding(
                "replica-count",
                f"strategy says {path.removeprefix('/strategy/').replace('/', '.')} {stated}; the graph has {count} "
                f"{what}",
                where=path,
                value=stated,
                expected=count,
                remedy=f"set {path[1:].replace('/', '.')} to {count}, or write {stated} replicas",
                lacks=("ReplicaNode", "PhaseNode") if count < stated else (),
            )


def _mismatch(name: str, degree: str, declared: int, shown: list[int], nodes: list[NodeView]) -> Finding:
    return Finding(
        "degree-not-shown",
        f"strategy.{name}.{degree} is {declared}; the graph shows {' and '.join(map(str, shown))}",
        where=f"/strategy/{name}/{degree}",
        nodes=nodes[:MAX_NODES],
        value=declared,
        expected=shown[0] if len(shown) == 1 else shown,
        remedy=f"set strategy.{name}.{degree} to {shown[0]}, or rebuild the graph for {declared}",
        lacks=_PARTS.get(degree, ("ShardNode",)) if max(shown) < declared else (),
    )


def _degree(name: str, degree: str, declared: int, branches: list[PhaseDegrees]) -> Iterator[Finding]:
    """Faults of one degree of one phase: the declaration, or the operators that differ from it."""
    showing = [branch for branch in branches if branch.readings.get(degree)]
    usual = [branch.usual(degree, declared) for branch in showing]
    if showing and declared not in usual:
        readings = [reading for branch in showing for reading in branch.readings[degree]]
        shown = sorted({reading.value for reading in readings})
        yield _mismatch(name, degree, declared, shown, [reading.operator for reading in readings])
        return
    for branch, common in zip(showing, usual, strict=True):
        odd = [reading for reading in branch.readings[degree] if reading.value != common]
        if odd:
            values = sorted({reading.value for reading in odd})
            yield Finding(
                "unlike-operator",
                f"{label(odd[0].operator)} shows {degree} {' and '.join(map(str, values))} where the other operators "
                f"of {label(branch.phase.node)} show {common}",
                where=odd[0].operator,
                nodes=[reading.operator for reading in odd[:MAX_NODES]],
                value=values,
                expected=common,
                remedy="give all operators of the phase one degree, or declare it",
                lacks=_PARTS.get(degree, ("ShardNode",)) if max(values) < (common or 0) else (),
            )


def _unsupported(view: PlanView, name: str, degree: str, branches: list[PhaseDegrees]) -> Iterator[Finding]:
    """A degree that no whole operator shows, and that no number of shards or devices supports."""
    remains = [reading for branch in branches for reading in branch.remains.get(degree, ())]
    if not remains or any(branch.readings.get(degree) for branch in branches):
        return
    if degree == "tp_ffn" and any(declared_degree(view, name, other) != 1 for other in ("attention_dp", "ep")):
        # The number of groups of a damaged FFN is open.
        return
    kind = next(kind for kind in MULTIPLIED if degree in kind)
    declared = {other: declared_degree(view, name, other) for other in kind}
    width = prod(value or 0 for value in declared.values())
    widths = {wide for reading in remains for wide in _widths(view, reading.operator)}
    stated = declared[degree] or 0
    shown = max(widths) * stated // width if width else 0
    if width and width not in widths and shown != stated and all(reading.value != stated for reading in remains):
        yield _mismatch(name, degree, stated, [shown], [reading.operator for reading in remains])


def _widths(view: PlanView, operator: NodeView) -> set[int]:
    """Numbers of parts and of devices that an operator and its stage name."""
    parts, stage = operator.children_of_type("ShardNode", "ExpertNode"), stage_of(view, operator)
    named = {len(set(child.devices)) for child in operator.children if child not in parts}
    return {len(parts), len(devices_of(parts)), 0 if stage is None else len(stage.settled_devices), *named}


def _named_elsewhere(view: PlanView, name: str, degree: str, branches: list[PhaseDegrees]) -> bool:
    """Whether the phase, or a plan without the relaxation, must not have the degree (DP001, SP003 or TP006)."""
    if (name, degree) in (("decode", "sp"), ("prefill", "kv_sp")):
        return True
    relaxation = RELAXATION_OF.get(degree)
    if relaxation is None or relaxation in view.relaxations:
        return False
    shown = (reading.value for branch in branches for reading in branch.readings.get(degree, ()))
    return degree == "attention_dp" or any(value > 1 for value in shown)


def _applies(view: PlanView, degree: str, branches: list[PhaseDegrees]) -> bool:
    """Whether the model (or else the graph) has an operator that could show `degree`."""
    kinds = {"tp_ffn": "FFNNode", "ep": "MoENode", "tp_expert": "MoENode"}
    if degree not in kinds:
        return True
    if view.structure is not None:
        return splits(view.structure, degree)
    return any(
        node.type == kinds[degree] for branch in branches for stage in branch.phase.stages
        for operator in stage.operators for node in (operator, *operator.children)
    )  # fmt: skip


def _shape(view: PlanView, name: str, branches: list[PhaseDegrees]) -> Iterator[Finding]:
    """Faults of the number of stages, and of the layers of each."""
    cuts = [branch.cut for branch in branches if branch.cut is not None]
    declared = declared_degree(view, name, "pp")
    if declared is not None and cuts and declared not in [len(cut) for cut in cuts]:
        stages = [stage.node for branch in branches for stage in branch.phase.stages]
        yield _mismatch(name, "pp", declared, sorted({len(cut) for cut in cuts}), stages)
        return
    stated = as_list(as_mapping(view.strategy.get(name)).get("stage_layers"))
    if stated and cuts and list(stated) not in [list(cut) for cut in cuts]:
        yield Finding(
            "stage-layers",
            f"strategy.{name}.stage_layers is {list(stated)!r:.120}; the graph's stages hold {list(cuts[0])!r:.120}",
            where=f"/strategy/{name}/stage_layers",
            value=list(stated),
            expected=list(cuts[0]),
            remedy=f"set strategy.{name}.stage_layers to what the stages hold, or cut the stages as it says",
        )


def _exchange(view: PlanView, name: str, branches: list[PhaseDegrees]) -> Iterator[Finding]:
    """A declared `sp_kind` (by default `all_gather`) that an attention operator with SP contradicts."""
    written = as_mapping(view.strategy.get(name)).get("sp_kind")
    stated = written or "all_gather"
    if stated not in ("all_gather", "ulysses"):
        return
    odd = [
        reading.operator
        for branch in branches
        for reading in branch.readings.get("sp", ())
        if reading.value > 1 and exchange_of(reading.operator) not in (None, stated)
    ]
    if odd:
        other = "ulysses" if stated == "all_gather" else "all_gather"
        yield Finding(
            "exchange-kind",
            f"strategy.{name}.sp_kind is {stated}{'' if written else ' where it is left out'}; {label(odd[0])} "
            f"exchanges its sequence shards by {other}",
            where=f"/strategy/{name}/sp_kind" if written else f"/strategy/{name}",
            nodes=odd[:MAX_NODES],
            value=stated,
            expected=other,
            remedy=f"set strategy.{name}.sp_kind to '{other}', or exchange the sequence shards as it says",
        )


def _branches(view: PlanView, name: str, branches: list[PhaseDegrees]) -> Iterator[Finding]:
    """Faults of the branches of one phase."""
    yield from _shape(view, name, branches)
    for degree in DEGREE_NAMES:
        declared = declared_degree(view, name, degree)
        if declared is None or _named_elsewhere(view, name, degree, branches):
            continue
        if declared > 1 and not _applies(view, degree, branches):
            yield _mismatch(name, degree, declared, [1], [])
        else:
            yield from _degree(name, degree, declared, branches)
            yield from _unsupported(view, name, degree, branches)
    yield from _exchange(view, name, branches)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every degree that the graph does not show, and every operator that differs from its phase."""
    yield from _replica_counts(view)
    for name in PHASES:
        phases = [phase for phase in view.phases if phase.phase == name and phase.stages]
        if not phases:
            continue
        # Copies of a branch have the same faults; all branches are checked only if there are any.
        unlike = [phase_degrees(view, phase) for phase in unlike_phases(view, phases)]
        if any(True for _ in _branches(view, name, unlike)):
            yield from _branches(view, name, [phase_degrees(view, phase) for phase in phases])


RULE = Rule(
    id="CO002",
    name="degrees that the graph does not show",
    requirement=(
        "The combination in each phase is in the closed set (every subset of TP, SP, PP and EP) and equals what the "
        "graph shows; dp is the number of ReplicaNodes; all stages and operators of a phase have the same degrees."
    ),
    rationale=(
        "The degrees are what an engine is started with, the graph is what is checked and timed. Where the two differ, "
        "neither says what will run."
    ),
    source="000 §5, 002 §1",
    remedy="declare what the graph shows, or rebuild the graph for what is declared",
    check=check,
    bad=Example("dense-tp2", (set_top("/strategy/decode/tp", 4),)),
)
