"""The legal degrees from which a re-plan chooses, for each phase by itself: the nearest to the author's first.

They are those of the search's space and, where they are legal, the author's own as they stand: stage widths that are
neither part of a node nor whole nodes, sequence shards of a short prompt, attention groups of a dense model, cuts of
the stages. No relaxation is used that the policy does not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..plan.document import Phase, PhaseStrategy
from ..plan.placement import StageDegrees, phase_width, stage_width
from ..search.space import SpaceRequest, stage_degrees, stage_widths
from .distance import phase_distance, stages_distance


@dataclass(frozen=True, slots=True)
class Option:
    """Legal degrees of one phase, and how far they are from the author's."""

    degrees: PhaseStrategy
    cost: float

    @property
    def width(self) -> int:
        """Devices of a replica of this phase."""
        return phase_width(self.degrees)


def phase_options(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> list[Option]:
    """Every option of `phase` that the devices have room for, nearest first; `replicas` is left open."""
    found: dict[PhaseStrategy, Option] = {}
    has_ffn = space.architecture.has_split_ffn
    for stage in _stages(_accepting(space, author, phase), author, phase):
        # With the author's number of stages, so that any other one adds what it counts alone.
        alike = stage.model_copy(update={"pp": author.pp})
        cost = phase_distance(author, alike, phase, has_ffn=has_ffn)
        for degrees in _with_stages(space, stage, author):
            if degrees.stage_layers is None:
                found.setdefault(degrees, Option(degrees, cost + stages_distance(author, degrees.pp)))
            else:
                found.setdefault(degrees, Option(degrees, phase_distance(author, degrees, phase, has_ffn=has_ffn)))
    return sorted(found.values(), key=lambda option: (option.cost, option.width, option.degrees.model_dump_json()))


def _accepting(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> SpaceRequest:
    """`space` with what the author uses and a search leaves out unasked although no rule forbids it."""
    faults = space.judge.faults(StageDegrees.of(author, phase))
    return replace(space, accepted=frozenset(rule.id for rule, fault in faults if fault.severity != "error"))


def _stages(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> Iterator[PhaseStrategy]:
    """Legal degrees of one stage: the author's, then those of the space."""
    own = author.model_copy(update={"pp": 1, "replicas": None, "stage_layers": None})
    width = stage_width(own)
    if width <= space.gpus and space.judge.accepts(StageDegrees.of(own, phase)):
        yield own
    for stage in sorted({*stage_widths(space)} | {one for one in (width,) if one <= space.gpus}):
        for degrees in stage_degrees(space, stage, phase):
            yield _exchanging(space, degrees, author, phase)


def _exchanging(space: SpaceRequest, degrees: PhaseStrategy, author: PhaseStrategy, phase: Phase) -> PhaseStrategy:
    """`degrees` with the author's way to exchange sequence shards, where that is legal."""
    if degrees.sp == 1 or author.sp_kind is None:
        return degrees
    own = degrees.model_copy(update={"sp_kind": author.sp_kind})
    return own if space.judge.accepts(StageDegrees.of(own, phase)) else degrees


def _with_stages(space: SpaceRequest, stage: PhaseStrategy, author: PhaseStrategy) -> Iterator[PhaseStrategy]:
    """The stage any number of times that layers and devices allow; the author's cut, and the even one."""
    layers = space.architecture.num_layers
    for pp in range(1, min(layers, space.gpus // stage_width(stage)) + 1):
        cut = author.stage_layers
        if cut is not None and len(cut) == pp > 1 and sum(cut) == layers and min(cut) >= 1:
            yield stage.model_copy(update={"pp": pp, "stage_layers": cut})
        yield stage.model_copy(update={"pp": pp})
