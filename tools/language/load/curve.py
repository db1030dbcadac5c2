"""A rate curve in words: "office hours, peak 3x the mean", "20 requests/s at peak, 6 on average over the day".

Rates with their times ("20 requests/s from 9 to 18, 2 requests/s otherwise") make its steps. A peak and a mean make a
shape, which is stated as assumed. Other rates are left to the reader of loads.
"""

from __future__ import annotations

import re

from ...errors import InputError
from ...plan.rate_curve import DAY_H, RateCurve, Span, shaped
from ...plan.rate_curve_text import FORMS, curve_of_spans, hours_of
from ..conflicts.claims import Claims
from ..lexicons import load as lex
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities, read_number
from ..writing.normal_form import normalise
from .context import Statement
from .shares import is_of_each

# Words for rates that vary over a day, to be planned for hour by hour.
_DAY = Gated(
    r"(?<![a-z])(?:office|business|working|work)[\s\-]hours(?![a-z])|(?<![a-z])over\s(?:a|the)\sday(?![a-z])|"
    r"(?<![a-z])hour[\s\-]by[\s\-]hour(?![a-z])|(?<![a-z])(?:diurnal|autoscal(?:e|es|ed|ing|er))(?![a-z])|"
    r"(?<![a-z])(?:daily|day)[\s\-](?:curve|cycle|pattern|profile)(?![a-z])|办公时间|工作时间|一天之内|全天(?!的?平?均)",
)
_MEAN = r"(?:the\s)?(?:mean|average|avg|usual|daily\saverage|norm)"
_FACTOR = r"(?:\d{1,3}(?:\.\d{1,3})?|two|three|four|five|six|seven|eight|ten|twelve|twenty)"
TIMES = Gated(
    r"(?<![a-z])(?:(?:a\s)?peaks?(?:\s(?:is|are|at|of|to|load|rate|traffic|hours?|runs?|goes|reach(?:es)?|hits?|comes?|climbs?))*|peaking\sat|burst(?:s|ing)?(?:\sup)?\s(?:to|of))\s?:?\s?(?:about\s|some\s)?"
    rf"(?P<after>{_FACTOR})\s?(?:x|×|times|fold)(?:\s?{_MEAN})?(?![a-z])|"
    rf"(?<![\d.\w])(?P<before>{_FACTOR})\s?(?:x|×|times)\s{_MEAN}(?:\s(?:at|in)\s(?:the\s)?peak)?(?![a-z])|"
    rf"(?<![\d.\w])(?P<that>{_FACTOR})\s?(?:x|×|times)\s(?:that|this|it|as\s(?:many|much))(?=\s(?:when|at|in|during|on|after|for)(?![a-z])|\s?(?:[,.;)\n]|$))|"
    r"(?:忙时|高峰|峰值)(?:系数|因子|倍率)\s?(?:为|是|取|按|[:=])?\s?(?P<cn2>\d{1,2}(?:\.\d{1,3})?)(?!\s?[%\d])|(?<![a-z])peak[\s_](?:to|over)[\s_](?:average|mean|avg)(?:[\s_](?:ratio|factor))?\s?[:=]?\s?(?P<ratio>\d{1,2}(?:\.\d{1,3})?)(?![\d%])|"
    r"(?:峰值|高峰)(?:大?约|大概|差不多|是|为|达到?|有|按){0,3}(?:全天)?(?:的)?(?:平均值?|均值|平时)的?\s?(?P<cn>\d{1,3}(?:\.\d{1,3})?|[两三四五六七八九十])\s?倍",
)
"""How many times the mean a peak is."""
_CLOCK = r"(\d{1,2}(?::\d{2})?)(?:\s?(?:h|o'clock|点))?"
_FROM_TO = Gated(rf"\s?,?\s?(?:from|between)\s{_CLOCK}\s?(?:to|until|till|and|-|–)\s?{_CLOCK}(?![\d:])")
_CLAUSE = re.compile(r"[,;.\n]")
_ELSE = Gated(
    r"\s?(?:otherwise|at\snight|outside(?:\sof)?(?:\s(?:it|that|these|those|them|hours))*|(?:for\s|in\s)?the\srest(?:\sof\sthe\sday)?|"
    r"at\s(?:all\s)?other\stimes|off[\s\-]peak)(?![a-z])",
)
_BEFORE, _AFTER = 24, 24
_PER_HOUR = 1 / 3600
_BREAK = re.compile(r"[,;.。\n(]|(?<![pP])(?<![pP]\d)\d")


