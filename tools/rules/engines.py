"""Which serving engine a plan names.

It knows the engines whose rules the EN family states. A version is read where a rule tells versions apart; one that is
not stated, or has no number, counts as the newest. An engine that it does not know counts as none.
"""

from __future__ import annotations

from ..engines.engine import Engine
from ..engines.names import JUDGED, engine_of
from ..plan.view import PlanView, as_str


def named_engine(view: PlanView) -> Engine | None:
    """The engine that the plan is for: `serving.engine`."""
    name = engine_of(as_str(view.serving.get("engine")))
    return None if name is None else JUDGED[name]
