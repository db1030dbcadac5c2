"""Whether a number follows from the words that are quoted for it: as it stands, in other units, or put together of two.

Numbers are found by the readers of the rules. What may be done with them: thousands as 1,000 or 1,024, per minute, hour
or day, a speed as a time per token, the sum and the product of two, a share of one, requests over a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from ...tools.catalog import hardware
from ...tools.language.normal_form import normalise
from ...tools.language.quantities import Quantity, find_quantities
from ...tools.language.written_lengths import in_tokens
from ...tools.plan.latency_limits import LATENCY_FIELDS

TOKEN_FIELDS = ("input_tokens", "output_tokens")
_SHARES = ("memory_utilization", "prefix_cache_hit_rate")
_COUNTED = ("nodes", "gpus_per_node", "gpus", "concurrency", "replicas")
_PER = (
    (re.compile(r"minutes?\b|\bmin\b|rpm|qpm|分钟", re.IGNORECASE), 1 / 60),
    (re.compile(r"hour|/\s?hr?\b|小时", re.IGNORECASE), 1 / 3600),
    (re.compile(r"\bday|daily|天|每日", re.IGNORECASE), 1 / 86_400),
)
_RELATIVE = 0.006
_SPEEDS = ("tokens/s", "tokens/s/user", "count", "tokens")
_ONE = re.compile(r"(?<![a-z])(?:one|single|an?|lone)(?![a-z])|[一单]", re.IGNORECASE)


def derived(field: str, value: float, quote: str) -> float | None:
    """`value` as `field` has it, where it follows from `quote`; `None` where it does not.

    A length that was written in thousands and read as decimal ones comes back with k = 1,024, as the rules read it.
    """
    words = in_tokens(normalise(quote))[0]
    found = find_quantities(words)
    for candidate, own in (*_single(field, found, words), *_of_two(field, found, words)):
        if abs(candidate - value) <= _RELATIVE * max(abs(value), 1e-9):
            return own if own != candidate else value
    return None


def has_number(value: float, quote: str) -> bool:
    """Whether `value` is written in `quote`, in digits that may be glued to a word ("TP8") or in words."""
    words = normalise(quote)
    written = [float(digits) for digits in re.findall(r"\d+(?:\.\d+)?", words)]
    spoken = [end for one in find_quantities(words) for end in _ends(one)]
    return value in (*written, *spoken) or (value == 1 and _ONE.search(words) is not None)


def _ends(one: Quantity) -> tuple[float, ...]:
    """The numbers that a quantity may stand for."""
    return (one.value, one.decimal_value) if one.upper is None else (one.value, one.decimal_value, one.upper)


def _single(field: str, found: tuple[Quantity, ...], words: str) -> Iterator[tuple[float, float]]:
    """What each number alone gives: a candidate, and what the field has where it is that."""
    for one in found:
        for end in _ends(one):
            if field in TOKEN_FIELDS:
                yield end, one.value if end == one.decimal_value else end
            elif field in LATENCY_FIELDS:
                yield from _of_latency(field, one, end)
            elif field in _SHARES:
                share = end if one.unit == "share" or end <= 1 else end / 100
                yield from ((share, share), (1 - share, 1 - share))
            else:
                yield end, end
            if field == "request_rate":
                yield from ((end * factor, end * factor) for per, factor in _PER if per.search(words))
    if field in _COUNTED and _ONE.search(words):
        yield 1.0, 1.0
    if field in _COUNTED:
        sizes = (mention.gpus_per_node for mention in hardware.mentions(words))
        yield from ((float(size), float(size)) for size in sizes if size)


def _of_latency(field: str, one: Quantity, end: float) -> Iterator[tuple[float, float]]:
    if one.unit in ("ms", "ms/token", "count"):
        yield end, end
    if field == "tpot_ms_max" and one.unit in _SPEEDS and end > 0:
        yield 1000 / end, 1000 / end


def _of_two(field: str, found: tuple[Quantity, ...], words: str) -> Iterator[tuple[float, float]]:
    """What two numbers give together, for fields that people state so."""
    if field in (*LATENCY_FIELDS, *_SHARES, "usd_per_gpu_hour"):
        return
    sizes = [float(one.gpus_per_node) for one in hardware.mentions(words) if one.gpus_per_node and field in _COUNTED]
    numbers = [(end, one.unit) for one in found for end in dict.fromkeys(_ends(one))]
    numbers += [(size, "count") for size in sizes]
    factors = [1.0, *(factor for per, factor in _PER if per.search(words) and field == "request_rate")]
    for (first, unit), (second, other) in combinations(numbers, 2):
        together = [first * second, first + second]
        if field == "request_rate" and "ms" in (unit, other) and first and second:
            together = [first / second * 1000 if other == "ms" else second / first * 1000]
        for value in together:
            yield from ((value * factor, value * factor) for factor in factors)
