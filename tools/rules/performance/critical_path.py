"""A claimed critical path beside the computed one: which of its steps are left out, and what it adds up to.

Steps are known by their nodes' names; a path in other names is compared by the kinds of its steps and as a whole.
An excerpt (the largest steps, say) leaves nothing out: only a path that is else whole does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...plan.performance import PathStep
from ...plan.view import PlanView, as_list, as_mapping, as_str
from ..evaluation import evaluation_of
from .claims import claim_of, near, number_of

# A path that has this share of the other steps' time is a whole one.
_WHOLE = 0.9
# Less of a phase is no matter.
_LEAST_SHARE = 0.01
PHASES = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Steps that a claimed path leaves out, or what it adds up to, by the rule that names it."""

    rule: str
    phase: str
    what: str
    claimed_ms: float
    computed_ms: float


@dataclass(frozen=True, slots=True)
class _Step:
    node: str
    ms: float
    kind: str


@dataclass(frozen=True, slots=True)
class _Set:
    """Steps that a rule asks for, by their kind or by a word in their names."""

    rule: str
    what: str
    kind: str = ""
    word: str = ""

    def has(self, node: str, kind: str) -> bool:
        """Whether the step is one of them."""
        return kind == self.kind if self.kind else self.word in node.lower()


_SETS = (
    _Set("PE004", "communication", kind="communication"),
    _Set("PE008", "the router", word="router"),
    _Set("PE008", "routing", word="routing"),
    _Set("PE009", "the wait for other stages", kind="bubble"),
)


def left_out(view: PlanView) -> Iterator[LeftOut]:
    """What the claimed critical paths leave out, and those that do not add up to the computed ones."""
    claimed = as_mapping(claim_of(view).get("critical_path"))
    estimate = evaluation_of(view).estimate if claimed else None
    if estimate is None:
        return
    for phase in PHASES:
        computed = {step.node: step for step in getattr(estimate.critical_path, phase)}
        steps = list(_steps(claimed.get(phase), computed))
        if steps:
            yield from _of_phase(phase, steps, computed)


def _steps(claimed: object, computed: dict[str, PathStep]) -> Iterator[_Step]:
    for item in as_list(claimed):
        block = as_mapping(item)
        node, ms = as_str(block.get("node")) or "", number_of(block.get("ms"))
        known = computed[node].kind if node in computed else ""
        if ms is not None:
            yield _Step(node, ms, as_str(block.get("kind")) or known)


def _is_rounded_to_zero(step: _Step, computed: dict[str, PathStep]) -> bool:
    return step.node in computed and near(0.0, computed[step.node].ms)


def _of_phase(phase: str, steps: list[_Step], computed: dict[str, PathStep]) -> Iterator[LeftOut]:
    given = [step for step in steps if step.ms > 0.0 or _is_rounded_to_zero(step, computed)]
    absent = [wanted for wanted in _SETS if not any(wanted.has(step.node, step.kind) for step in given)]
    lost = {wanted: [step for step in computed.values() if wanted.has(step.node, step.kind)] for wanted in absent}
    without = {step.node for part in lost.values() for step in part}
    whole, total = sum(step.ms for step in computed.values()), sum(step.ms for step in steps)
    rest = sum(step.ms for node, step in computed.items() if node not in without)
    has_all_others = computed.keys() - without <= {step.node for step in steps}
    named = False
    for wanted, part in lost.items():
        lost_ms = sum(step.ms for step in part)
        if part and (has_all_others or (lost_ms > _LEAST_SHARE * whole and total >= _WHOLE * rest)):
            named = True
            yield LeftOut(wanted.rule, phase, wanted.what, 0.0, lost_ms)
    if not named and any(step.node not in computed for step in steps) and not near(total, whole):
        yield LeftOut("PE006", phase, "the whole path", total, whole)
