"""The distance between two strategies, which re-planning makes as small as the rules allow.

The distance is a weighted sum of steps: |log₂ of the ratio| of two numbers (a doubling or a halving is one step), or 1
for another label. Compared in each phase: every degree, the devices of attention, replicas and GPUs; whether an
operator runs on all devices of its stage, and the FFN on as many as attention; the exchange of sequence shards, and
each boundary between stages. Compared once: whether each replica serves one phase (disaggregated), and whether both
phases have one layout (weights that are loaded once serve both).

The weights are not measured. The unit is a doubling of the replicas of one phase; every other weight makes a comparison
come out as engineers decide it. `WEIGHTS` says which; tests/autofix/test_distance.py checks each.

Every term is the distance of two points on a line, of two labels, or of two sets, so the sum is a metric: never
negative, symmetric, 0 only for strategies that differ in nothing above, and no detour is shorter. Relaxations do not
count: one that the policy does not name is never an option. Nor do devices: which of the author's are kept follows
from the widths.
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
    # As much, since devices idle inside a stage (for attention, or for the FFN) are idle all the same.
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
    # They split an operator as `tp` does: one replaces the other before a stage gets narrower.
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
# One compared feature: its name, the key of its weight, and its value (`None`: absent; an even cut: no sizes).
_Feature = tuple[str, str, int | str | Cut | None]


class Move(Struct, frozen=True):
    """One feature in which two strategies differ (`prefill.tp`, `decode.replicas`, …), and its part of the distance."""

    what: str
    before: str
    after: str
    cost: float

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after} ({self.cost:.2g})"


def moves(before: Strategy, after: Strategy, *, has_ffn: bool = True) -> tuple[Move, ...]:
    """Every feature in which `after` differs from `before`, degrees of prefill first.

    `has_ffn`: whether the model has a dense FFN or a shared expert.
    """
    return tuple(_compared(_features(before, has_ffn=has_ffn), _features(after, has_ffn=has_ffn)))


def distance(before: Strategy, after: Strategy, *, has_ffn: bool = True) -> float:
    """The distance between two strategies; 0 if no compared feature differs."""
    return sum(move.cost for move in moves(before, after, has_ffn=has_ffn))


def phase_distance(before: PhaseStrategy, after: PhaseStrategy, phase: Phase, *, has_ffn: bool = True) -> float:
    """The part of the distance that the degrees of one phase make up."""
    features = (_phase_features(degrees, phase, has_ffn=has_ffn) for degrees in (before, after))
    return sum(move.cost for move in _compared(*features))


def _features(strategy: Strategy, *, has_ffn: bool) -> Iterator[_Feature]:
    """The compared features of a strategy: degrees of each phase, then replicas, GPUs and how the phases share."""
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


def _compared(first: Iterable[_Feature], second: Iterable[_Feature]) -> Iterator[Move]:
    """The features in which two strategies differ; one that is `None` in either is not compared."""
    for (what, weight, before), (_, _, after) in zip(first, second, strict=True):
        if before != after and before is not None and after is not None:
            cost = WEIGHTS[weight] * _difference(before, after)
            if cost:
                yield Move(what, _shown(before), _shown(after), cost)


def _difference(before: int | str | Cut, after: int | str | Cut) -> float:
    """The steps between two values of a feature."""
    if isinstance(before, int) and isinstance(after, int):
        return _steps(before, after)
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(_boundaries(before) ^ _boundaries(after))
    return 1


def _steps(before: int, after: int) -> float:
    """The number of doublings or halvings between two numbers."""
    return abs(log2(after / before))


def _boundaries(cut: Cut) -> frozenset[int]:
    """First layer of each stage after the first of a stated cut; an even cut (no sizes) has none."""
    return frozenset([*accumulate(cut)][:-1])


def _shown(value: int | str | Cut) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value)) or "even"
    return str(value)


def pair_preference(
    author: Strategy, prefill: PhaseStrategy, decode: PhaseStrategy, degrees: float, *, is_apart: bool
) -> Callable[[int, int], tuple[float, int, int]]:
    """`preference` without its last part, as a function of prefill and decode replicas; no strategy has to be built.

    `degrees` is the part of the distance that the degrees of both phases make up. With `is_apart` each phase has its
    own replicas; else both share them, and their number is passed twice.
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
    """The part of the distance that the number of stages makes up."""
    return WEIGHTS["pp"] * _steps(author.pp, stages)


def preference(author: Strategy, strategy: Strategy, *, has_ffn: bool = True) -> tuple[float, int, int, str]:
    """Sort key: nearest first, then simplest, then fewest GPUs; the last part only makes the order definite."""
    return (
        round(distance(author, strategy, has_ffn=has_ffn), 9),
        complexity(strategy),
        gpu_count(strategy),
        strategy.model_dump_json(),
    )


def has_one_layout(prefill: PhaseStrategy, decode: PhaseStrategy) -> bool:
    """Whether both phases can share weights that are loaded once."""
    return layout_key(prefill) == layout_key(decode)


def replicas_of(strategy: Strategy, phase: Phase) -> int:
    """Replicas that serve `phase`."""
    return strategy.of(phase).replicas or 1 if is_disaggregated(strategy) else strategy.dp


def _gpus(strategy: Strategy, phase: Phase) -> int:
    return replicas_of(strategy, phase) * phase_width(strategy.of(phase))