def read_rate_curve(page: Page, claims: Claims) -> None:
    """Read the rate curve of a request, where words ask for one.

    Raises:
        RequestError: it contradicts itself, or has a peak but no rate.
    """
    if any(is_of_each(page, Statement("rate", rate, rate.words)) for rate in _rates_in(page)):
        return  # what one person sends is no curve of all
    try:
        stated = _steps(page, needs_whole=False) or _shape(page, needs_day=True)
    except InputError as error:
        raise claims.refusal(str(error)) from None
    if stated is not None:
        claims.claim("rate_curve", *stated)
    else:
        _plan_for_the_highest(page, claims)


def _plan_for_the_highest(page: Page, claims: Claims) -> None:
    """Claim the highest of several rates where one holds for some hours only: those make no whole day."""
    rates = [rate for rate in _rates_in(page) if rate.factor >= _PER_HOUR]
    windows = {rate: _window(page, rate) for rate in rates}
    if not any(windows.values()):
        return
    highest = max(rates, key=lambda rate: rate.decimal_value)
    claims.claim("request_rate", highest.decimal_value, highest.words)
    phrases = [page.take(rate.start, window.end() if window else rate.end).strip() for rate, window in windows.items()]
    claims.reading(
        f"{'; '.join(phrases)!r}: the highest is planned for; with the rate of all other hours ('2 requests/s "
        "otherwise') the replicas are sized over the day"
    )


def _window(page: Page, rate: Quantity) -> re.Match[str] | None:
    """The hours behind a rate; in "2 requests/s, from 9 to 11 four times that" they are those of what follows."""
    window = _FROM_TO.match(page.text, rate.end)
    behind = "" if window is None else _CLAUSE.split(page.text[window.end() :])[0]
    if window is not None and "," in window.group() and (find_quantities(behind) or TIMES.search(behind)):
        page.take(*window.span())
        return None
    return window


def curve_of_words(text: str) -> RateCurve:
    """The curve that words alone state.

    Raises:
        InputError: they state none; the message says what is missing.
    """
    page = Page(normalise(text[:2000]))
    stated = _steps(page, needs_whole=True) or _shape(page, needs_day=False)
    if stated is None:
        raise InputError(
            f"rate curve: {text[:80]!r} gives no rates of a day: say a peak and a mean (20 requests/s at peak, 6 on "
            f"average), or give {FORMS}"
        )
    return stated[0]


def _steps(page: Page, *, needs_whole: bool) -> tuple[RateCurve, str] | None:
    """The curve of rates that have their times beside them, and its words; `None` where no time is stated.

    Rates of some hours make no whole day: `None`, or an error where that is asked for (`needs_whole`).
    """
    spans: list[Span] = []
    others: list[Quantity] = []
    taken: list[tuple[int, int]] = []
    for rate in _rates_in(page):
        if rate.factor < _PER_HOUR:
            continue  # "40,000 a day from 9 to 17" is an amount, and no rate of those hours
        window, otherwise = _window(page, rate), _ELSE.match(page.text, rate.end)
        if window is not None:
            spans.append(Span(hours_of(window[1]), hours_of(window[2]), rate.decimal_value))
            taken.append((rate.start, window.end()))
        elif otherwise is not None:
            others.append(rate)
            taken.append((rate.start, otherwise.end()))
    if not spans:
        return None
    words = page.original[taken[0][0] : taken[-1][1]].strip()
    if len(others) > 1:
        raise InputError(f"rate curve: {words!r} says two rates for the rest of the day; keep one")
    if others:
        spans += _gaps(spans, others[0].decimal_value)
    elif not needs_whole and _gaps(spans, 0.0):
        return None
    try:
        curve = curve_of_spans(spans, f"{words!r}")
    except InputError as error:
        raise InputError(f"{error}; say the rest with 'otherwise': 20 requests/s from 9 to 18, 2 otherwise") from None
    for start, end in taken:
        page.take(start, end)
    page.take_all(_DAY)
    return curve, words


def _gaps(spans: list[Span], rate_per_s: float) -> list[Span]:
    """The parts of a day that `spans` leave out, at one rate."""
    parts = [(span.begins_h, span.ends_h) for span in spans if span.begins_h < span.ends_h]
    for span in (span for span in spans if span.begins_h >= span.ends_h):  # over midnight
        parts += [(0.0, span.ends_h), (span.begins_h, DAY_H)]
    gaps: list[Span] = []
    end_h = 0.0
    for begins_h, ends_h in sorted([*parts, (DAY_H, DAY_H)]):
        if begins_h > end_h:
            gaps.append(Span(end_h, begins_h, rate_per_s))
        end_h = max(end_h, ends_h)
    return gaps


