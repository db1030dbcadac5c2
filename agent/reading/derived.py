"""Whether a figure follows from the words that are quoted for it: as it stands, in other units, or put together of two.

Numbers are those that are written in the words, in whatever script. What may be done with them: thousands as 1,000 or
1,024, seconds and minutes as milliseconds, per minute, hour or day, a speed as a time per token, what is left of a
share, the sum, the product and the quotient of two. Longer ways are spelled out by the model (`working.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

from ...tools.catalog import hardware
from ...tools.language.patterns.number_words import ENGLISH_NUMBER, NUMBER_WORDS, chinese_value, english_value
from ...tools.language.patterns.quantities import find_quantities
from ...tools.language.writing.normal_form import normalise
from ...tools.language.writing.written_lengths import in_tokens
from ...tools.plan.latency_limits import LATENCY_FIELDS

TOKEN_FIELDS = ("input_tokens", "output_tokens", "shared_prompt_tokens", "prefill_chunk_tokens")
_SHARES = ("memory_utilization", "prefix_cache_hit_rate")
_COUNTED = ("nodes", "gpus_per_node", "gpus", "concurrency", "replicas")
_RATES = ("request_rate", "min_tokens_per_second")
_MINUTE, _HOUR = r"minutes?(?![a-z])|(?<![a-z])min(?![a-z])|[rq]pm|分钟?", r"hour|/\s?hr?(?![a-z])|小时|钟头"
_PER = ((_MINUTE, 1 / 60), (_HOUR, 1 / 3600), (r"(?<![a-z])day|daily|天|日", 1 / 86_400))
_LASTS = ((r"(?<![a-z])s(?:ec(?:ond)?s?|ekunden?)?(?![a-z])|秒", 1000.0), (_MINUTE, 60_000.0))
_RELATIVE = 0.006
_ONE = re.compile(r"(?<![a-z])(?:one|single|an?|lone)(?![a-z])|[一单]", re.IGNORECASE)
_NODE = re.compile(
    r"(?<![a-z])(?:[dh]gx|node|server|box|machine|host|workstation|tower|desktop|chassis|pc|rig|vm)(?![a-z])|[台机]",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{1,3}(?:[,'’\u202f]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_GROUPED = str.maketrans("", "", ",'’\u202f")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d,])")
_ENGLISH = (
    re.compile(rf"(?<![a-z])(?:{ENGLISH_NUMBER})(?![a-z])"),
    re.compile(rf"(?<![a-z])(?:{'|'.join(NUMBER_WORDS)})(?:[\s-](?:{'|'.join(NUMBER_WORDS)}))*(?![a-z])"),
)
_CHINESE = re.compile(r"[零〇一二两三四五六七八九十百千万亿]+")
_AND_A_HALF = re.compile(r"(?<![a-z])half(?![a-z])|半")
# Parts by name, and into how many such parts a thing falls.
_PARTS = tuple(
    (re.compile(rf"(?<![a-z])(?:{words})s?(?![a-z])|{chinese}"), count)
    for words, chinese, count in (
        ("half|halv(?:e|ed|ing)|twice|double|both|second|pair", "半|[两二]倍|翻一?[倍番]", 2.0),
        ("third|triple", "三分之|三倍", 3.0),
        ("quarter|fourth", "四分之|四倍", 4.0),
        ("fifth", "五分之", 5.0),
        ("tenth", "十分之|[一二三四五六七八九]成", 10.0),
    )
)


def derived(field: str, value: float, quote: str) -> float | None:
    """`value` as `field` has it, where it follows from `quote`; `None` where it does not.

    A length that was written in thousands and read as decimal ones comes back with k = 1,024, as the rules read it.
    """
    words = normalise(quote)
    for candidate in _candidates(field, words, numbers_of(quote)):
        if abs(candidate - value) <= _RELATIVE * max(abs(value), 1e-9):
            thousands = {
                quantity.decimal_value: quantity.value for quantity in find_quantities(words) if field in TOKEN_FIELDS
            }
            return thousands.get(candidate, value)
    return None


def has_number(value: float, quote: str) -> bool:
    """Whether `value` is written in `quote`, in digits that may be glued to a word ("TP8") or in words."""
    return value in numbers_of(quote) or (value == 1 and _ONE.search(quote) is not None)


def is_counted(value: float, quote: str, field: str = "gpus") -> bool:
    """Whether `value` is written in `quote`, or is the product or the sum of two numbers of it."""
    return has_number(value, quote) or derived(field, value, quote) is not None


@lru_cache(maxsize=256)
def numbers_of(quote: str) -> frozenset[float]:
    """All numbers of a quote, in digits or in words, as they stand and in plain writing; of thousands both readings."""
    return frozenset(filter(math.isfinite, _written(quote) | _written(normalise(quote))))


def _written(words: str) -> set[float]:
    lower = words.lower()
    quantities = (*find_quantities(words), *find_quantities(in_tokens(words)[0]))
    numbers = {
        *(float(digits.translate(_GROUPED)) for digits in _DIGITS.findall(words)),
        *(
            end
            for quantity in quantities
            for end in (quantity.value, quantity.decimal_value, quantity.upper)
            if end is not None
        ),
        *(float(english_value(match.group()) or 0) for pattern in _ENGLISH for match in pattern.finditer(lower)),
        *(float(chinese_value(match.group()) or 0) for match in _CHINESE.finditer(words)),
        *(float(f"{whole}.{part}") for whole, part in _DECIMAL_COMMA.findall(words)),
        *(part for pattern, count in _PARTS if pattern.search(lower) for part in (count, 1 / count)),
    }
    if _AND_A_HALF.search(lower):  # "two minutes and a half", "a second and a half"
        numbers |= {number + 0.5 for number in (*numbers, *([1.0] if _ONE.search(lower) else []))}
    return numbers


def _candidates(field: str, words: str, numbers: frozenset[float]) -> Iterator[float]:
    """The values that the numbers of `words` may stand for in a field."""
    sizes = [
        float(mention.gpus_per_node)
        for mention in hardware.mentions(words)
        if mention.gpus_per_node and field in _COUNTED
    ]
    if field in _COUNTED:
        numbers |= {*sizes}
        is_one = _ONE.search(words) or (field == "nodes" and _NODE.search(words))
        numbers |= {1.0} if is_one else set[float]()
    if field in _SHARES:
        shares = [number if number <= 1 else number / 100 for number in numbers]
        yield from (*shares, *(1 - share for share in shares))
        return
    lasts = _LASTS if field in LATENCY_FIELDS else _PER if field in _RATES else ()
    factors = [1.0, *(factor for per, factor in lasts if re.search(per, words, re.IGNORECASE))]
    yield from (number * factor for number in numbers for factor in factors)
    if field == "tpot_ms_max":
        yield from (1000 / number for number in numbers if number > 0)
    if field in LATENCY_FIELDS or field == "usd_per_gpu_hour":
        return
    counted = [end for quantity in find_quantities(words) for end in {quantity.value, quantity.decimal_value}]
    for first, second in combinations([*counted, *sizes], 2):
        together = [first * second, first + second]
        if field in _RATES and first and second:
            together += [first / second, second / first, first / second * 1000, second / first * 1000]
        yield from (value * factor for value in together for factor in factors)
