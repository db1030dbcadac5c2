"""What the performance model computes of a plan, once for all rules that ask for it.

Nothing is computed before a rule asks, and nothing of a graph in which another rule has found an error: such figures
would only repeat that error in other words. It judges nothing. What cannot be computed is raised, never passed over.
"""

from __future__ import annotations

from msgspec import Struct

from ..performance.layout import LoadedLayout, layout_from_view
from ..plan.performance import PerformanceEstimate
from ..plan.view import PlanView, as_mapping
from .base import Finding


class Evaluation(Struct, frozen=True):
    """A layout and its estimate; neither where the graph is known to be at fault."""

    layout: LoadedLayout | None = None
    estimate: PerformanceEstimate | None = None


_NOTHING = Evaluation()


def evaluation_of(view: PlanView) -> Evaluation:
    """The estimate of the plan, with its explanation where the plan claims one.

    Raises InputError: what cannot be read or is not known, by name.
    """
    if not view.is_sound:
        return _NOTHING
    return view.once(evaluation_of, lambda: _evaluate(view))


def check_timed(view: PlanView) -> tuple[Finding, ...]:
    """Nothing, once the plan has been timed, which no rule may have asked for: what is called valid can be estimated.

    Raises InputError: what cannot be read or is not known, by name.
    """
    if evaluation_of not in view.memo:
        from ..performance.estimate import estimate_layout

        estimate_layout(layout_from_view(view), with_explanation=False)
    return ()


def _evaluate(view: PlanView) -> Evaluation:
    # Wanted only where a plan claims figures or states limits.
    from ..performance.estimate import estimate_layout

    layout = layout_from_view(view)
    # An explanation takes about as long again.
    is_claimed = "explanation" in as_mapping(view.raw.get("performance"))
    return Evaluation(layout, estimate_layout(layout, with_explanation=is_claimed))
