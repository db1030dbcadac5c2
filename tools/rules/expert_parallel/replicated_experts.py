"""EP008: EP distributes experts; it copies none, and it multiplies with neither TP nor PP.

Reports MoE operators that host every expert equally often, more than once, and a declared GPU count that is ep times
the devices in use, or ep times tp (and pp). Copies under `redundant_experts` are allowed as long as the groups still
differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.degrees import declared_degree
from ...plan.view import PHASES, PlanView
from ..base import Edit, Example, Finding, Rule
from ..devices.counting import wrong_count
from ..expert_groups import copies, gaps, listed
from ..layer_specs import specs_of
from ..reading import label


def _copies(view: PlanView) -> Iterator[Finding]:
    for operator in view.of_type("MoENode"):
        groups, times = operator.children_of_type("ExpertNode"), copies(operator)
        # Redundant experts may copy every expert, but all experts in every group is no distribution.
        total = next((spec.moe.experts for _, spec in specs_of(view, operator) if spec.moe is not None), 0)
        # If some experts are hosted nowhere, not every expert is copied (EP005).
        if (
            times < 2
            or gaps(listed(operator), total)
            or ("redundant_experts" in view.relaxations and times < len(groups))
        ):
            continue
        yield Finding(
            "every-expert-copied",
            f"the {len(groups)} groups of {label(operator)} host every expert {times} times: EP is no replication",
            where=operator,
            nodes=groups,
            value=times,
            expected=1,
            remedy="spread the experts over all groups, each expert in one",
        )


def _multiplied_count(view: PlanView) -> Iterator[Finding]:
    counts = wrong_count(view)
    if counts is None:
        return
    declared, used = counts
    for phase in PHASES:
        ep, tp, pp = (declared_degree(view, phase, name) or 1 for name in ("ep", "tp", "pp"))
        ways = {"the devices in use × ep": used * ep, "ep × tp": ep * tp, "ep × tp × pp": ep * tp * pp}
        how = next((name for name, count in ways.items() if count == declared), None)
        if ep > 1 and how is not None:
            yield Finding(
                "multiplied-count",
                f"strategy.gpu_count is {declared}, {how} ({phase}); experts live on the {used} devices that the graph "
                "uses for everything else",
                where="/strategy/gpu_count",
                value=declared,
                expected=used,
                remedy=f"declare the {used} devices of the graph: EP takes the devices of its stage and adds none",
            )
            return


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every use of EP as a factor."""
    yield from _copies(view)
    yield from _multiplied_count(view.whole)


_COPIES = tuple(
    Edit("set", f"r0.{phase}.s0.b0.moe.e{group}", "experts", [[8 * (group % 2), 8 * (group % 2) + 7]])
    for phase in PHASES
    for group in range(4)
)

RULE = Rule(
    id="EP008",
    name="EP as a factor",
    requirement="EP is not a replication factor and is not multiplied with TP or PP.",
    rationale=(
        "Experts take the devices that attention already uses, one group on each: EP adds no device and copies no "
        "weight. Counted as a factor it claims devices that do nothing, or memory that was meant for other experts."
    ),
    source="002 §5, 003 §3, §4",
    fix="re-plan",
    remedy="use one group of distinct experts on each device of the stage",
    visits="parts",
    check=check,
    bad=Example("moe-ep4", _COPIES),
)
