"""What the performance model computes of a plan, once for all rules that ask for it.

Nothing is computed before a rule asks, and nothing of a graph in which another rule has found an error: such figures
would only repeat that error in other words. It judges nothing. What cannot be computed is raised, never passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from ..errors import InputError
from ..performance.layout import Layout, layout_from_view
from ..plan.performance import PerformanceEstimate
from ..plan.view import PlanView, as_mapping
from .base import Finding


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A layout and its estimate; neither where the graph is known to be at fault."""

    layout: Layout | None = None
    estimate: PerformanceEstimate | None = None


_NOTHING = Evaluation()
_Found = TypeVar("_Found")


def layout_of(view: PlanView) -> Layout:
    """The layout that the whole plan's graph shows.

    Raises:
        InputError: what cannot be read, by name.
    """
    return _once(view, layout_of, lambda: layout_from_view(view.whole))


def evaluation_of(view: PlanView) -> Evaluation:
    """The estimate of the plan, with its explanation where the plan claims one.

    Raises:
        InputError: what cannot be read or is not known, by name.
    """
    if not view.is_sound:
        return _NOTHING
    return _once(view, evaluation_of, lambda: _evaluate(view))


def check_timed(view: PlanView) -> tuple[Finding, ...]:
    """Nothing, once the plan has been timed, which no rule may have asked for: what is called valid can be estimated.

    Raises:
        InputError: what cannot be read or is not known, by name.
    """
    if evaluation_of not in view.memo:
        from ..performance.estimate import estimate_layout

        estimate_layout(layout_of(view), with_explanation=False)
    return ()


def _once(view: PlanView, key: object, compute: Callable[[], _Found]) -> _Found:
    """What `compute` gives, or raises, kept for whoever asks next."""
    if key not in view.memo:
        try:
            view.memo[key] = compute()
        except InputError as error:
            view.memo[key] = error
    found = view.memo[key]
    if isinstance(found, InputError):
        raise found
    return cast("_Found", found)


def _evaluate(view: PlanView) -> Evaluation:
    # Wanted only where a plan claims figures or states limits.
    from ..performance.estimate import estimate_layout

    layout = layout_of(view)
    # An explanation takes about as long again.
    is_claimed = "explanation" in as_mapping(view.raw.get("performance"))
    return Evaluation(layout, estimate_layout(layout, with_explanation=is_claimed))
