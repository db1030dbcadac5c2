"""The plan of another strategy for the same author: with all that can stay his, as a document, and judged."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

from ..errors import InputError
from ..plan.document import Strategy
from ..plan.placement import evening_copies
from ..plan.view import PlanView
from ..validate import ValidationReport, validate
from .differences import kept_blocks
from .intent import PlanIntent
from .target import Target, reference_for, target_of


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """The plan of a strategy with all that can stay the author's: as a target, as a document, and its report."""

    target: Target
    document: dict[str, Any]
    report: ValidationReport


def built_plan(intent: PlanIntent, view: PlanView, strategy: Strategy) -> BuiltPlan | None:
    """The plan of `strategy` for the author of `view`; `None` where it cannot be built."""
    if intent.architecture is None:
        return None
    experts, copies = intent.architecture.num_experts, intent.redundant_experts
    if copies:
        # As many more as make all expert groups of the new degrees alike (rule EN003).
        copies += evening_copies(experts + copies, lcm(strategy.prefill.ep, strategy.decode.ep))
    request = intent.request_for(strategy, copies if experts else 0)
    if request is None:
        return None
    try:
        reference = reference_for(view, request, intent.architecture)
    except InputError:
        return None
    found = _checked(view, target_of(view, reference))
    if found.report.valid:
        return found
    # What the author decided inside operators may not go with the new degrees: the builder's way does.
    other = _checked(view, target_of(view, reference, as_built=True))
    return other if other.report.valid else found


def _checked(view: PlanView, target: Target) -> BuiltPlan:
    document = {
        **kept_blocks(view.raw, target.header),
        "nodes": [*map(dict, target.nodes.values()), *(dict(view.by_id[name].raw) for name in sorted(target.shown))],
        "edges": [dict(edge) for edge in target.edges.values()],
    }
    return BuiltPlan(target, document, validate(document))
