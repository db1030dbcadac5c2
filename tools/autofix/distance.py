"""How far one strategy is from another: what re-planning makes as small as the rules allow.

The distance is a sum of steps, each |log₂ of the ratio| of one number (a doubling or a halving is one step), or 1 for
another label, times its weight. In each phase they are of every degree, of the devices that attention runs on, of
replicas and GPUs; of whether an operator runs on all devices of its stage, and the FFN on as many as attention; of how
sequence shards are exchanged, and of each boundary of a stage. Once they are of whether replicas serve one phase each
(disaggregated), and of whether both phases have one layout (weights that are loaded once serve both).

The weights are nobody's measurement. The unit is a doubling of the replicas of one phase; every other weight is such
that a comparison that engineers make comes out as they make it. `WEIGHTS` says which; tests/autofix/test_distance.py
holds each to it.

Every term is the distance of two points on a line, of two labels, or of two sets, so that the whole is a metric on what
strategies say: it is never negative, the same both ways, 0 only for what differs in nothing above, and no detour is
shorter. Relaxations are no part of it: one that the policy does not name is never an option. Devices are no part of it
either: which of the author's are kept follows from the widths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate
from math import log2

from msgspec import Struct

from ..plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ..plan.placement import (
    attention_width,
    ffn_width,
    gpu_count,
    is_disaggregated,
    layout_key,
    phase_width,
    stage_width,
)
from ..search.ranking import complexity, pair_complexity
from .settled_cut import Cut

# Degrees of a phase that are compared one by one.
_DEGREES = ("tp", "tp_ffn", "ep", "pp", "sp", "attention_dp", "kv_sp", "tp_expert")
WEIGHTS = {
    "replicas": 1.0,  # the unit
    # A little more than a replica: GPUs that narrower stages free take another replica before they are left idle.
    "gpus": 1.1,
    # As much, since it is the same idleness inside a stage (for attention, and for the FFN): all of it is widened.
    "share": 1.1,
    # With `attention` and `tp_ffn` (dense) or `ep` (experts), which move together, a stage twice as wide counts 1.3:
    # more than a replica, so that of too few GPUs replicas are given up before the width of those that are left.
    "tp": 0.6,
    "attention": 0.4,
    # Half of `tp`: where one of them alone can change, it is the FFN's or the experts'.
    "tp_ffn": 0.3,
    "ep": 0.3,
    # A little more than a stage twice as wide: its width is given up before the number of stages.
    "pp": 1.35,
    # They split an operator as `tp` does: one is changed for the other before a stage gets narrower.
    "sp": 0.6,
    "attention_dp": 0.6,
    "kv_sp": 0.6,
    "tp_expert": 0.6,
    # One TP for attention and the FFN is one decision: where it is illegal for one of them, both follow.
    "follow": 0.5,
    # Phases that share replicas are not parted so that each can keep its degrees.
    "disaggregation": 6.0,
    # What has to change in one phase changes in the other too, also where that takes twice as many replicas.
    "layout": 2.0,
    # The exchange of sequence shards is changed before they are given up.
    "exchange": 0.5,
    # The cut is changed before the number of stages.
    "boundary": 0.1,
}
# One thing that is compared: its name, the weight of a step in it, and what it is (`None`: it is not there; an even cut
# of the layers: no sizes).
_Feature = tuple[str, str, int | str | Cut | None]


class Move(Struct, frozen=True):
    """One thing in which two strategies differ (`prefill.tp`, `decode.replicas`, …), and what it counts."""

    what: str
    before: str
    after: str
    cost: float

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after} ({self.cost:.2g})"


def moves(one: Strategy, other: Strategy, *, has_ffn: bool = True) -> tuple[Move, ...]:
    """Everything in which `other` differs from `one`, degrees of prefill first.

    `has_ffn`: whether the model has a dense FFN or a shared expert.
    """
    return tuple(_compared(_features(one, has_ffn=has_ffn), _features(other, has_ffn=has_ffn)))


def distance(one: Strategy, other: Strategy, *, has_ffn: bool = True) -> float:
    """The distance of two strategies: 0 where they differ in nothing that counts."""
    return sum(move.cost for move in moves(one, other, has_ffn=has_ffn))


def phase_distance(one: PhaseStrategy, other: PhaseStrategy, phase: Phase, *, has_ffn: bool = True) -> float:
    """The part of the distance that lies in the degrees of one phase."""
    features = (_phase_features(degrees, phase, has_ffn=has_ffn) for degrees in (one, other))
    return sum(move.cost for move in _compared(*features))


def _features(strategy: Strategy, *, has_ffn: bool) -> Iterator[_Feature]:
    """All that is compared of a strategy: the degrees of its phases, then replicas, GPUs and how the phases share."""
    for phase in PHASES:
        yield from _phase_features(strategy.of(phase), phase, has_ffn=has_ffn)
    for phase in PHASES:
        yield f"{phase}.replicas", "replicas", replicas_of(strategy, phase)
        yield f"{phase} GPUs", "gpus", _gpus(strategy, phase)
    yield "prefill and decode", "disaggregation", "apart" if is_disaggregated(strategy) else "together"
    yield "layouts", "layout", "one" if has_one_layout(strategy.prefill, strategy.decode) else "two"


def _phase_features(degrees: PhaseStrategy, phase: Phase, *, has_ffn: bool) -> Iterator[_Feature]:
    attention, ffn, stage = attention_width(degrees), ffn_width(degrees), stage_width(degrees)
    for name in _DEGREES:
        yield f"{phase}.{name}", name, getattr(degrees, name) or 1
    yield f"{phase} attention devices", "attention", attention
    yield f"{phase} attention", "share", "part of the stage" if attention < stage else "all of the stage"
    if has_ffn:
        yield f"{phase} FFN", "share", "part of the stage" if ffn < stage else "all of the stage"
        yield f"{phase} FFN devices", "follow", "as attention" if ffn == attention else "apart"
    yield f"{phase}.sp_kind", "exchange", (degrees.sp_kind or "all_gather") if degrees.sp > 1 else None
    yield f"{phase}.stage_layers", "boundary", degrees.stage_layers or ()


def _compared(one: Iterable[_Feature], other: Iterable[_Feature]) -> Iterator[Move]:
    """The features in which two strategies differ; what one of them has no value of (`None`) is not compared."""
    for (what, weight, before), (_, _, after) in zip(one, other, strict=True):
        if before != after and before is not None and after is not None:
            cost = WEIGHTS[weight] * _difference(before, after)
            if cost:
                yield Move(what, _shown(before), _shown(after), cost)


def _difference(before: int | str | Cut, after: int | str | Cut) -> float:
    """How far two values of a feature are from one another, in steps."""
    if isinstance(before, int) and isinstance(after, int):
        return _steps(before, after)
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(_boundaries(before) ^ _boundaries(after))
    return 1


def _steps(before: int, after: int) -> float:
    """Doublings or halvings from one number to the other."""
    return abs(log2(after / before))


def _boundaries(cut: Cut) -> frozenset[int]:
    """First layers of the stages after the first, where the cut is stated; an even cut counts as none."""
    return frozenset([*accumulate(cut)][:-1])


def _shown(value: int | str | Cut) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value)) or "even"
    return str(value)


def pair_preference(
    author: Strategy, prefill: PhaseStrategy, decode: PhaseStrategy, degrees: float, *, is_apart: bool
) -> Callable[[int, int], tuple[float, int, int]]:
    """`preference` by replicas of prefill and of decode, less its last part: no strategy has to be made.

    `degrees` is the part of the distance that lies in the degrees of the two phases. `is_apart`: each has its replicas;
    else the replicas are the same ones, and their number is given twice.
    """
    widths = phase_width(prefill), phase_width(decode)
    stated = tuple((replicas_of(author, phase), _gpus(author, phase)) for phase in PHASES)
    machinery = pair_complexity(prefill, decode, is_apart=is_apart)
    fixed = degrees + WEIGHTS["disaggregation"] * (is_disaggregated(author) != is_apart)
    fixed += WEIGHTS["layout"] * (has_one_layout(author.prefill, author.decode) != has_one_layout(prefill, decode))

    @cache
    def of_side(side: int, replicas: int) -> float:
        before, gpus = stated[side]
        steps = _steps(before, replicas), _steps(gpus, replicas * widths[side])
        return WEIGHTS["replicas"] * steps[0] + WEIGHTS["gpus"] * steps[1]

    def key(prefills: int, decodes: int) -> tuple[float, int, int]:
        distance = round(fixed + of_side(0, prefills) + of_side(1, decodes), 9)
        if not is_apart:
            return distance, machinery + prefills.bit_length() - 1, prefills * max(widths)
        return distance, machinery + (prefills + decodes).bit_length() - 1, prefills * widths[0] + decodes * widths[1]

    return key


def stages_distance(author: PhaseStrategy, stages: int) -> float:
    """What so many stages count, beside all else in which the phases differ."""
    return WEIGHTS["pp"] * _steps(author.pp, stages)


def preference(author: Strategy, other: Strategy, *, has_ffn: bool = True) -> tuple[float, int, int, str]:
    """Sort key: the nearest first, of equally near ones the simplest, then those on the fewest GPUs, then any order."""
    return (
        round(distance(author, other, has_ffn=has_ffn), 9),
        complexity(other),
        gpu_count(other),
        other.model_dump_json(),
    )


def has_one_layout(prefill: PhaseStrategy, decode: PhaseStrategy) -> bool:
    """Whether both phases can run on weights that are loaded once."""
    return layout_key(prefill) == layout_key(decode)


def replicas_of(strategy: Strategy, phase: Phase) -> int:
    """Replicas that serve `phase`."""
    return strategy.of(phase).replicas or 1 if is_disaggregated(strategy) else strategy.dp


def _gpus(strategy: Strategy, phase: Phase) -> int:
    return replicas_of(strategy, phase) * phase_width(strategy.of(phase))
