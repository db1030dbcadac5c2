"""A parallel strategy in words and nothing else ("TP8", "DP2 of PP2 × TP4, no EP"), and degrees that words rule out."""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog import hardware
from ...errors import InputError
from ...plan.constraints import Constraint, DegreeConstraint, ForbiddenDegree, ReplicasConstraint
from ...plan.document import PHASES
from ..conflicts.claims import Claims
from ..constraints.words import read_constraints
from ..patterns.gated import Gated
from ..patterns.page import TAKEN, Page
from ..said import StatedStrategy
from ..writing.normal_form import normalise
from ..writing.prepared_text import mended
from .permissions import read_disaggregation
from .strategy import read_strategy

MAX_WORDS = 500
# Words that may stand between degrees, and before a degree that is ruled out.
_GLUE = Gated(
    r"[\s,;:.*×/&+\-|()\[\]{}=_@]{1,9}|(?<![a-z])(?:x|of|and|with|then|on|for|in|each|the|prefill|decode|phase|replicas?|"
    r"strategy|layout|instances?|workers?|nodes?|within|across|inside|per|stage|using|use|run|choose|only|parallelism)(?![a-z])|和|加|每级|"
    rf"(?:(?<![a-z])(?:no|without|not\susing)\s|[不无没][有使用采启做]{{0,2}})(?:any\s|任何)?(?={TAKEN})",
)
# One device has no degree to name.
_ONE_DEVICE = Gated(r"(?<![a-z0-9])(?:one|1|a single|single)\s{1,3}(?:device|gpu)(?![a-z])")


def strategy_of_words(text: str) -> StatedStrategy:
    """The parallel strategy that `text` states, and nothing else.

    Raises:
        InputError: it states none, several, or says something that is no part of one.
    """
    if len(text) > MAX_WORDS:
        raise InputError(f"a strategy in words has at most {MAX_WORDS} characters")
    if _ONE_DEVICE.fullmatch(text.strip()):
        return StatedStrategy(dp=1)
    page, claims = Page(mended(normalise(_ONE_DEVICE.sub("TP1", text))).text), Claims()
    read_disaggregation(page, claims)
    read_constraints(page, claims)
    read_strategy(page, claims)
    constraints: tuple[Constraint, ...] = claims.values.get("constraints", ())
    stated = with_ruled_out(claims.values.get("strategy"), constraints)
    others = [constraint.words for constraint in constraints if not _rules_out(constraint)]
    unexplained = others or _GLUE.sub(" ", page.text).replace(TAKEN, " ").split()
    if stated is None or unexplained:
        is_several = claims.unread or claims.has("compared")
        several = "it names several strategies" if is_several else "it names no parallel strategy"
        reason = f"{_quoted(' '.join(unexplained))} is no part of a parallel strategy" if unexplained else several
        if cards := hardware.mentions(text):
            reason = f"{_quoted(cards[0].words)} is hardware, which is said beside a strategy (--hardware-b of compare)"
        raise InputError(
            f"{_quoted(text)}: {reason}; write one such as TP8, PP2 x TP4 or DP2 of TP4, or the path of a plan"
        )
    if claims.values.get("disaggregated") and None in (stated.prefill.replicas, stated.decode.replicas):
        raise InputError(
            f"{_quoted(text)}: prefill and decode apart, but not how many servers of each; write it as 1 prefill of "
            "TP4 + 1 decode of TP4"
        )
    return stated


def weighs_strategies(text: str) -> bool:
    """Whether a text weighs strategies against each other ("is TP8 better than PP2 x TP4?")."""
    page, claims = Page(normalise(text)), Claims()
    read_strategy(page, claims)
    return claims.has("compared")


def with_ruled_out(strategy: StatedStrategy | None, constraints: Iterable[Constraint]) -> StatedStrategy | None:
    """The strategy with degree 1 where a dimension is ruled out and none was stated: "TP8, no pipelining"."""
    for constraint in filter(_rules_out, constraints):
        strategy = strategy or StatedStrategy()
        if not isinstance(constraint, DegreeConstraint):
            strategy = strategy.model_copy(update={"dp": strategy.dp or 1})
            continue
        for phase in PHASES if constraint.phase is None else (constraint.phase,):
            degrees = getattr(strategy, phase)
            if getattr(degrees, constraint.value.name) is None:
                strategy = strategy.model_copy(update={phase: degrees.model_copy(update={constraint.value.name: 1})})
    return strategy


def _rules_out(constraint: Constraint) -> bool:
    if isinstance(constraint, DegreeConstraint):
        return isinstance(constraint.value, ForbiddenDegree)
    return isinstance(constraint, ReplicasConstraint) and constraint.value == 1


def _quoted(text: str) -> str:
    return repr("".join(letter if letter.isprintable() else "?" for letter in text[:80]))
