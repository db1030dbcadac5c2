"""The plan of an intent, in the builder's names."""

from __future__ import annotations

from shardwright.tools.autofix.intent import PlanIntent
from shardwright.tools.autofix.placing import MOST_DEVICES
from shardwright.tools.errors import InputError
from shardwright.tools.plan.builder import build_plan
from shardwright.tools.plan.document import Plan


def reference_plan(intent: PlanIntent) -> Plan | None:
    """The plan of a complete intent: legal if the strategy is; `None` if none can be built."""
    request = intent.request
    if request is None or request.strategy.gpu_count > MOST_DEVICES:
        return None
    try:
        return build_plan(request)
    except InputError:
        return None
