"""What a request demands of the plan beside its limits, read as constraints (ruling R17).

A primitive ("TP", "pipeline stages", "专家并行") is read by the cues of its clause: a bound with a number, a node that
its groups may not leave, or a denial. A degree that is simply stated is a strategy, not a bound. A primitive that no
reader takes is listed as unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ...plan.constraints import (
    Constraint,
    DegreeBound,
    DegreeConstraint,
    ForbiddenDegree,
    PlacementConstraint,
    ReservedConstraint,
    bound_both_sides,
)
from ..conflicts.claims import Claims
from ..conflicts.statement_rank import standing_of
from ..lexicons.reserved import GIVEN_AWAY
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..said import StatedStrategy
from .kept_of_each_node import settle_share_of_one
from .primitives import MOST_READ, PRIMITIVE, PRIMITIVES, allows_crossing, leave_unbounded, read_primitives
from .replicas import read_kept_whole, settle_on_each_node
from .reserved import is_beyond, read_reserved


def read_constraints(page: Page, claims: Claims) -> None:
    """Read every constraint and claim them together."""
    leave_unbounded(page, claims)
    whole = (*read_kept_whole(page), *_degree_sets(page, claims))
    constraints: list[Constraint] = [*whole, *read_primitives(page), *read_reserved(page, claims)]
    if claims.has("accelerators"):
        constraints.append(claims.drop("accelerators")[0])
    add_constraints(claims, [constraint for constraint in constraints if _holds_now(claims, constraint)])


def _holds_now(claims: Claims, constraint: Constraint) -> bool:
    """Whether a constraint is none of the past alone; hardware that was given away then is still gone."""
    is_over = claims.is_past(constraint.words) and not (
        isinstance(constraint, ReservedConstraint) and GIVEN_AWAY.search(constraint.words)
    )
    if is_over:
        claims.reading(f"{constraint.words!r} tells what held once, and was not read as a demand")
    return not is_over


# Degrees to choose from, "TP is 1, 2 or 4", "TP只能是1、2、4".
_SET = Gated(
    r"(?<![a-z])(?P<name>tp|pp|ep|tensor[\s\-]parallel(?:ism)?|pipeline[\s\-]parallel(?:ism)?|expert[\s\-]parallel(?:ism)?|张量并行|流水线?并行|专家并行)(?:\s(?:degrees?|sizes?|of))?度?"
    r"\s?(?:(?:is|are|may|can|must|should|has\sto|only|be|allowed|one\sof|either|in|:|=)\s?|只能|必须|仅限|[是取为用]){1,5}\s?[{(\[]?"
    r"(?P<set>\d{1,3}(?:\s?(?:,|/|or|and|或|和){1,2}\s?(?:or\s)?\d{1,3}){1,6})(?![\d.]|\s?[km%](?![a-z])|\s?(?:replicas?|copies|instances?|nodes?|gpus?|cards?|个?副本))[})\]]?",
)
_NAMES = {"t": "tp", "p": "pp", "e": "ep", "张": "tp", "流": "pp", "专": "ep"}


def _degree_sets(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield the last of each gapless list of powers of two as an upper bound; the lower one is only reported."""
    for match in page.search(_SET):
        degrees = [int(degree) for degree in re.findall(r"\d+", match["set"])]
        least = degrees[0].bit_length() - 1
        if degrees != [2**power for power in range(least, least + len(degrees))]:
            continue
        words = page.take(*match.span())
        if least:
            claims.leave_unread(f"{words!r}: that the degree is {degrees[0]} or more is not kept")
        bound = DegreeBound.model_validate(
            {"name": _NAMES[match["name"][0].lower()], "relation": "<=", "degree": degrees[-1]}
        )
        claims.reading(f"{words!r} read as a degree of at most {degrees[-1]}: no other that is legal lies between")
        yield DegreeConstraint(kind="degree", value=bound, words=words)


def rule_out(claims: Claims, words: Mapping[tuple[str, str], str]) -> None:
    """Claim that degrees, by phase ("both" or one) and name, stay 1, beside the constraints that were read."""
    forbidden = (
        DegreeConstraint.model_validate(
            {"kind": "degree", "value": {"name": name, "relation": "forbidden"}, "words": phrase}
            | ({} if phase == "both" else {"phase": phase})
        )
        for (phase, name), phrase in words.items()
    )
    add_constraints(claims, forbidden)


def add_constraints(claims: Claims, constraints: Iterable[Constraint]) -> None:
    """Claim more constraints beside those that were claimed."""
    if more := tuple(constraints):
        merged = merged_constraints(claims.values.get("constraints", ()), more)
        claims.replace("constraints", merged, "; ".join(constraint.words for constraint in merged))


