"""Which serving engine a plan names, and how grave it is that an engine would refuse the plan.

It knows the engines whose rules the EN family states. A version is read where a rule tells versions apart; one that is
not stated, or has no number, counts as the newest. An engine that it does not know counts as none.
"""

from __future__ import annotations

from ..engines.engine import Engine
from ..engines.names import JUDGED, engine_of
from ..plan.view import PlanView, as_str
from .base import Severity


def named_engine(view: PlanView) -> Engine | None:
    """The engine that the plan is for: `serving.engine`."""
    name = engine_of(as_str(view.serving.get("engine")))
    return None if name is None else JUDGED[name]


def gravity(view: PlanView, *, refuses: bool | None) -> Severity | None:
    """How grave a finding is that the named engine refuses: an error; or takes: `None`.

    A warning where it is not known which (`refuses` is `None`), or no engine is named.
    """
    if named_engine(view) is None or refuses is None:
        return "warning"
    return "error" if refuses else None


def title(view: PlanView) -> str:
    """The engine that the plan names, as its makers write it; `an engine` where it names none."""
    engine = named_engine(view)
    return "an engine" if engine is None else engine.title
