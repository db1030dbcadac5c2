"""What the performance model computes of a plan, once for all rules that ask for it.

Nothing is computed before a rule asks, and nothing of a graph in which another rule has found an error: such figures
would only repeat that error in other words. It judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..performance.layout import Layout, layout_from_view
from ..performance.memory import fits
from ..plan.performance import PerformanceEstimate
from ..plan.view import PlanView, as_mapping


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A layout and its estimate. Without an estimate `unknown` says which fact is missing.

    `unknown` is empty where the rule of what cannot be read names it (ST001, PH001, ME001).
    """

    layout: Layout | None = None
    estimate: PerformanceEstimate | None = None
    unknown: str = ""


_NOTHING = Evaluation()
# Blocks that take about as long again to compute.
_FULL_ONLY = ("explanation", "under_load")


def layout_of(view: PlanView) -> Layout:
    """The layout that the whole plan's graph shows.

    Raises:
        InputError: what cannot be read, by name.
    """
    found = view.memo.get(layout_of)
    if found is None:
        try:
            found = layout_from_view(view.whole)
        except InputError as error:
            found = error
        view.memo[layout_of] = found
    if isinstance(found, InputError):
        raise found
    assert isinstance(found, Layout)
    return found


def evaluation_of(view: PlanView) -> Evaluation:
    """The estimate of the plan, with its explanation where the plan claims one."""
    if not view.is_sound:
        return _NOTHING
    found = view.memo.get(evaluation_of)
    if not isinstance(found, Evaluation):
        found = view.memo[evaluation_of] = _evaluate(view)
    return found


def _evaluate(view: PlanView) -> Evaluation:
    try:
        layout = layout_of(view)
        fits(layout)
    except InputError:
        return _NOTHING
    # Wanted only where a plan claims figures or states limits.
    from ..performance.estimate import estimate_layout

    try:
        return Evaluation(layout, estimate_layout(layout, with_explanation=_wants_all(view)))
    except InputError as error:
        return Evaluation(layout, None, str(error))


def _wants_all(view: PlanView) -> bool:
    """Whether more than the plain estimate is asked for: a claimed explanation or load, or a limit on a percentile."""
    claim = as_mapping(view.raw.get("performance"))
    statistics = (view.workload.get(name) for name in ("ttft_statistic", "tpot_statistic"))
    return not claim.keys().isdisjoint(_FULL_ONLY) or any(name not in (None, "mean") for name in statistics)
