"""PH001: prefill and decode are both there and distinct: in every replica, or across two kinds of replica (R14).

Reports replicas without a phase that they should serve, a mixture of whole and split replicas, and a second prefill.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PHASES, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import names


def _without(message_id: str, replicas: list[NodeView], missing: str, why: str) -> Finding:
    return Finding(
        message_id,
        f"replica {names(replicas, 4)} has no {missing} phase{why}",
        where=replicas,
        expected=missing,
        remedy=f"add the {missing} branch",
        lacks=("PhaseNode",),
    )


def _missing(view: PlanView) -> Iterator[Finding]:
    served = {replica.position: view.served.get(replica.position, {}) for replica in view.replicas}
    kinds = {position: [name for name in PHASES if name in phases] for position, phases in served.items()}
    whole = [replica for replica in view.replicas if len(kinds[replica.position]) == 2]
    idle = [replica for replica in view.replicas if not kinds[replica.position]]
    for replica in idle:
        yield _without("no-phase", [replica], "prefill or decode", "")
    halves = {name: [replica for replica in view.replicas if kinds[replica.position] == [name]] for name in PHASES}
    for name, other in (PHASES, PHASES[::-1]):
        lacking = halves[name]
        if lacking and whole:
            yield _without(
                "half-served", lacking, other, f"; {label(whole[0])} serves both phases, so each replica must"
            )
        elif lacking and not halves[other]:
            yield _without("served-nowhere", lacking, other, " and no other replica serves it")


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every replica that lacks a phase or has a second prefill."""
    if not view.replicas:
        yield Finding(
            "no-replica",
            "the graph has no replica with a prefill and a decode phase",
            where="/nodes",
            expected=list(PHASES),
        )
    yield from _missing(view)
    for phases in view.served.values():
        prefills = [phase.node for phase in phases.get("prefill", ())]
        # Two prefill branches and no decode means that one is misnamed: reported above.
        if "decode" not in phases and len(prefills) == 2:
            continue
        for node in prefills[1:]:
            yield Finding(
                "second-prefill",
                f"{label(node)} is a second prefill phase of its replica", where=node, nodes=(prefills[0],),
                value=len(prefills), expected=1, remedy="drop the branch",
            )  # fmt: skip


RULE = Rule(
    id="PH001",
    name="missing phase",
    requirement=(
        "Prefill and decode are both present and distinct: either every replica has both phases, or every replica has "
        "one and both kinds occur."
    ),
    rationale="Prefill builds the KV cache and decode lives on it: with only one of them no request is served.",
    source="000 §1",
    remedy="add the missing branch",
    check=check,
    good=Example("disaggregated-tp2"),
    bad=Example("dense-tp2", (Edit("remove_node", "r0.decode"),)),
)
