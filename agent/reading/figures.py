"""The figure of a fact: a number that follows from its quote, as it stands or by a sum, within its field's bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from ...tools.language.conflicts.figures import impossible, typed
from ...tools.language.patterns.quantities import find_quantities
from ...tools.language.writing.normal_form import normalise
from .answer import StatedFact
from .derived import TOKEN_FIELDS, derived
from .found import UnverifiedError
from .working import worked

# For these fields a sum is rounded to a whole number.
_WHOLE = frozenset(
    {"concurrency", "nodes", "gpus", "gpus_per_node", "max_batch", "reserve_replicas", "turns", *TOKEN_FIELDS}
)
_RELATIVE = 0.01
_MEAN = re.compile(
    r"(?<![a-z])(?:mean|averag\w{1,4}|avg|typical\w{0,3}|usual\w{0,3}|mostly|normally|around)(?![a-z])|"
    r"平均|一般|通常|大多",
    re.IGNORECASE,
)


def ends_of(fact: StatedFact) -> Iterable[tuple[str, StatedFact]]:
    """The fields of a fact: a length, a range, or a range with a mean, which was given as its lower end."""
    if fact.upper is None or fact.field not in TOKEN_FIELDS:
        return [(fact.field, fact)]
    mean, ranged = figure_of(fact), f"{fact.field}_range"
    figures = [
        quantity.value for quantity in find_quantities(normalise(fact.quote)) if quantity.unit in ("count", "tokens")
    ]
    lowest = min(figures, default=mean)
    if not (lowest < mean < fact.upper and _MEAN.search(fact.quote)):
        return [(ranged, fact)]
    span, single = fact.model_copy(update={"value": lowest}), fact.model_copy(update={"upper": None})
    return [(ranged, span), (fact.field, single)]


def number_of(fact: StatedFact, name: str) -> Any:
    """The figure, or the range, of a fact, within the bounds of its field."""
    ends = [figure_of(fact)] if name == fact.field else [figure_of(fact), float(fact.upper or 0)]
    checked: list[float] = []
    for end in ends:
        follows = _worked(fact) if fact.working and name == fact.field else derived(fact.field, end, fact.quote)
        if follows is None and fact.reason is None:
            raise UnverifiedError(f"{end:.12g} does not follow from the numbers of {fact.quote[:80]!r}")
        checked.append(end if follows is None else follows)
    stated = checked[0] if name == fact.field else tuple(checked)
    if (reason := impossible(name, stated, fact.quote)) is not None:
        raise UnverifiedError(reason)
    value = typed(name, stated)
    return int(value) if name in _WHOLE and isinstance(value, float) and value.is_integer() else value


def _worked(fact: StatedFact) -> float:
    """The result of the working of a fact, which has to be its value."""
    result, value = worked(fact.working or "", fact.quote), figure_of(fact)
    if fact.field in _WHOLE:
        result = float(round(result))
    if abs(result - value) > _RELATIVE * max(abs(value), 1.0 if fact.field in _WHOLE else 1e-9):
        raise UnverifiedError(f"{(fact.working or '')[:80]!r} comes to {result:.6g}")
    return result


def is_worked(fact: StatedFact, number: float) -> bool:
    """Whether the working of a fact gives a number."""
    return bool(fact.working) and abs(worked(fact.working or "", fact.quote) - number) <= _RELATIVE * abs(number)


def figure_of(fact: StatedFact) -> float:
    """The number that a fact states. Raises UnverifiedError: it is none, or has no end."""
    try:
        figure = float(fact.value)
    except ValueError:
        figure = math.nan
    if not math.isfinite(figure):
        raise UnverifiedError("it is no number")
    return figure
