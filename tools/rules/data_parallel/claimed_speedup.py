"""DP004: DP is never claimed to lower latency: one request is answered by one replica, however many there are.

Checks the figures of `performance` (a claimed latency that is the computed one divided by the replicas) and the words
of the reasoning. Claims that are off in another way belong to other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import PlanView, as_list, as_mapping, as_str
from ..base import Example, Finding, Rule, Violation, set_top
from ..findings import Change, steps_of
from ..performance.attribution import faults_of, finding_of
from ..performance.claims import recomputed

_MAX_TEXT_CHARS = 4000
_CLAUSES = re.compile(r"[.;:,!?\n。；：，！？]+")
_SUBJECT = re.compile(r"\bdp\b|\bdp\s*=|data[ -]parallel|replica|数据并行|副本")
_OTHER_SUBJECT = re.compile(r"\b[tpse]p\b|tensor|pipeline|sequence|expert|张量|流水|序列|专家")
_LOWERS = re.compile(
    r"\b(?:reduc|lower|cut|halv|improv|decreas|minimi[sz]|shorten|speed|accelerat|divid)\w*|\bfaster\b|\bbetter\b|"
    r"降低|减少|缩短|减半|优化|改善|更低|更快"
)
_LATENCY = re.compile(r"latenc|\bttft\b|\btpot\b|response time|time to first token|延迟|时延|首字|首 ?token")
# Words that revoke the claim: a negation, a latency that stays, or a wait in a queue (which replicas do shorten).
_DENIED = re.compile(
    r"\b(?:not?|never|nor|without|cannot|neither|rather than|same|equal|leav|keep|unchang|unaffect|independen|depend|"
    r"queu|wait)\w*|n't\b|不|没有|无法|并非|而非|排队"
)


def _says_so(text: str, *, of_dp: bool) -> str | None:
    """The clause of `text` that says DP lowers latency; `of_dp`: clauses that name no strategy are about DP."""
    for clause in _CLAUSES.split(text[:_MAX_TEXT_CHARS].lower()):
        about_dp = bool(_SUBJECT.search(clause)) or (of_dp and not _OTHER_SUBJECT.search(clause))
        if about_dp and _LOWERS.search(clause) and _LATENCY.search(clause) and not _DENIED.search(clause):
            return clause.strip()
    return None


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every claim that DP lowers latency, in figures and in words."""
    for fault in faults_of(view, "DP004"):
        says = "it is the latency of a request divided by the replicas"
        yield finding_of("divided-latency", fault, says, "compute it again: replicas add throughput, not speed")
    for position, item in enumerate(as_list(view.raw.get("reasoning"))):
        step = as_mapping(item)
        text = as_str(step.get("decision")) or ""
        clause = _says_so(text, of_dp=step.get("step") == "data_parallelism")
        if clause is not None:
            yield Finding(
                "claimed-in-words",
                f"the reasoning says that DP lowers latency: {shown(clause)}",
                where=f"/reasoning/{position}/decision",
                value=clause,
                remedy="say what DP does: it serves more requests at once",
            )


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Compute the figures again, or replace the decision that makes the claim by what DP does."""
    steps = steps_of(violation.path, view.raw) or ("",)
    if steps[0] == "reasoning":
        replicas = len(view.replicas)
        yield Change("set", steps, f"{replicas} replica(s): more requests at once, the latency of each stays the same")
    else:
        yield from recomputed(view, violation)


_CLAIM = {"step": "data_parallelism", "decision": "2 replicas, to halve the latency of each request"}

RULE = Rule(
    id="DP004",
    name="latency lowered by DP",
    requirement="DP is never claimed to lower latency: single-request latency does not depend on dp.",
    rationale=(
        "A replica computes the whole of a request by itself: with n replicas the time of one request is what it is "
        "with one, and the requests per second are n times as many."
    ),
    source="003 §7, 004 §4.1",
    remedy="state the latency of one replica",
    check=check,
    bad=Example("dense-dp2-tp2", (set_top("/reasoning/3", _CLAIM),)),
    rests_on_estimate=True,
    mend=mend,
)
