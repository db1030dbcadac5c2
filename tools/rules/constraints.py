"""Judges whether strategies meet the constraints of a request, for the rule over a graph and for the search.

Degrees, stages and replicas are judged here; reserved GPUs and nodes, accelerators and groups inside a node by CO008,
over the devices of a document. Memory that stays free lowers what is usable of a GPU (`performance/layout.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..plan.constraints import (
    Constraint,
    Constraints,
    DegreeBound,
    DegreeConstraint,
    PlacementConstraint,
    ReplicasConstraint,
)
from ..plan.document import Phase, PhaseStrategy

_BOUNDS = {None: "", ">=": "at least ", "<=": "at most "}


class Broken(Struct, frozen=True):
    """A broken constraint: what the plan has, and what was demanded."""

    constraint: Constraint
    found: str
    demanded: str


class Stage(Struct, frozen=True):
    """A stage of one phase on `gpus` GPUs, of nodes of `gpus_per_node`."""

    phase: Phase
    gpus: int
    gpus_per_node: int


def broken_by_stage(constraints: Constraints, stage: Stage, degrees: PhaseStrategy) -> Iterator[Broken]:
    """The constraints that the degrees inside a stage break; the number of stages does not count."""
    for limit in constraints:
        if isinstance(limit, DegreeConstraint) and limit.value.name != "pp" and limit.phase in (None, stage.phase):
            yield from _broken_degree(limit, _ranks(limit, stage.phase, degrees))
        if isinstance(limit, PlacementConstraint) and limit.value != "pp" and is_placed(limit, stage.phase):
            yield from broken_placement(limit, leaves_node=not _is_inside(limit, stage, degrees))


def broken_by_pipeline(constraints: Constraints, stage: Stage, stages: int) -> Iterator[Broken]:
    """The constraints that this number of stages breaks."""
    for limit in constraints:
        if isinstance(limit, DegreeConstraint) and limit.value.name == "pp" and limit.phase in (None, stage.phase):
            yield from _broken_degree(limit, (stages,))
        if isinstance(limit, PlacementConstraint) and limit.value == "pp":
            yield from broken_placement(limit, leaves_node=stages > 1 and stages * stage.gpus > stage.gpus_per_node)


def is_placed(limit: PlacementConstraint, phase: str | None) -> bool:
    """Whether `phase` has groups for the constraint: a decode step has one token and no sequence to split."""
    return limit.value != "sp" or phase != "decode"


def broken_placement(limit: PlacementConstraint, *, leaves_node: bool) -> Iterator[Broken]:
    """The constraint, if the groups of its primitive illegally leave a node, or illegally stay in one."""
    name = limit.value.upper()
    inside, across = f"{name} inside a node", f"{name} across nodes"
    if leaves_node != (limit.kind == "across_nodes"):
        yield Broken(limit, across if leaves_node else inside, inside if leaves_node else across)


def broken_by_replicas(constraints: Constraints, prefill: int | None, decode: int) -> Iterator[Broken]:
    """The constraints that these numbers of replicas break; `prefill` is `None` if each serves both phases."""
    for limit in constraints:
        if isinstance(limit, ReplicasConstraint):
            of_phase = {"prefill": decode if prefill is None else prefill, "decode": decode}
            count = of_phase[limit.phase] if limit.phase is not None else (prefill or 0) + decode
            if (count < limit.value and limit.relation != "<=") or (count > limit.value and limit.relation != ">="):
                what = f"{limit.phase} replicas" if limit.phase is not None else "replicas"
                yield Broken(limit, f"{count} {what}", f"{_BOUNDS[limit.relation]}{limit.value} {what}")


def _ranks(constraint: DegreeConstraint, phase: Phase, degrees: PhaseStrategy) -> tuple[int, ...]:
    """The degrees that a constraint applies to: a bound on TP applies to the tensor ranks of all operators."""
    name = constraint.value.name
    if name == "tp" and constraint.value.relation != "=":
        return degrees.tp, degrees.tp_ffn, degrees.tp_expert or 1
    if name == "sp" and phase == "decode" and constraint.value.relation == "=":
        return ()  # as in `is_placed`
    return (getattr(degrees, name) or 1,)


def _broken_degree(constraint: DegreeConstraint, ranks: Sequence[int]) -> Iterator[Broken]:
    bound = constraint.value
    name, most = bound.name.upper(), max(ranks, default=1)
    if not isinstance(bound, DegreeBound):
        if most > 1:
            yield Broken(constraint, f"{name} {most}", f"no {name}")
    elif bound.relation == "<=" and most > bound.degree:
        yield Broken(constraint, f"{name} {most}", f"{name} at most {bound.degree}")
    elif bound.relation == "=" and any(rank != bound.degree for rank in ranks):
        yield Broken(constraint, f"{name} {most}", f"{name} {bound.degree}")


def _is_inside(constraint: PlacementConstraint, stage: Stage, degrees: PhaseStrategy) -> bool:
    """Whether each group of the primitive is inside a node; stages use a part of a node or whole ones."""
    if stage.gpus <= stage.gpus_per_node:
        return True
    if constraint.value == "ep":
        return degrees.ep == 1
    ranks = degrees.tp, degrees.tp_ffn, degrees.tp_expert or 1
    width = max(ranks) if constraint.value == "tp" else degrees.sp * degrees.tp
    return width == 1 or (constraint.value == "sp" and degrees.sp == 1) or stage.gpus_per_node % width == 0
