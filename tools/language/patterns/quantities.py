"""Numbers with units in English and Chinese text: the one place that knows how people write them.

`find_quantities` lists every number of a text with its unit, its range and its place ("2,048 tokens", "1.5k", "两台",
"400 Gbit/s"). It refuses to say what a number is *for*: that is the reader's business. Digits inside a word (`H100`,
`70B`, `v3.1`) are no quantity. Text is expected as `normalise` gives it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from .gated import Gated
from .number_words import COMPOSED, ENGLISH_NUMBER, PHRASES, chinese_value, composed_value, english_value
from .units import COUNTED, UNIT_PATTERNS, Unit, unit_at

_SUFFIXES: dict[str, tuple[int, int]] = {  # suffix: (where things are counted, where they are measured)
    "k": (1024, 1000), "m": (1024**2, 1000**2), "千": (1000, 1000), "百": (100, 100), "万": (10_000, 10_000),
    "百万": (10**6, 10**6), "十万": (10**5, 10**5), "千万": (10**7, 10**7), "亿": (10**8, 10**8),
    "hundred": (100, 100), "thousand": (1000, 1000), "million": (10**6, 10**6),
    "billion": (10**9, 10**9), "trillion": (10**12, 10**12),
}  # fmt: skip

_DIGITS = r"(?:\d{1,3}(?:,\d{3}){1,9}(?!\d)|\d+)(?:\.\d+)?(?:e\+?\d{1,2}(?![A-Za-z0-9])|\^\d{1,3})?"
_SUFFIX = (
    r"(?:k(?=in|out|tok|input|output|context|ctx|prompt)|k(?![a-z0-9])|m(?![a-z0-9/])|[十百千]万|千|万|百|亿|"
    r"\s?(?:hundred|thousand|million|billion|trillion)\b)"
)
# "提单人" names a form, and no single person.
_CHINESE = (
    r"(?!单一|(?<=[运货面提订下工账表清名菜保制定审派接])单)(?<!单)[零〇一二两三四五六七八九十百千万亿双单]{1,18}"
)
# "六十四", "十六", "十二万"; no such figures: "十分", "千万", "万一", "十一" (a holiday), "十二月".
_CHINESE_FIGURE = re.compile(
    r"[一二两三四五六七八九][十百千万]|十[二三四五六七八九](?!月|点|日|号)|十[一二三四五六七八九]?[万千亿]"
)
_OF = r"(?=\s(?:of|the|a|an|its|our|all|is|are|has|have|will|online|active|busy|waiting|logged)\b)"
_PART_NAMES = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
# "a third of", "two thirds of", "三分之二", "六成", "六成五".
_FRACTION = (
    rf"(?:one\s)?half{_OF}|(?P<some>an?|one|two|three|four|six|seven|eight|nine)[\s\-](?P<parts>{'|'.join(_PART_NAMES)})s?{_OF}|"
    r"一半|半数|(?P<parts_cn>[三四五六八十])分之(?P<some_cn>[一二两三四六七八九])|"
    r"(?P<tenths>[一二两三四五六七八九])成(?:(?P<half>[五半])|(?![本立为功员都熟]))"
)
# "1 in 6 of them", "two out of every five users": a share of people, and no two numbers.
_FEW_OF = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|sixteen|eighteen|twenty(?:-five)?|thirty|forty|fifty|(?:a|one)\shundred|"
    r"\d{1,3})"
)
_RATIO = (
    rf"(?<![\d.,])(?P<part>{_FEW_OF})\s(?:in|out\sof)\s(?:every\s|each\s)?(?P<whole>{_FEW_OF})(?![\d.,]*\d)"
    r"(?=\s(?:(?!tok|gpu|card|accelerator|device|server|node|machine|box|host|instance|replica)[a-z]{3,12}s\s)?(?:of\s(?:them|those|these|the|our|us|which|whom)|is|are|has|have|sends?|runs?|asks?|gets?|waits?|uses?|needs?|at\s(?:any|once|the\ssame)|users?|people|sessions?|employees|customers|agents|students|will\sbe)"
    r"(?![a-z])|\s?(?:[,.;)\n]|$))"
)
# The sign counts only where a word or a bracket does not end just before it ("512-8192" is a range).
_NUMBER = Gated(
    rf"(?<![A-Za-z])(?P<fraction>{_FRACTION}|{_RATIO})|(?<![A-Za-z0-9_.])(?:{COMPOSED})"
    rf"|(?<![A-Za-z0-9_.\-])(?<![^\s(=:,<>])-?{_DIGITS}(?:\s?{_SUFFIX})?"
    rf"|(?:(?<![A-Za-z0-9_.])|(?<=[^A-Za-z0-9_.]x)){_DIGITS}(?:\s?{_SUFFIX})?"
    rf"|(?<![A-Za-z0-9_\-]){ENGLISH_NUMBER}(?![A-Za-z0-9_])(?!-(?:way|fold)|\stime(?![a-z]))|{_CHINESE}",
)
_PARTS = Gated(rf"(-?)({_DIGITS})\s?({_SUFFIX})?")
_RANGE_JOIN = Gated(r"\s?(?:to|through|until|-|–|—|~|～|到|至|\.\.\.?)\s?")
_BETWEEN = Gated(r"(?:between|from|介于|从|在)\s?$")
_BETWEEN_JOIN = Gated(r"\s?(?:and|(?:all\sthe\sway\s)?(?:up\s)?to|和|与|到|至|-|–|~)\s?")
_DOLLAR = Gated(r"(?:(?:us)?[$＄]|(?<![a-z])usd)\s?$")
_SECONDS_OF: dict[str, float] = {"秒": 1.0, "分": 60.0, "小": 3600.0, "天": 86_400.0}
_EACH_SECOND_BEFORE = Gated(
    r"(?P<user>每个?(?:用户|请求|人|路))?(?:每(?P<time>秒钟?|分钟|小时|天)(?P<user2>每个?(?:用户|请求|人|路))?[^\d,.;:。/(]{0,12}"
    r"|(?<![\d一二三四五六七八九十])一(?P<one>秒钟?|分钟|小时|天)(?:大?概?约?|差不多|总?共?|要?有?来?|处理|跑){0,4}\s?)$"
)
_PIECES = re.compile(r"\s?[个次条笔单件封篇则份段通](?![个月小字词])")
_PER_SECOND_OF: dict[Unit, Unit] = {"tokens": "tokens/s", "requests": "requests/s"}
_MOST = 1e30
_PERCENT_BEFORE = re.compile(r"百分之\s?$")


class Quantity(Struct, frozen=True):
    """A number of a text with its unit.

    `value` is in the unit's base (ms, bytes, 10^9 bytes/s, TFLOP/s, a share of 1, else the thing itself). `upper` is
    the upper end where a range was written (then `value` is the lower). `decimal_value` is `value` with `k` = 1000,
    for figures that turn out to be measured. `spelled` is the unit as it was written ("" if absent), and
    `factor` what a number in it is multiplied by.
    """

    value: float
    decimal_value: float
    unit: Unit
    start: int
    end: int
    words: str
    spelled: str = ""
    upper: float | None = None
    factor: float = 1.0

    @property
    def number(self) -> float:
        """The number as it was written, whatever its unit."""
        return round(self.value / self.factor, 9)

    @property
    def is_whole(self) -> bool:
        """Whether the value is an integer (of any sign)."""
        return abs(self.value) < 1e18 and self.value == int(self.value)


def read_number(words: str) -> float | None:
    """The value of one number as written ("2,048", "eight", "两", "1e3"), `k` being 1024; `None` if it is no number."""
    pair = _number_values(words.strip())
    return None if pair is None else pair[0]


def read_share(words: str) -> float | None:
    """The share that words state ("65%", "a quarter"), 1 being all; `None` if they state none."""
    quantities = find_quantities(f"{words} of them")
    return quantities[0].value if quantities and quantities[0].unit == "share" else None


def read_whole(words: str | None) -> int | None:
    """The value of a whole number as written; `None` if there is none or it is no whole number."""
    value = read_number(words) if words else None
    return int(value) if value is not None and value == int(value) else None


@lru_cache(maxsize=16)
def find_quantities(text: str) -> tuple[Quantity, ...]:
    """Every quantity of a normalised text, in order; ranges ("512 to 8192 tokens") are a single quantity."""
    quantities: list[Quantity] = []
    position = 0
    while match := _NUMBER.search(text, position):
        quantity = _quantity_at(text, match)
        if quantity is None:
            position = match.start() + max(1, len(match.group()))
            continue
        quantity = _extended_to_range(text, quantity)
        quantities.append(quantity)
        position = quantity.end
    return tuple(quantities)


def _quantity_at(text: str, match: re.Match[str]) -> Quantity | None:
    if match["fraction"]:
        return _fraction(match)
    values = _number_values(match.group())
    if values is None:
        return None
    start, end = match.span()
    unit, factor, spelled, unit_end = unit_at(text, end)
    if dollar := _DOLLAR.search(text[max(0, start - 5) : start]):
        start, unit, factor, spelled, unit_end = start - len(dollar.group()), "usd", 1.0, "$", end
    elif unit == "count" and (percent := _PERCENT_BEFORE.search(text[max(0, start - 5) : start])):
        start, unit, factor, spelled, unit_end = start - len(percent.group()), "share", 0.01, "%", end
    before = _EACH_SECOND_BEFORE.search(text[max(0, start - 24) : start])
    if before and unit == "count" and (piece := _PIECES.match(text, end)):
        unit, spelled, unit_end = "requests", piece.group().strip(), piece.end()
    if before and unit in _PER_SECOND_OF:
        of_one_user = unit == "tokens" and (before["user"] or before["user2"])
        start, unit = start - len(before.group()), "tokens/s/user" if of_one_user else _PER_SECOND_OF[unit]
        factor /= _SECONDS_OF[(before["time"] or before["one"])[0]]
    if unit == "count" and not _may_stand_alone(match.group(), text[end : end + 1]):
        return None
    counted, measured = values
    value = counted if unit in COUNTED else measured
    words = text[start:unit_end].strip()
    return Quantity(value * factor, measured * factor, unit, start, unit_end, words, spelled, factor=factor)


def _may_stand_alone(number: str, following: str) -> bool:
    """Whether a number without a unit is a number at all: `70B` and a Chinese numeral inside a word are not."""
    if not any(c.isdigit() for c in number):
        return _CHINESE_FIGURE.match(number) is not None or (
            number.isascii() and (number.lower() not in PHRASES or number.lower().endswith("dozen"))
        )
    if number[-1] in "kK千百万亿":
        return True
    return not (following.isascii() and (following.isalnum() or following == "_")) or following in ("x", "X")


def _extended_to_range(text: str, low: Quantity) -> Quantity:
    """The range that begins with `low`, or `low` itself; a lower end without a unit takes that of the upper."""
    between = _BETWEEN.search(text[max(0, low.start - 8) : low.start])
    join = (_BETWEEN_JOIN if between else _RANGE_JOIN).match(text, low.end)
    if join is None:
        return low
    number = _NUMBER.match(text, join.end())
    high = _quantity_at(text, number) if number else None
    if high is None or high.start != join.end():
        return low
    if low.unit == "count" and high.unit != "count":
        factor = next((f for p, u, f in UNIT_PATTERNS if u == high.unit and p.fullmatch(high.spelled)), 1.0)
        base = low.value if high.unit in COUNTED else low.decimal_value
        low = replace(low, value=base * factor, decimal_value=low.decimal_value * factor, unit=high.unit)
    low = _with_suffix_of(low, high)
    if high.unit == "count":
        high = replace(high, unit=low.unit, value=high.value if low.unit in COUNTED else high.decimal_value)
    if high.unit != low.unit or high.value <= low.value:
        return low
    words = text[low.start : high.end].strip()
    return replace(low, end=high.end, words=words, upper=high.value, spelled=high.spelled or low.spelled)


def _with_suffix_of(low: Quantity, high: Quantity) -> Quantity:
    """The lower end of "1-2k" counted in thousands too, where it is the smaller number as it stands."""
    ends = [_PARTS.match(quantity.words) for quantity in (low, high)]
    if ends[0] is None or ends[1] is None or ends[0][3] or not ends[1][3]:
        return low
    if _digits_value(ends[0][2]) >= _digits_value(ends[1][2]):
        return low
    counted, measured = _SUFFIXES[ends[1][3].strip().lower()]
    scale = counted if low.unit in COUNTED else measured
    return replace(low, value=low.value * scale, decimal_value=low.decimal_value * measured)


def _fraction(match: re.Match[str]) -> Quantity | None:
    """ "half of", "三分之一" and the like as a share; `None` for "four thirds of"."""
    if match["part"]:
        share = (read_number(match["part"]) or 1.0) / (read_number(match["whole"]) or 1.0)
    elif match["parts"]:
        share = (english_value(match["some"].lower()) or 1) / _PART_NAMES[match["parts"].lower()]
    elif match["parts_cn"]:
        share = (chinese_value(match["some_cn"]) or 1) / (chinese_value(match["parts_cn"]) or 1)
    elif match["tenths"]:
        share = (chinese_value(match["tenths"]) or 0) / 10 + (0.05 if match["half"] else 0.0)
    else:
        share = 0.5
    is_part = share < 1.0 or match["part"]
    return Quantity(share, share, "share", *match.span(), match.group()) if is_part else None


def _number_values(words: str) -> tuple[float, float] | None:
    """The value where things are counted and where they are measured."""
    lowered = words.lower()
    english = english_value(lowered)
    if english is not None:
        return float(english), float(english)
    composed = composed_value(lowered)
    if composed is not None:
        return composed, composed
    if parts := _PARTS.fullmatch(lowered):
        sign, digits, suffix = parts.groups()
        base = _digits_value(digits) * (-1 if sign else 1)
        if not suffix:
            return base, base
        counted, measured = _SUFFIXES[suffix.strip()]
        whole = base * counted
        return (float(round(whole)) if abs(whole) < 1e15 else whole), base * measured  # 1.2k tokens are 1229
    chinese = chinese_value(words)
    return None if chinese is None else (float(chinese), float(chinese))


def _digits_value(digits: str) -> float:
    """The value of written digits, at most `_MOST`, since sums and shares of infinity fail."""
    base, _, exponent = digits.replace(",", "").partition("^")
    try:
        return min(float(base) ** int(exponent or 1), _MOST)
    except OverflowError:
        return _MOST
