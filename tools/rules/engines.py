"""Which serving engine a plan names, and how grave it is that an engine would refuse the plan.

It knows the three engines whose rules the EN family states. A version is read where a rule tells versions apart; one
that is not stated, or has no number, counts as the newest. An engine that it does not know counts as none.
"""

from __future__ import annotations

import re

from ..engines.names import TITLES, Engine, engine_of
from ..plan.view import PlanView, as_str
from .base import Severity

_MAX_READ = 200
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


def named_engine(view: PlanView) -> Engine | None:
    """The engine that the plan is for: `serving.engine`."""
    return engine_of(as_str(view.serving.get("engine")))


def named_version(view: PlanView) -> str | None:
    """The version of the engine that the plan is for: `serving.engine_version`."""
    return as_str(view.serving.get("engine_version"))


def release(text: str | None) -> tuple[int, int, int] | None:
    """The numbers of the version that `text` names (`v0.5.8.post1`: 0, 5, 8); `None` where it names none."""
    match = _RELEASE.search((text or "")[:_MAX_READ])
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def gravity(view: PlanView, *enforcing: Engine, accepting: tuple[Engine, ...] = ()) -> Severity | None:
    """`None` where the plan names an engine that accepts what was found, an error where it names one that refuses it.

    A warning where no engine is named, or one of which neither is known.
    """
    engine = named_engine(view)
    if engine in accepting:
        return None
    return "error" if engine in enforcing else "warning"


def title(view: PlanView) -> str:
    """The engine that the plan names, as its makers write it; `an engine` where it names none."""
    engine = named_engine(view)
    return "an engine" if engine is None else TITLES[engine]
