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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import log2

from ..plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ..plan.placement import attention_width, ffn_width, gpu_count, is_disaggregated, phase_width, stage_width
from ..search.ranking import complexity, pair_complexity

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


@dataclass(frozen=True, slots=True)
class Move:
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
    found = [move for phase in PHASES for move in _phase_moves(one, other, phase, has_ffn=has_ffn)]
    found += list(deployment_moves(one, other))
    return tuple(found)


def distance(one: Strategy, other: Strategy, *, has_ffn: bool = True) -> float:
    """The distance of two strategies: 0 where they differ in nothing that counts."""
    return sum(move.cost for move in moves(one, other, has_ffn=has_ffn))


def phase_distance(one: PhaseStrategy, other: PhaseStrategy, phase: Phase, *, has_ffn: bool = True) -> float:
    """The part of the distance that lies in the degrees of one phase."""
    return sum(move.cost for move in _degree_moves(one, other, phase, has_ffn=has_ffn))


def deployment_moves(one: Strategy, other: Strategy) -> Iterator[Move]:
    """What differs beside the degrees of the phases: replicas, GPUs, whether prefill and decode are apart."""
    for phase in PHASES:
        pair = replicas_of(one, phase), replicas_of(other, phase)
        yield from _step(f"{phase}.replicas", *pair, WEIGHTS["replicas"])
        yield from _step(f"{phase} GPUs", _gpus(one, phase), _gpus(other, phase), WEIGHTS["gpus"])
    apart = is_disaggregated(one), is_disaggregated(other)
    if apart[0] != apart[1]:
        before, after = ("apart" if is_apart else "together" for is_apart in apart)
        yield Move("prefill and decode", before, after, WEIGHTS["disaggregation"])
    alike = has_one_layout(one.prefill, one.decode), has_one_layout(other.prefill, other.decode)
    if alike[0] != alike[1]:
        before, after = ("one" if is_alike else "two" for is_alike in alike)
        yield Move("layouts", before, after, WEIGHTS["layout"])


class PairDistance:
    """`preference` of any number of replicas of one pair of degrees, less its last part: no strategy has to be made.

    `degrees` is the part of the distance that lies in the degrees of the two phases; `is_apart`: each has its replicas.
    """

    def __init__(
        self, author: Strategy, prefill: PhaseStrategy, decode: PhaseStrategy, degrees: float, *, is_apart: bool
    ) -> None:
        self._widths = phase_width(prefill), phase_width(decode)
        self._stated = tuple((replicas_of(author, phase), _gpus(author, phase)) for phase in PHASES)
        self._is_apart = is_apart
        self._complexity = pair_complexity(prefill, decode)
        self._complexity_apart = pair_complexity(prefill, decode.model_copy(update={"replicas": 1}))
        flips = is_disaggregated(author) != is_apart
        changes_layout = has_one_layout(author.prefill, author.decode) != has_one_layout(prefill, decode)
        self._fixed = degrees + WEIGHTS["disaggregation"] * flips + WEIGHTS["layout"] * changes_layout
        self._sides: dict[tuple[int, int], float] = {}

    def of(self, prefill: int, decode: int) -> tuple[float, int, int]:
        """The key with so many replicas for each phase: where these are the same ones, the same number twice."""
        distance = round(self._fixed + self._side(0, prefill) + self._side(1, decode), 9)
        if not self._is_apart:
            return distance, self._complexity + prefill.bit_length() - 1, prefill * max(self._widths)
        pair = self._complexity if prefill == decode else self._complexity_apart
        return (
            distance,
            pair + (prefill + decode).bit_length() - 1,
            prefill * self._widths[0] + decode * self._widths[1],
        )

    def _side(self, side: int, replicas: int) -> float:
        """What replicas and GPUs of one phase count."""
        known = self._sides.get((side, replicas))
        if known is None:
            before, gpus = self._stated[side]
            known = WEIGHTS["replicas"] * _steps(before, replicas) + WEIGHTS["gpus"] * _steps(
                gpus, replicas * self._widths[side]
            )
            self._sides[side, replicas] = known
        return known


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


def layout_key(phase: PhaseStrategy) -> tuple[object, ...]:
    """Equal for two phases that can run on weights that are loaded once: alike but for ranks along the sequence."""
    along = phase.sp * (phase.kv_sp or 1) * phase.tp
    return (phase.pp, phase.stage_layers, along, phase.ep, phase.tp_ffn, phase.attention_dp or 1, phase.tp_expert or 1)


def replicas_of(strategy: Strategy, phase: Phase) -> int:
    """Replicas that serve `phase`."""
    own = strategy.prefill if phase == "prefill" else strategy.decode
    return own.replicas or 1 if is_disaggregated(strategy) else strategy.dp


def _gpus(strategy: Strategy, phase: Phase) -> int:
    own = strategy.prefill if phase == "prefill" else strategy.decode
    return replicas_of(strategy, phase) * phase_width(own)


def _phase_moves(one: Strategy, other: Strategy, phase: Phase, *, has_ffn: bool) -> Iterator[Move]:
    pair = (one.prefill, other.prefill) if phase == "prefill" else (one.decode, other.decode)
    yield from _degree_moves(*pair, phase, has_ffn=has_ffn)


def _degree_moves(one: PhaseStrategy, other: PhaseStrategy, phase: Phase, *, has_ffn: bool) -> Iterator[Move]:
    for name in _DEGREES:
        yield from _step(f"{phase}.{name}", getattr(one, name) or 1, getattr(other, name) or 1, WEIGHTS[name])
    yield from _step(f"{phase} attention devices", attention_width(one), attention_width(other), WEIGHTS["attention"])
    yield from _idle(f"{phase} attention", one, other, attention_width)
    if has_ffn:
        yield from _idle(f"{phase} FFN", one, other, ffn_width)
        before, after = ("as attention" if ffn_width(own) == attention_width(own) else "apart" for own in (one, other))
        if before != after:
            yield Move(f"{phase} FFN devices", before, after, WEIGHTS["follow"])
    if one.sp > 1 and other.sp > 1 and _exchange(one) != _exchange(other):
        yield Move(f"{phase}.sp_kind", _exchange(one), _exchange(other), WEIGHTS["exchange"])
    changed = len(boundaries(one) ^ boundaries(other))
    if changed:
        yield Move(f"{phase}.stage_layers", _cut(one), _cut(other), WEIGHTS["boundary"] * changed)


def _step(what: str, before: int, after: int, weight: float) -> Iterator[Move]:
    if before != after:
        yield Move(what, str(before), str(after), weight * _steps(before, after))


def _steps(before: int, after: int) -> float:
    """Doublings or halvings from one number to the other."""
    return abs(log2(after / before))


def _idle(what: str, one: PhaseStrategy, other: PhaseStrategy, width: Callable[[PhaseStrategy], int]) -> Iterator[Move]:
    """Whether an operator of that width leaves devices of its stage idle in one of two strategies alone."""
    words = ["part of the stage" if width(phase) < stage_width(phase) else "all of the stage" for phase in (one, other)]
    if words[0] != words[1]:
        yield Move(what, words[0], words[1], WEIGHTS["share"])


def _exchange(phase: PhaseStrategy) -> str:
    return phase.sp_kind or "all_gather"


def boundaries(phase: PhaseStrategy) -> frozenset[int]:
    """First layers of the stages after the first, where the cut is stated; an even cut counts as none."""
    return frozenset([*accumulate(phase.stage_layers)][:-1]) if phase.stage_layers else frozenset()


def _cut(phase: PhaseStrategy) -> str:
    return "+".join(map(str, phase.stage_layers)) if phase.stage_layers else "even"
