"""The legal degrees from which a re-plan chooses, for each phase by itself: the nearest to the author's first.

They are those of the search's space and, where they are legal, the author's own as they stand: stage widths that are
neither part of a node nor whole nodes, sequence shards of a short prompt, attention groups of a dense model, cuts of
the stages. No relaxation is used that the policy does not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..catalog.architecture import Architecture
from ..plan.document import Phase, PhaseStrategy
from ..plan.placement import attention_width, ffn_groups, phase_width, stage_width
from ..search.divisible import Divisible, divisible
from ..search.engines import engine_runs
from ..search.space import SP_MIN_INPUT_TOKENS, SpaceRequest, stage_options, stage_widths
from .distance import phase_distance, stages_distance

_RELAXATIONS = {"attention_dp": "attention_dp", "kv_sp": "kv_sequence_decode", "tp_expert": "tp_in_expert"}


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
    for stage in _stages(widened(space, author, phase), author, phase):
        # With the author's number of stages, so that any other one adds what it counts alone.
        alike = stage.model_copy(update={"pp": author.pp})
        cost = phase_distance(author, alike, phase, has_ffn=has_ffn)
        for degrees in _with_stages(space, stage, author):
            if degrees.stage_layers is None:
                found.setdefault(degrees, Option(degrees, cost + stages_distance(author, degrees.pp)))
            else:
                found.setdefault(degrees, Option(degrees, phase_distance(author, degrees, phase, has_ffn=has_ffn)))
    return sorted(found.values(), key=lambda option: (option.cost, option.width, option.degrees.model_dump_json()))


def widened(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> SpaceRequest:
    """`space` with what the author uses and a search leaves out unasked although no rule forbids it."""
    if phase == "prefill" and author.sp > 1:
        space = replace(space, input_tokens=max(space.input_tokens, SP_MIN_INPUT_TOKENS))
    if (author.attention_dp or 1) > 1:
        space = replace(space, dense_groups=True)
    model, whole = divisible(space.architecture), _unblocked(space.architecture)
    if space.engine is None and not model.tp_ffn(author.tp_ffn) and divisible(whole).tp_ffn(author.tp_ffn):
        space = replace(space, architecture=whole)
    return space


def _unblocked(architecture: Architecture) -> Architecture:
    """Without the blocks of its checkpoint: a slice inside one is warned of, not refused, where no engine is named."""
    return replace(architecture, scale_block=None)


def _stages(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> Iterator[PhaseStrategy]:
    """Legal degrees of one stage: the author's, then those of the space."""
    own = author.model_copy(update={"pp": 1, "replicas": None, "stage_layers": None})
    if is_legal_stage(space, own, phase):
        yield own
    widths = {*stage_widths(space)} | {width for width in (stage_width(own),) if width <= space.gpus}
    for width in sorted(widths):
        for degrees in stage_options(space, width, prefill=phase == "prefill"):
            yield _exchanging(space.architecture, degrees, author)


def _exchanging(architecture: Architecture, degrees: PhaseStrategy, author: PhaseStrategy) -> PhaseStrategy:
    """`degrees` with the author's way to exchange sequence shards, where that is legal."""
    if degrees.sp == 1 or author.sp_kind is None:
        return degrees
    own = degrees.model_copy(update={"sp_kind": author.sp_kind})
    return own if _exchange_divides(architecture, own) else degrees


def _exchange_divides(architecture: Architecture, degrees: PhaseStrategy) -> bool:
    """Whether an exchange of heads for tokens (Ulysses) has heads enough (rule TP005)."""
    if degrees.sp_kind != "ulysses":
        return True
    heads = {layer.attention.query_heads for layer in architecture.layers if layer.attention is not None}
    return all(count % (degrees.sp * degrees.tp) == 0 for count in heads)


def _with_stages(space: SpaceRequest, stage: PhaseStrategy, author: PhaseStrategy) -> Iterator[PhaseStrategy]:
    """The stage any number of times that layers and devices allow; the author's cut, and the even one."""
    layers = space.architecture.num_layers
    for pp in range(1, min(layers, space.gpus // stage_width(stage)) + 1):
        cut = author.stage_layers
        if cut is not None and len(cut) == pp > 1 and sum(cut) == layers and min(cut) >= 1:
            yield stage.model_copy(update={"pp": pp, "stage_layers": cut})
        yield stage.model_copy(update={"pp": pp})


def is_legal_stage(space: SpaceRequest, degrees: PhaseStrategy, phase: Phase) -> bool:
    """Whether the rules on degrees accept one stage of `degrees` in `phase`, whatever its width."""
    width, fills_up = stage_width(degrees), "redundant_experts" in space.relaxations
    foreign = degrees.sp > 1 if phase == "decode" else (degrees.kv_sp or 1) > 1
    if width > space.gpus or foreign:
        return False
    for name, relaxation in _RELAXATIONS.items():
        if (getattr(degrees, name) or 1) > 1 and relaxation not in space.relaxations:
            return False
    if (degrees.attention_dp or 1) > 1 and ffn_groups(degrees) == 1 and degrees.tp_ffn != width:
        return False
    model = divisible(space.architecture)
    return (
        _divides(model, degrees)
        and _spreads_experts(space.architecture, degrees, width)
        and attention_width(degrees) <= width
        and _exchange_divides(space.architecture, degrees)
        and engine_runs(space.engine, degrees, width, space.architecture, fills_up=fills_up)
    )


def _divides(model: Divisible, degrees: PhaseStrategy) -> bool:
    return model.tp(degrees.tp) and model.tp_ffn(degrees.tp_ffn)


def _spreads_experts(architecture: Architecture, degrees: PhaseStrategy, width: int) -> bool:
    """Whether the experts are on all devices of the stage, none of which is left without (rules EP004, EP008)."""
    moes = {id(layer.moe): layer.moe for layer in architecture.layers if layer.moe is not None}.values()
    slices = degrees.tp_expert or 1
    if not moes:
        return degrees.ep == slices == 1
    fits = degrees.ep * slices == width and degrees.ep <= min(moe.experts for moe in moes)
    return fits and all(moe.width % slices == 0 for moe in moes)
