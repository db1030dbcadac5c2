"""How a claimed figure is mended: the whole of `performance` is computed again."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InputError
from ...plan.view import PlanView
from ..base import Violation
from ..findings import Change


def recomputed(view: PlanView, violation: Violation) -> Iterator[Change]:
    """The plan's own estimate in place of what it claims; nothing where the plan cannot be estimated (yet)."""
    del violation
    yield from view.once(recomputed, lambda: tuple(_recomputed(view)))


def _recomputed(view: PlanView) -> Iterator[Change]:
    # Wanted only where a claim is off.
    from ...performance.estimate import estimate

    try:
        figures = estimate(dict(view.raw)).model_dump(mode="json", exclude_none=True)
    except InputError:
        return
    yield Change("set", ("performance",), figures)
