"""What a fact demands of a plan: a degree, a constraint, or a strategy that is weighed, as stated in its quote."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...tools.language.conflicts.claims import Claims
from ...tools.language.layouts.compared import strategy_of
from ...tools.language.said import Said, StatedDegrees, StatedStrategy
from ...tools.plan.constraints import Constraint
from ..stated.constraints import stated_constraints
from .answer import DEGREES, StatedFact
from .derived import has_number, is_counted
from .figures import figure_of, is_worked
from .found import UnverifiedError
from .spelled import is_spelled, names_parallel, names_spread

_DEGREE_OF = re.compile(r"(?P<name>[a-z_]+)\s?[=x]?\s?(?P<degree>\d{1,6})")
_LINE_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# "TP must not leave the box, pipeline may": an across_nodes of such words would demand what is only allowed.
_ALLOWS = re.compile(
    r"\b(?:may|can|could|allowed|permitted|okay?|fine|possible|acceptable)\b(?!\s+only)|可以|允许|也行|没问题",
    re.IGNORECASE,
)
_LINE_NAME = re.compile(r"tp_ffn|attention_dp|(?<![a-z_])[tpes]p(?![a-z_])")


def constraints_of(fact: StatedFact, around: str) -> Iterable[Constraint]:
    """The constraint of a line; its numbers must stand in the quote, its names in the sentence `around` it."""
    line = str(fact.value) if fact.field == "constraint" else f"accelerators = {fact.value}"
    constraints = stated_constraints([line]) or ()
    for constraint in constraints:
        if constraint.kind == "across_nodes" and _ALLOWS.search(fact.quote):
            raise UnverifiedError(f"{fact.quote[:80]!r} allows it and does not demand it")
        if constraint.kind == "accelerators":
            missing = [kind for kind in constraint.value if not is_spelled("accelerator", kind, fact.quote, Said())]
        else:
            is_named = names_spread if constraint.kind in ("within_node", "across_nodes") else names_parallel
            missing = [name for name in _LINE_NAME.findall(line) if not is_named(name, around)]
            field = "nodes" if constraint.kind == "reserved_nodes" else "gpus"
            numbers = map(float, _LINE_NUMBER.findall(line))
            missing += [
                f"{number:g}"
                for number in numbers
                if not (is_worked(fact, number) or is_counted(number, fact.quote, field))
            ]
        if missing:
            raise UnverifiedError(f"{', '.join(missing)} does not stand in {fact.quote[:80]!r}")
    return [constraint.model_copy(update={"words": fact.quote[:500]}) for constraint in constraints]


def weighed(fact: StatedFact) -> StatedStrategy:
    """A strategy that is weighed against others, with its degrees in the quote."""
    degrees: dict[str, int] = {}
    for match in _DEGREE_OF.finditer(str(fact.value).lower()):
        name, degree = "dp" if match["name"] == "replicas" else match["name"], int(match["degree"])
        if name not in (*DEGREES, "dp"):
            raise UnverifiedError(f"{name} is no degree")
        if degree > 1 and not (is_counted(degree, fact.quote) and names_spread(name, fact.quote)):
            raise UnverifiedError(f"{name} {degree} does not stand in {fact.quote[:80]!r}")
        degrees[name] = Claims().checked_degree(degree, fact.quote)
    if not degrees:
        raise UnverifiedError("it has no degree")
    return strategy_of(degrees)


def degree_of(fact: StatedFact, around: str) -> int:
    """The degree of a fact; its number must stand in the quote, its name in the sentence `around` it."""
    number = figure_of(fact)
    if number != int(number) or not has_number(number, fact.quote) or not names_parallel(fact.field, around):
        raise UnverifiedError(f"it does not stand in {fact.quote[:80]!r}")
    return Claims().checked_degree(number, fact.quote)


def demanded(degrees: list[tuple[StatedFact, int]]) -> StatedStrategy:
    """The strategy that degrees make together: each in its phase, or in both."""
    phases: dict[str, dict[str, int]] = {"prefill": {}, "decode": {}}
    dp: int | None = None
    for fact, degree in degrees:
        if fact.field == "dp":
            dp = degree
            continue
        for phase in (fact.phase,) if fact.phase is not None else ("prefill", "decode"):
            phases[phase][fact.field] = degree
    prefill, decode = (StatedDegrees(**phases[phase]) for phase in ("prefill", "decode"))
    return StatedStrategy(dp=dp, prefill=prefill, decode=decode)
