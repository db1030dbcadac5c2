"""Compares a claimed critical path, and a claimed effect of more GPUs, with what the performance model computes.

Steps are matched by node names; a path with other names is compared by the kinds of its steps and as a whole. Only an
otherwise complete path can leave something out, not an excerpt (the largest steps, say).

Two times get divided by degrees: that of the model on one device, or the plan's own. The explanation that fits is
named; whether a figure is off was decided before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct

from ...performance.layout import LoadedLayout, make_layout
from ...plan.document import PhaseStrategy, Strategy
from ...plan.performance import CriticalPath, LatencyEstimate, PathStep
from ...plan.view import PHASES, PlanView, as_list, as_mapping, as_str
from ..evaluation import evaluation_of
from .claims import Fault, Figure, claim_of, near, number_of

# Where a claim states the critical paths, by phase.
PATH = "/performance/critical_path"
# A path with this share of the other steps' time counts as complete.
_WHOLE = 0.9
# Smaller shares of a phase do not matter.
_LEAST_SHARE = 0.01


class _Step(Struct, frozen=True):
    node: str
    ms: float
    kind: str


class _Set(Struct, frozen=True):
    """Steps that a rule asks for, by kind or by a word in their names."""

    rule: str
    what: str
    kind: str = ""
    word: str = ""

    def has(self, node: str, kind: str) -> bool:
        """Whether a step of this node and kind belongs to the set."""
        return kind == self.kind if self.kind else self.word in node.lower()


_SETS = (
    _Set("PE004", "communication", kind="communication"),
    _Set("PE008", "the router", word="router"),
    _Set("PE008", "routing", word="routing"),
    _Set("PE009", "the wait for other stages", kind="bubble"),
)


def left_out(view: PlanView, paths: CriticalPath) -> Iterator[Fault]:
    """Steps of `paths` that the claimed critical paths leave out, and paths whose sum differs from the computed one."""
    claimed = as_mapping(claim_of(view).get("critical_path"))
    for phase in PHASES:
        computed = {step.node: step for step in getattr(paths, phase)}
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


def _of_phase(phase: str, steps: list[_Step], computed: dict[str, PathStep]) -> Iterator[Fault]:
    present = [step for step in steps if step.ms > 0.0 or _is_rounded_to_zero(step, computed)]
    absent = [wanted for wanted in _SETS if not any(wanted.has(step.node, step.kind) for step in present)]
    lost = {wanted: [step for step in computed.values() if wanted.has(step.node, step.kind)] for wanted in absent}
    without = {step.node for part in lost.values() for step in part}
    whole, total = sum(step.ms for step in computed.values()), sum(step.ms for step in steps)
    remaining = sum(step.ms for node, step in computed.items() if node not in without)
    has_all_others = computed.keys() - without <= {step.node for step in steps}
    named = False
    for wanted, part in lost.items():
        lost_ms = sum(step.ms for step in part)
        if part and (has_all_others or (lost_ms > _LEAST_SHARE * whole and total >= _WHOLE * remaining)):
            named = True
            yield Fault(wanted.rule, f"{PATH}/{phase}", f"critical_path.{phase}: {wanted.what}", 0.0, lost_ms)
    if not named and any(step.node not in computed for step in steps) and not near(total, whole):
        yield Fault("PE006", f"{PATH}/{phase}", f"critical_path.{phase}: the whole path", total, whole)


# A divided time matches the quotient except for rounding; farther off it is chance.
_CLOSE = 0.01
_DEGREES = ("tp", "pp", "sp", "ep", "tp_ffn", "attention_dp")


def scaled_by(view: PlanView, figure: Figure, phase: str) -> str | None:
    """What the claimed latency was divided by, in words; `None` if no product of degrees fits."""
    evaluation = evaluation_of(view)
    if evaluation is None or figure.claimed <= 0.0:
        return None
    degrees = _degrees(evaluation.layout, phase)
    products = {
        " × ".join(f"{name} {degrees[name]}" for name in names): math.prod(degrees[name] for name in names)
        for count in range(len(degrees), 0, -1)
        for names in combinations(degrees, count)
    }
    alone = figure_on_one_device(view, evaluation.layout, figure.place[-1])
    for base, what in ((alone, "the time on one device"), (figure.computed, "the time of the critical path")):
        for words, product in products.items():
            if base is not None and abs(figure.claimed * product - base) <= _CLOSE * base:
                return f"{what}, {base:.4g}, divided by {words}"
    return None


def _degrees(layout: LoadedLayout, phase: str) -> dict[str, int]:
    stated = layout.phase("prefill" if phase == "prefill" else "decode").degrees
    degrees = {name: getattr(stated, name) or 1 for name in _DEGREES} | {"dp": len(layout.replicas)}
    return {name: value for name, value in degrees.items() if value > 1}


def figure_on_one_device(view: PlanView, layout: LoadedLayout, name: str) -> float | None:
    """The named latency of the same model and load on one device, whether it fits there or not; `None` if unknown."""
    value = getattr(view.once(figure_on_one_device, lambda: _latency_on_one_device(layout)), name, None)
    return value if isinstance(value, float) else None


def _latency_on_one_device(layout: LoadedLayout) -> LatencyEstimate:
    from ...performance.estimate import estimate_layout

    workload = layout.setting.workload
    share = math.ceil(workload.concurrency / max(1, len(layout.decode_replicas)))
    setting = layout.setting.with_workload(workload.model_copy(update={"concurrency": share}))
    alone = make_layout(setting, Strategy(dp=1, gpu_count=1, prefill=PhaseStrategy(), decode=PhaseStrategy()))
    return estimate_layout(alone, ()).latency
