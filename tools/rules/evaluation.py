"""The estimate of a plan by the performance model, computed once for all rules.

Nothing is computed before a rule asks, and nothing for a graph with a known error: such figures would only repeat it.
Nothing is judged. What cannot be computed is raised, never ignored.
"""

from __future__ import annotations

from msgspec import Struct

from ..performance.layout import LoadedLayout, layout_from_view
from ..plan.performance import PerformanceEstimate
from ..plan.view import PlanView, as_mapping
from .base import Finding


class Evaluation(Struct, frozen=True):
    """A layout and its estimate."""

    layout: LoadedLayout
    estimate: PerformanceEstimate


def evaluation_of(view: PlanView) -> Evaluation | None:
    """The estimate of the plan, with those optional parts that the plan claims; `None` if the graph has a known error.

    Raises InputError: names what cannot be read or is not known.
    """
    return view.once(evaluation_of, lambda: _evaluate(view)) if view.is_sound else None


def check_timed(view: PlanView) -> tuple[Finding, ...]:
    """No findings; times the plan unless a rule did, so that a valid plan can always be estimated.

    Raises InputError: names what cannot be read or is not known.
    """
    if evaluation_of not in view.memo:
        from ..performance.estimate import estimate_layout

        estimate_layout(layout_from_view(view), ())
    return ()


def _evaluate(view: PlanView) -> Evaluation:
    # Imported only if a plan claims figures or states limits.
    from ..performance.estimate import OPTIONAL_PARTS, estimate_layout

    layout, claim = layout_from_view(view), as_mapping(view.raw.get("performance"))
    return Evaluation(layout, estimate_layout(layout, [part for part in OPTIONAL_PARTS if part in claim]))
