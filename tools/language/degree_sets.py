"""Degrees to choose from, "TP is 1, 2 or 4", "TP只能是1、2、4": a bound, where all powers of two up to it are named."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..gated import Gated
from ..plan.constraints import Constraint, DegreeBound, DegreeConstraint
from .claims import Claims
from .page import Page

_SET = Gated(
    r"(?<![a-z])(?P<name>tp|pp|ep|tensor[\s\-]parallel(?:ism)?|pipeline[\s\-]parallel(?:ism)?|expert[\s\-]parallel(?:ism)?|张量并行|流水线?并行|专家并行)(?:\s(?:degrees?|sizes?|of))?度?"
    r"\s?(?:(?:is|are|may|can|must|should|has\sto|only|be|allowed|one\sof|either|in|:|=)\s?|只能|必须|仅限|[是取为用]){1,5}\s?[{(\[]?"
    r"(?P<set>\d{1,3}(?:\s?(?:,|/|or|and|或|和){1,2}\s?(?:or\s)?\d{1,3}){1,6})(?![\d.]|\s?[km%](?![a-z]))[})\]]?",
)
_NAMES = {"t": "tp", "p": "pp", "e": "ep", "张": "tp", "流": "pp", "专": "ep"}


def read_degree_sets(page: Page, claims: Claims) -> Iterator[Constraint]:
    """Yield a bound for each list of degrees: the last of powers of two, of which the least are not kept."""
    for match in page.search(_SET):
        degrees = [int(one) for one in re.findall(r"\d+", match["set"])]
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
