"""Lengths that a model reads by percentiles: put in plain words and read by the rules, as those that people write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...tools.language.errors import RequestError
from ...tools.language.request import read_words
from ...tools.language.said import Said
from ...tools.plan.lengths import RequestLengths, Side
from .answer import StatedFact
from .figures import number_of
from .found import Found, UnverifiedError, Verified

SIDES: tuple[Side, ...] = ("input", "output")
_MEDIAN = 50.0
# Words of percentiles: what they name are no ends of a range.
_PERCENTILES = re.compile(
    r"(?<![a-z])(?:median|percentiles?)(?![a-z])|(?<![a-z])p\s?-?[1-9]\d(?!\d)|[中百]位", re.IGNORECASE
)


def is_of_percentile(fact: StatedFact) -> bool:
    """Whether a fact is a length that a share of requests does not exceed.

    Raises:
        UnverifiedError: percentiles are stated as the ends of a range.
    """
    if fact.field not in [f"{side}_tokens" for side in SIDES]:
        return False
    if fact.percentile is None and fact.upper is not None and _PERCENTILES.search(fact.quote):
        raise UnverifiedError("percentiles are no ends of a range")
    return fact.percentile is not None


def keep_spread(reading: Verified, facts: Sequence[StatedFact]) -> None:
    """Keep lengths with percentiles, and the mean that is stated beside a single one."""
    words: list[str] = []
    for side in SIDES:
        side_facts = [fact for fact in facts if fact.field == f"{side}_tokens"]
        mean = reading.fields.get(f"{side}_tokens")
        if len(side_facts) == 1 and mean is None:
            _keep_alone(reading, side_facts[0])
        elif side_facts:
            if mean is not None and len(side_facts) > 1:
                del reading.fields[f"{side}_tokens"]  # percentiles have a mean of their own
            figures = [f"p{fact.percentile:g} {number_of(fact, fact.field)}" for fact in side_facts]
            beside = [] if mean is None or len(side_facts) > 1 else [f"mean {mean.value}"]
            words.append(f"{side} tokens: {', '.join([*beside, *figures])}")
    if not words:
        return
    try:
        lengths = read_words("\n".join(words)).lengths
    except RequestError:  # two lengths of one percentile
        lengths = None
    quotes = dict.fromkeys(fact.quote for fact in facts)
    if lengths is not None:
        reading.fields["lengths"] = Found(lengths, " ... ".join(quotes))
    else:
        reading.dropped.append(f"lengths {'; '.join(words)}: no spread has these percentiles")
        reading.not_understood += quotes


def _keep_alone(reading: Verified, fact: StatedFact) -> None:
    """Keep a median as the usual length; another percentile alone gives no distribution, and is dropped with a note."""
    if fact.percentile == _MEDIAN:
        reading.put(fact.field, Found(number_of(fact, fact.field), fact.quote, fact.reason))
    else:
        reading.dropped.append(f"{fact.field} {fact.value}: a p{fact.percentile:g} alone says not how long most are")
        reading.not_understood.append(fact.quote)


def with_other_side(by_model: RequestLengths, by_rules: RequestLengths | None, reading: Verified) -> RequestLengths:
    """The model's lengths, with the rules' of a side that the model has no fact of."""
    added = {
        side: getattr(by_rules, side)
        for side in SIDES
        if by_rules is not None and not by_model.covers(side) and f"{side}_tokens" not in reading.read
    }
    return by_model.model_copy(update={side: lengths for side, lengths in added.items() if lengths is not None})


def is_spread(said: Said, name: str) -> bool:
    """Whether `name` is a length, or a range of it, of a side whose spread of lengths is stated."""
    side = name.partition("_")[0]
    return said.lengths is not None and any(side == known and said.lengths.covers(known) for known in SIDES)
