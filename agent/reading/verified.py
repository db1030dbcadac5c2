"""A model's reading, checked fact by fact: what does not follow from its quote is dropped with a note.

Nothing is believed: a quote has to stand in the text, a name to be known, a number to follow from the numbers quoted.
A figure that stands nowhere needs a reason and is an assumption. Degrees, constraints and relaxations are never
assumed; a relaxation counts only where the rules read it too.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import ValidationError

from ...tools.catalog.dtypes import DTYPES
from ...tools.catalog.hardware import find_accelerator
from ...tools.catalog.models import find_model
from ...tools.errors import InputError, UnknownNameError
from ...tools.language.errors import RequestError
from ...tools.language.request import read_words
from ...tools.language.said import Said, StatedStrategy
from ...tools.plan.document import Objective, Statistic
from ...tools.plan.latency_limits import LATENCY_FIELDS, STATISTIC_FIELDS
from ...tools.plan.prefixes import SharedPrefixes
from ..stated.arguments import said_engine
from .answer import DEGREES, ReadingAnswer, StatedFact
from .demands import constraints_of, degree_of, demanded, weighed
from .derived import TOKEN_FIELDS
from .figures import ends_of, figure_of, number_of
from .found import Found, UnverifiedError, Verified
from .spelled import is_spelled, is_suggested
from .spread import is_of_percentile, keep_spread
from .trusted import Trusted

_NUMBERS = frozenset(
    {
        "nodes", "gpus_per_node", "gpus", "concurrency", "request_rate", "min_tokens_per_second",
        "prefix_cache_hit_rate", "memory_utilization", "usd_per_gpu_hour", "max_batch", "reserve_replicas", "turns",
        *LATENCY_FIELDS, *TOKEN_FIELDS,
    }
)  # fmt: skip
_LISTED = {
    "objective": get_args(Objective), **dict.fromkeys(STATISTIC_FIELDS, get_args(Statistic)),
    "weights": DTYPES, "kv_cache": DTYPES, "activations": DTYPES,
}  # fmt: skip
# Fields that are parts of `Said.prefixes`.
_SHARED = {"shared_prompt_tokens": "system_tokens", "turns": "turns"}
MOST_ASKED = 300
# So many quotes that do not stand in the text are looked for by their parts.
MOST_MENDED = 8


def verified(answer: ReadingAnswer, text: str) -> Verified:
    """The facts of `answer` that follow from the words of `text`."""
    reading, trusted = Verified(), Trusted.of(text)
    degrees: list[tuple[StatedFact, int]] = []
    compared: list[tuple[StatedFact, StatedStrategy]] = []
    spread: list[StatedFact] = []
    mended = 0
    for fact in answer.facts:
        try:
            why = trusted.why_not(fact.quote)
            if why is not None and mended < MOST_MENDED:
                mended += 1
                fact = fact.model_copy(update={"quote": trusted.as_it_stands(fact.quote)})
                why = trusted.why_not(fact.quote)
            if why is not None:
                raise UnverifiedError(why)
            if fact.field == "replicas" and fact.phase is None:  # as many in all: a demand, no degree of a phase
                fact = fact.model_copy(update={"field": "constraint", "value": f"replicas = {figure_of(fact):g}"})
            if fact.field in (*DEGREES, "dp"):
                degrees.append((fact, degree_of(fact, trusted.around(fact.quote))))
            elif fact.field in ("constraint", "accelerators"):
                reading.constraints += constraints_of(fact, trusted.around(fact.quote))
            elif fact.field == "compared":
                compared.append((fact, weighed(fact)))
            elif is_of_percentile(fact):
                number_of(fact, fact.field)
                spread.append(fact)
            else:
                _keep(fact, reading)
        except (UnverifiedError, InputError) as error:
            if fact.field == "accelerator" and isinstance(error, UnknownNameError):
                reading.unknown_part = str(error)
            if fact.field == "model" and isinstance(error, UnknownNameError):
                reading.unknown_model = str(error)
            reason = error.reason if isinstance(error, RequestError) else str(error)
            reading.dropped.append(f"{fact.field} {fact.value}: {' '.join(reason.split())[:160]}"[:240])
            if trusted.why_not(fact.quote) is None:
                reading.not_understood.append(fact.quote)
    if degrees:
        quotes = "; ".join(dict.fromkeys(fact.quote for fact, _ in degrees))
        reading.fields["strategy"] = Found(demanded(degrees), quotes)
    if len(compared) > 1:
        quotes = " ... ".join(dict.fromkeys(fact.quote for fact, _ in compared))
        reading.fields["compared"] = Found(tuple(dict.fromkeys(strategy for _, strategy in compared)), quotes)
    keep_spread(reading, spread)
    _share(reading)
    reading.not_understood += [quote for quote in answer.not_understood[:20] if trusted.why_not(quote) is None]
    asked = (" ".join(question.split()) for question in answer.asks[:3])
    reading.asks += filter(None, ("".join(filter(str.isprintable, question))[:MOST_ASKED] for question in asked))
    return reading


def _share(reading: Verified) -> None:
    """Join the fields that each state a part of what prompts share."""
    parts = {name: reading.fields.pop(name) for name in _SHARED if name in reading.fields}
    if not parts:
        return
    quotes = " ... ".join(dict.fromkeys(found.quote for found in parts.values()))
    reason = next((found.reason for found in parts.values() if found.reason is not None), None)
    try:
        prefixes = SharedPrefixes.model_validate({_SHARED[name]: int(found.value) for name, found in parts.items()})
    except ValidationError as error:
        reading.dropped.append(f"what prompts share: {error.errors()[0]['msg'][:160]}")
        return
    reading.fields["prefixes"] = Found(prefixes, quotes, reason)


def _keep(fact: StatedFact, reading: Verified) -> None:
    """Check one fact that is no degree and no constraint, and keep it.

    Raises:
        UnverifiedError: it does not follow from its quote.
        InputError: it is no value of its field.
    """
    if fact.field == "relaxation":
        alone = _rules_on(fact.quote).relaxations
        if fact.value not in alone:
            raise UnverifiedError("the words quoted do not allow it")
        reading.relaxations |= {name: fact.quote for name in alone if name == fact.value}
    elif fact.field in _NUMBERS:
        for name, end in ends_of(fact):
            reading.put(name, Found(number_of(end, name), fact.quote, fact.reason, is_worked=bool(fact.working)))
    else:
        value = _named(fact)
        if fact.reason is None and not is_spelled(fact.field, value, fact.quote, _rules_on(fact.quote)):
            raise UnverifiedError(f"it does not stand in {fact.quote[:80]!r}, and no reason is given")
        if fact.reason is not None and not is_suggested(fact.field, value, fact.quote):
            raise UnverifiedError(f"nothing in {fact.quote[:80]!r} suggests it")
        reading.put(fact.field, Found(value, fact.quote, fact.reason))


def _named(fact: StatedFact) -> Any:
    """The name of a fact as the catalogues have it."""
    text = str(fact.value).strip()
    if fact.field == "model":
        return find_model(text).name
    if fact.field == "accelerator":
        return find_accelerator(text).id
    if fact.field == "engine":
        return said_engine(text.lower())["engine"]
    if fact.field in ("disaggregated", "gpus_open"):
        if not isinstance(fact.value, bool):
            raise UnverifiedError("true or false is expected")
        return fact.value
    if fact.field in _LISTED and text.lower() not in _LISTED[fact.field]:
        raise UnverifiedError(f"it is none of {', '.join(_LISTED[fact.field])}")
    return text if fact.field == "engine_version" else text.lower()


def _rules_on(quote: str) -> Said:
    """What the rules read of a quote alone; nothing if they refuse it."""
    try:
        return read_words(quote)
    except InputError:
        return Said()