def settle_constraints(claims: Claims) -> None:
    """Settle constraints that need the node count: replicas on each node, and reservations beyond the counted nodes."""
    counts = claims.values.get("nodes", 0), claims.gpus
    beyond = [constraint for constraint in claims.values.get("constraints", ()) if is_beyond(constraint, *counts)]
    for constraint in beyond:
        claims.reading(f"{constraint.words!r} is said of more than what is counted")
    drop_constraints(claims, beyond)
    add_constraints(claims, (*settle_on_each_node(claims), *settle_share_of_one(claims)))


def drop_constraints(claims: Claims, dropped: Sequence[Constraint]) -> None:
    """Forget constraints that other words state already."""
    if dropped:
        remaining = [constraint for constraint in claims.values["constraints"] if constraint not in dropped]
        claims.drop("constraints")
        add_constraints(claims, remaining)


# Asked for, or left to the planner: nothing is demanded.
LEFT_TO_US = Gated(
    r"(?<![a-z])(?:which|what|best|how|recommend(?:ed|ation)?|suggest(?:ed|ion)?|propose|choose|pick|find|decide|return|report|list|(?:give|tell|show)\s(?:me|us)|(?:need|want|like)\sto\s(?:know|see)|free|allowed|fine|ok(?:ay)?|welcome|"
    r"whatever|any|auto(?:matic(?:ally)?)?|either|open|as\syou\slike|up\sto\syou|no\s(?:strong\s)?(?:idea|opinion|view|clue|preference))(?![a-z])|可开|可用|可选|推荐|建议|方案|多大|给出|怎么|如何|哪|随便|随意|都行|可以|请问|几(?!乎)|多少|合适|[吗呢]|返回|列出",
)
_GOES_ON = Gated(
    rf"(?<![A-Za-z])(?:{'|'.join(PRIMITIVES.values())})(?:\s?[,/&]\s?|\s?(?:and|or|和|与)\s?){{1,2}}(?:the\s)?$",
)


def leave_primitives_unread(page: Page, claims: Claims) -> None:
    """List the primitives that no reader took; call it after all readers."""
    for match in list(page.search(PRIMITIVE))[:MOST_READ]:
        clause, before = page.clause_text(*match.span()), match.start()
        while (listed := _GOES_ON.search(page.original, max(0, before - 30), before)) is not None:
            before = listed.start()  # "tell me TP, PP and EP"
        asked = page.clause_text(before, before + 1)
        if match["dp"]:
            continue  # replicas are counted by many words
        if LEFT_TO_US.search(clause) or LEFT_TO_US.search(asked):
            continue
        if allows_crossing(page, match):
            claims.reading(f"{clause[:200]!r} allows what no plan is kept from, and demands nothing")
            continue
        claims.leave_unread(f"{match.group().strip()!r} in {clause[:200]!r} was not understood")


def refuse_broken_bounds(claims: Claims) -> None:
    """Refuse a degree that is demanded although it is ruled out or bounded below it."""
    strategy: StatedStrategy | None = claims.values.get("strategy")
    bounds = [c for c in claims.values.get("constraints", ()) if isinstance(c, DegreeConstraint)]
    if strategy is None:
        return
    for bound in bounds:
        phases = [getattr(strategy, bound.phase)] if bound.phase else [strategy.prefill, strategy.decode]
        most = 1 if isinstance(bound.value, ForbiddenDegree) else bound.value.degree
        is_upper = bound.value.relation in ("forbidden", "<=")
        degrees = [getattr(phase, bound.value.name, None) for phase in phases]
        if is_upper and any(degree is not None and degree > most for degree in degrees):
            phrase = claims.words["strategy"]
            is_outdone = standing_of(claims.text, bound.words) < standing_of(claims.text, phrase)
            if is_outdone or claims.takes_back(phrase, bound.words):
                claims.reading(f"{bound.words!r} is planned for, not {phrase!r}, which is said of something else")
                claims.drop("strategy")
                return
            raise claims.refusal(
                f"{claims.words['strategy']!r} demands a degree that {bound.words!r} rules out; keep one of the two",
                "strategy",
            )


def merged_constraints(*stated: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    """All constraints of several statements; of two on the same subject the later one, but both bounds of one."""
    merged: list[Constraint] = []
    for constraint in chain.from_iterable(stated):
        alike = (
            place
            for place, other in enumerate(merged)
            if _about(other) == _about(constraint) and not bound_both_sides(other, constraint)
        )
        place = next(alike, len(merged))
        merged[place : place + 1] = [constraint]
    return tuple(merged)


def _about(constraint: Constraint) -> tuple[Any, ...]:
    name = constraint.value.name if isinstance(constraint, DegreeConstraint) else None
    value = constraint.value if isinstance(constraint, PlacementConstraint) else None
    return constraint.kind, name, value, getattr(constraint, "phase", None)