def _shape(page: Page, *, needs_day: bool) -> tuple[RateCurve, str] | None:
    """The curve of a peak and a mean, one of which may be stated as so many times the other, and its words."""
    days, times = list(page.search(_DAY)), list(page.search(TIMES))
    if needs_day and not days:
        return None
    rates = _marked(page, times, is_alone=not needs_day)
    if times:
        return _by_times(page, days, times, rates)
    if len(rates["peak"]) != 1 or len(rates["mean"]) != 1:
        return None
    [peak], [mean] = rates["peak"], rates["mean"]
    words = ", ".join([*_taken(page, days), f"{peak.words.strip()} at peak", f"{mean.words.strip()} on average"])
    return shaped(peak.decimal_value, mean.decimal_value, words), words


def _by_times(
    page: Page, days: list[re.Match[str]], times: list[re.Match[str]], rates: dict[str, list[Quantity]]
) -> tuple[RateCurve, str] | None:
    """The curve of a peak of so many times the mean, and a rate: the mean, unless it is stated as the peak."""
    factors = {factor_of(match) for match in times}
    words = ", ".join([*_taken(page, days), *(page.original[slice(*match.span())].strip() for match in times)])
    if len(factors) > 1:
        raise InputError(f"rate curve: {words!r} says two peaks; keep one")
    factor = factors.pop()
    peaks = rates["peak"]
    means = rates["mean"] or ([] if peaks else rates["plain"])
    if not means and not peaks:
        raise InputError(f"rate curve: {words!r} says no rate; say how many requests/s come on average or at peak")
    mean = means[0].decimal_value if means else peaks[0].decimal_value / factor
    peak = peaks[0].decimal_value if peaks else mean * factor
    if abs(peak - mean * factor) > 0.05 * peak:
        raise InputError(
            f"rate curve: a peak of {factor:g} times the mean of {mean:g} requests/s is {mean * factor:g}, not "
            f"{peak:g}; mend one of them"
        )
    for match in times:
        page.take(*match.span())
    of = f"{(means or peaks)[0].words.strip()} {'on average' if means else 'at peak'}"
    return shaped(peak, mean, f"{words}, {of}"), words


def factor_of(match: re.Match[str]) -> float:
    """How many times the mean a peak is, by a match of `TIMES`."""
    return read_number(next(filter(None, match.groups()))) or 1.0


def _taken(page: Page, days: list[re.Match[str]]) -> list[str]:
    return [page.take(*match.span()) for match in days]


def _rates_in(page: Page) -> list[Quantity]:
    return [rate for rate in find_quantities(page.text) if rate.unit == "requests/s" and rate.upper is None]


def _marked(page: Page, times: list[re.Match[str]], *, is_alone: bool) -> dict[str, list[Quantity]]:
    """Rates that are a "peak", a "mean" or "plain"; beside one with a unit, a bare one "on average" is a rate too."""
    rates = _rates_in(page)
    bare = [number for number in find_quantities(page.text) if number.unit == "count"] if rates or is_alone else []
    bare = [number for number in bare if not any(match.start() <= number.start < match.end() for match in times)]
    kinds: dict[str, list[Quantity]] = {"peak": [], "mean": [], "plain": []}
    for rate in [*rates, *bare]:
        kind = _mark_of(page, rate)
        if rate in rates or (kind != "plain" and not _is_length(page, rate)):
            kinds[kind].append(rate)
    return kinds


def _beside(page: Page, number: Quantity) -> tuple[str, str]:
    """The words before a number and behind it, each up to the next break."""
    before = _BREAK.split(page.original[max(0, number.start - _BEFORE) : number.start])[-1]
    return before, _BREAK.split(page.original[number.end : number.end + _AFTER])[0]


def _is_length(page: Page, number: Quantity) -> bool:
    """Whether words beside a bare number say that it is a length."""
    roles = (match.lastgroup for words in _beside(page, number) for match in lex.ROLE.finditer(words))
    return any(role in lex.LENGTHS for role in roles)


def _mark_of(page: Page, rate: Quantity) -> str:
    before, after = _beside(page, rate)
    words = f"{before} {rate.words} {after}"
    if lex.PEAK.search(words):
        return "peak"
    return "mean" if lex.USUAL.search(words) or re.search(r"(?<![a-z])mean(?![a-z])", words, re.IGNORECASE) else "plain"
