"""CO006: `reasoning` follows the order of deciding: model structure, PP/EP, TP/SP, and DP last.

Checks the names and order of the steps, each at most once; steps may be left out. Decisions are free text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from ...plan.document import ReasoningStepName
from ...plan.view import PlanView, as_list, as_mapping, as_str
from ..base import Example, Finding, Rule, Violation, set_top
from ..findings import Change

ORDER: tuple[ReasoningStepName, ...] = get_args(ReasoningStepName)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the first step that comes after one it must precede, or that occurs twice."""
    latest = -1
    named = [as_str(as_mapping(item).get("step")) for item in as_list(view.raw.get("reasoning"))]
    known = [name for name in named if name in ORDER]
    for position, name in enumerate(named):
        if name not in ORDER:
            continue
        place = ORDER.index(name)
        if place <= latest:
            what = "stands twice" if place == latest else f"comes after {ORDER[latest]}"
            yield Finding(
                "step-twice" if place == latest else "step-too-late",
                f"reasoning step {name} {what}; the order is {', '.join(ORDER)}",
                where=f"/reasoning/{position}",
                value=known,
                expected=[step for step in ORDER if step in known],
            )
            return
        latest = place


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Put the author's steps into the order of deciding; decisions of the same step are joined."""
    del violation
    decisions: dict[str, list[str]] = {}
    for item in as_list(view.raw.get("reasoning")):
        step, decision = as_str(as_mapping(item).get("step")), as_str(as_mapping(item).get("decision"))
        if step in ORDER and decision is not None and decision not in decisions.setdefault(step, []):
            decisions[step].append(decision)
    steps = [{"step": step, "decision": "; ".join(decisions[step])} for step in ORDER if step in decisions]
    yield Change("set", ("reasoning",), steps)


_STEPS = [{"step": step, "decision": "as in the strategy"} for step in (ORDER[0], ORDER[3], ORDER[1], ORDER[2])]

RULE = Rule(
    id="CO006",
    name="reasoning out of order",
    requirement=(
        "`reasoning` follows this order, each step at most once: model structure, structural parallelism (PP, EP), "
        "operator parallelism (TP, SP), data parallelism last."
    ),
    rationale=(
        "Memory decides PP and the experts decide EP; what is left inside a stage decides TP and SP; only then is it "
        "known how many replicas the devices hold. DP first leads to degrees that are multiplied, not mapped."
    ),
    source="003 §6",
    remedy="put the steps in this order",
    check=check,
    bad=Example("mla-tp2-ep2-pp2", (set_top("/reasoning", _STEPS),)),
    mend=mend,
)
