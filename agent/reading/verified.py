"""A model's reading, checked fact by fact: what its own quote does not bear out is dropped, and said to be.

Nothing is believed: a quote has to stand in the text, a name to be known, a number to follow from the numbers quoted.
A figure that stands nowhere needs a reason and is an assumption. Degrees, constraints and relaxations are never
assumed; a relaxation counts only where the rules read it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import ValidationError

from ...tools.catalog.dtypes import DTYPES
from ...tools.catalog.hardware import find_accelerator
from ...tools.catalog.models import find_model
from ...tools.errors import InputError, UnknownNameError
from ...tools.language.claims import Claims
from ...tools.language.compared_words import strategy_of
from ...tools.language.errors import RequestError
from ...tools.language.normal_form import normalise
from ...tools.language.quantities import find_quantities
from ...tools.language.request import read_words
from ...tools.language.said import Said, StatedDegrees, StatedStrategy
from ...tools.plan.constraints import Constraint
from ...tools.plan.document import Objective, Statistic
from ...tools.plan.latency_limits import LATENCY_FIELDS, STATISTIC_FIELDS
from ...tools.plan.prefixes import SharedPrefixes
from ..stated_arguments import said_engine
from ..stated_constraints import stated_constraints
from .answer import DEGREES, ReadingAnswer, StatedFact
from .derived import TOKEN_FIELDS, derived, has_number, is_counted
from .found import Found, UnverifiedError, Verified
from .spelled import is_spelled, is_suggested, names_parallel, names_spread
from .trusted import Trusted
from .working import worked

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
_DEGREE_OF = re.compile(r"(?P<name>[a-z_]+)\s?[=x]?\s?(?P<degree>\d{1,6})")
# What is demanded of a plan: words about it that lead to nothing are told in the first lines.
_DEMANDS = frozenset({"constraint", "disaggregated", "dp", *DEGREES, *LATENCY_FIELDS})
_LINE_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Of these a sum is rounded to a whole number.
_WHOLE = frozenset(
    {"concurrency", "nodes", "gpus", "gpus_per_node", "max_batch", "reserve_replicas", "turns", *TOKEN_FIELDS}
)
_RELATIVE = 0.01
MOST_ASKED = 300
_LINE_NAME = re.compile(r"tp_ffn|attention_dp|(?<![a-z_])[tpes]p(?![a-z_])")


def verified(answer: ReadingAnswer, text: str) -> Verified:
    """What of `answer` the words of `text` bear out."""
    kept, trusted = Verified(), Trusted.of(text)
    degrees: list[tuple[StatedFact, int]] = []
    compared: list[tuple[StatedFact, StatedStrategy]] = []
    for fact in answer.facts:
        try:
            fact = fact.model_copy(update={"quote": trusted.as_it_stands(fact.quote)})
            if (why := trusted.why_not(fact.quote)) is not None:
                raise UnverifiedError(why)
            if fact.field == "replicas" and fact.phase is None:  # as many in all: a demand, no degree of a phase
                fact = fact.model_copy(update={"field": "constraint", "value": f"replicas = {_figure(fact):g}"})
            if fact.field in (*DEGREES, "dp"):
                degrees.append((fact, _degree(fact, trusted.around(fact.quote))))
            elif fact.field in ("constraint", "accelerators"):
                kept.constraints += _constraint(fact, trusted.around(fact.quote))
            elif fact.field == "compared":
                compared.append((fact, _compared(fact)))
            else:
                _keep(fact, kept)
        except (UnverifiedError, InputError) as error:
            if fact.field == "accelerator" and isinstance(error, UnknownNameError):
                kept.unknown_part = str(error)
            if fact.field == "model" and isinstance(error, UnknownNameError):
                kept.unknown_model = str(error)
            reason = error.reason if isinstance(error, RequestError) else str(error)
            kept.dropped.append(f"{fact.field} {fact.value}: {' '.join(reason.split())[:160]}"[:240])
            if fact.field in _DEMANDS and trusted.why_not(fact.quote) is None:
                kept.not_understood.append(fact.quote)
    if degrees:
        quotes = "; ".join(dict.fromkeys(fact.quote for fact, _ in degrees))
        kept.fields["strategy"] = Found(_strategy(degrees), quotes)
    if len(compared) > 1:
        quotes = " ... ".join(dict.fromkeys(fact.quote for fact, _ in compared))
        kept.fields["compared"] = Found(tuple(dict.fromkeys(one for _, one in compared)), quotes)
    _share(kept)
    kept.not_understood += [quote for quote in answer.not_understood[:20] if trusted.why_not(quote) is None]
    kept.asks += [" ".join(question.split())[:MOST_ASKED] for question in answer.asks[:3] if question.strip()]
    return kept


def _share(kept: Verified) -> None:
    """Put what prompts share together, of the fields that say a part of it."""
    parts = {name: kept.fields.pop(name) for name in _SHARED if name in kept.fields}
    if not parts:
        return
    quotes = " ... ".join(dict.fromkeys(one.quote for one in parts.values()))
    reason = next((one.reason for one in parts.values() if one.reason is not None), None)
    try:
        prefixes = SharedPrefixes.model_validate({_SHARED[name]: int(one.value) for name, one in parts.items()})
    except ValidationError as error:
        kept.dropped.append(f"what prompts share: {error.errors()[0]['msg'][:160]}")
        return
    kept.fields["prefixes"] = Found(prefixes, quotes, reason)


def _keep(fact: StatedFact, kept: Verified) -> None:
    """Check one fact that is no degree and no constraint, and keep it.

    Raises:
        UnverifiedError: its quote does not bear it out.
        InputError: it is no value of its field.
    """
    if fact.field == "relaxation":
        alone = _rules_on(fact.quote).relaxations
        if fact.value not in alone:
            raise UnverifiedError("the words quoted do not allow it")
        kept.relaxations |= {name: fact.quote for name in alone if name == fact.value}
    elif fact.field in _NUMBERS:
        for name, one in _ends(fact):
            kept.put(name, Found(_number(one, name), fact.quote, fact.reason, is_worked=bool(fact.working)))
    else:
        value = _named(fact)
        if fact.reason is None and not is_spelled(fact.field, value, fact.quote, _rules_on(fact.quote)):
            raise UnverifiedError(f"it does not stand in {fact.quote[:80]!r}, and no reason is given")
        if fact.reason is not None and not is_suggested(fact.field, value, fact.quote):
            raise UnverifiedError(f"nothing in {fact.quote[:80]!r} suggests it")
        kept.put(fact.field, Found(value, fact.quote, fact.reason))


def _ends(fact: StatedFact) -> Iterable[tuple[str, StatedFact]]:
    """The fields of a fact: a length, a range, or a range with a mean, which was given as its lower end."""
    if fact.upper is None or fact.field not in TOKEN_FIELDS:
        return [(fact.field, fact)]
    mean, ranged = _figure(fact), f"{fact.field}_range"
    figures = [one.value for one in find_quantities(normalise(fact.quote)) if one.unit in ("count", "tokens")]
    lowest = min(figures, default=mean)
    if not lowest < mean < fact.upper:
        return [(ranged, fact)]
    span, single = fact.model_copy(update={"value": lowest}), fact.model_copy(update={"upper": None})
    return [(ranged, span), (fact.field, single)]


def _number(fact: StatedFact, name: str) -> Any:
    """The figure, or the range, of a fact, within the bounds of its field."""
    ends = [_figure(fact)] if name == fact.field else [_figure(fact), float(fact.upper or 0)]
    own: list[float] = []
    for end in ends:
        follows = _worked(fact) if fact.working and name == fact.field else derived(fact.field, end, fact.quote)
        if follows is None and fact.reason is None:
            raise UnverifiedError(f"{end:.12g} does not follow from the numbers of {fact.quote[:80]!r}")
        own.append(end if follows is None else follows)
    claims = Claims()
    claims.claim(name, own[0] if name == fact.field else tuple(own), fact.quote)
    value = claims.values[name]
    return int(value) if name in _WHOLE and isinstance(value, float) and value.is_integer() else value


def _worked(fact: StatedFact) -> float:
    """What the working of a fact comes to, which has to be its value."""
    result, value = worked(fact.working or "", fact.quote), _figure(fact)
    if fact.field in _WHOLE:
        result = float(round(result))
    if abs(result - value) > _RELATIVE * max(abs(value), 1.0 if fact.field in _WHOLE else 1e-9):
        raise UnverifiedError(f"{(fact.working or '')[:80]!r} comes to {result:.6g}")
    return result


def _is_worked(fact: StatedFact, number: float) -> bool:
    """Whether the working of a fact comes to a number."""
    return bool(fact.working) and abs(worked(fact.working or "", fact.quote) - number) <= _RELATIVE * abs(number)


def _figure(fact: StatedFact) -> float:
    try:
        return float(fact.value)
    except ValueError:
        raise UnverifiedError("it is no number") from None


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


def _constraint(fact: StatedFact, around: str) -> Iterable[Constraint]:
    """The constraint of a line, whose numbers the quote has, and whose names the sentence `around` it has."""
    line = str(fact.value) if fact.field == "constraint" else f"accelerators = {fact.value}"
    made = stated_constraints([line]) or ()
    for one in made:
        if one.kind == "accelerators":
            missing = [kind for kind in one.value if not is_spelled("accelerator", kind, fact.quote, Said())]
        else:
            is_named = names_spread if one.kind in ("within_node", "across_nodes") else names_parallel
            missing = [name for name in _LINE_NAME.findall(line) if not is_named(name, around)]
            field = "nodes" if one.kind == "reserved_nodes" else "gpus"
            numbers = map(float, _LINE_NUMBER.findall(line))
            missing += [
                f"{number:g}"
                for number in numbers
                if not (_is_worked(fact, number) or is_counted(number, fact.quote, field))
            ]
        if missing:
            raise UnverifiedError(f"{', '.join(missing)} does not stand in {fact.quote[:80]!r}")
    return [one.model_copy(update={"words": fact.quote[:500]}) for one in made]


def _compared(fact: StatedFact) -> StatedStrategy:
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


def _degree(fact: StatedFact, around: str) -> int:
    number = _figure(fact)
    if number != int(number) or not has_number(number, fact.quote) or not names_parallel(fact.field, around):
        raise UnverifiedError(f"it does not stand in {fact.quote[:80]!r}")
    return Claims().checked_degree(number, fact.quote)


def _strategy(degrees: list[tuple[StatedFact, int]]) -> StatedStrategy:
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


def _rules_on(quote: str) -> Said:
    """What the rules read of a quote alone; nothing where they refuse it."""
    try:
        return read_words(quote)
    except InputError:
        return Said()
