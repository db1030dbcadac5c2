"""How far one strategy is from another: what re-planning makes as small as the rules allow.

The distance is a sum of steps, each |log₂ of the ratio| of one number (a doubling or a halving is one step) times its
weight:

- in each phase: `tp` 0.6, `tp_ffn` 0.3, `ep` 0.3, devices that attention runs on 0.4 (these move together where a stage
  is widened, for 1.3 in all), `pp` 1.35, `sp`, `attention_dp`, `kv_sp`, `tp_expert` 0.6 each;
- in each phase: 1.1 where attention runs on all devices of a stage in one of the two and not in the other, and the same
  for the FFN, so that a stage is widened as a whole unless a degree is not legal;
- in each phase: 0.5 where the FFN runs on as many devices as attention in one of the two and not in the other: one TP
  for both operators is one decision, so that where it is not legal for one of them both follow;
- replicas that serve each phase: 1 (so that a doubled `dp` is 2);
- GPUs that serve each phase: 1.1 (what was to be used is used otherwise before it is left idle);
- 6 where one of the two has replicas of one phase each (disaggregated) and the other has not;
- 2 where in one of the two both phases have one layout (weights that are loaded once serve both) and in the other not;
- 0.5 for each phase that exchanges its sequence shards otherwise (`sp_kind`);
- 0.1 for each stage boundary that one of the two has and the other has not, in each phase.

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

WEIGHTS = {
    "tp": 0.6, "tp_ffn": 0.3, "ep": 0.3, "pp": 1.35, "sp": 0.6, "attention_dp": 0.6, "kv_sp": 0.6, "tp_expert": 0.6,
}  # fmt: skip
ATTENTION_WEIGHT = 0.4
SHARE_WEIGHT = 1.1
FOLLOW_WEIGHT = 0.5
REPLICAS_WEIGHT = 1.0
GPUS_WEIGHT = 1.1
FLIP_WEIGHT = 6.0
LAYOUT_WEIGHT = 2.0
EXCHANGE_WEIGHT = 0.5
BOUNDARY_WEIGHT = 0.1


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
        yield from _step(f"{phase}.replicas", *pair, REPLICAS_WEIGHT)
        yield from _step(f"{phase} GPUs", _gpus(one, phase), _gpus(other, phase), GPUS_WEIGHT)
    apart = is_disaggregated(one), is_disaggregated(other)
    if apart[0] != apart[1]:
        before, after = ("apart" if is_apart else "together" for is_apart in apart)
        yield Move("prefill and decode", before, after, FLIP_WEIGHT)
    alike = has_one_layout(one.prefill, one.decode), has_one_layout(other.prefill, other.decode)
    if alike[0] != alike[1]:
        before, after = ("one" if is_alike else "two" for is_alike in alike)
        yield Move("layouts", before, after, LAYOUT_WEIGHT)


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
        self._fixed = degrees + FLIP_WEIGHT * flips + LAYOUT_WEIGHT * changes_layout
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
            known = REPLICAS_WEIGHT * _steps(before, replicas) + GPUS_WEIGHT * _steps(
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
    for name, weight in WEIGHTS.items():
        yield from _step(f"{phase}.{name}", getattr(one, name) or 1, getattr(other, name) or 1, weight)
    yield from _step(f"{phase} attention devices", attention_width(one), attention_width(other), ATTENTION_WEIGHT)
    yield from _idle(f"{phase} attention", one, other, attention_width)
    if has_ffn:
        yield from _idle(f"{phase} FFN", one, other, ffn_width)
        before, after = ("as attention" if ffn_width(own) == attention_width(own) else "apart" for own in (one, other))
        if before != after:
            yield Move(f"{phase} FFN devices", before, after, FOLLOW_WEIGHT)
    if one.sp > 1 and other.sp > 1 and _exchange(one) != _exchange(other):
        yield Move(f"{phase}.sp_kind", _exchange(one), _exchange(other), EXCHANGE_WEIGHT)
    changed = len(boundaries(one) ^ boundaries(other))
    if changed:
        yield Move(f"{phase}.stage_layers", _cut(one), _cut(other), BOUNDARY_WEIGHT * changed)


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
        yield Move(what, words[0], words[1], SHARE_WEIGHT)


def _exchange(phase: PhaseStrategy) -> str:
    return phase.sp_kind or "all_gather"


def boundaries(phase: PhaseStrategy) -> frozenset[int]:
    """First layers of the stages after the first, where the cut is stated; an even cut counts as none."""
    return frozenset([*accumulate(phase.stage_layers)][:-1]) if phase.stage_layers else frozenset()


def _cut(phase: PhaseStrategy) -> str:
    return "+".join(map(str, phase.stage_layers)) if phase.stage_layers else "even"
