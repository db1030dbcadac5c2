"""Rates of arrival: as they stand, with bare figures beside them, and within a window or at a peak.

"18,000 requests an hour at peak, 6,000 on a normal afternoon": a bare number beside a rate has its unit. "864,000 calls
a day, all between 9 and 21" is an amount that comes within those hours. "The peak is 4x the mean" stretches a mean.
"30 billion input tokens a month" is a rate once the length of a request is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ..conflicts.claims import Claims
from ..lexicons.load import AT_PEAK, OF_SPREAD, OF_TIME, PEAK, SIZED_FOR, WHEN
from ..patterns.gated import Gated
from ..patterns.matching import gap_cost
from ..patterns.page import CARD, Page
from ..patterns.quantities import Quantity, find_quantities, read_number
from .changes import FACTOR
from .context import MOST_AT_ONCE, WORK, Statement, counts_work, is_of_tokens
from .curve import TIMES, factor_of
from .length_percentiles import PERCENTILE
from .token_amounts import AMOUNTS, DAY_S, settle_token_amounts

_PEOPLE = Gated(
    r"(?<![a-z])(?:people|persons?|users?|employees|staff|members|agents|students)(?![a-z])|人|用户|员工|坐席|学生|同学"
)
_EACH = Gated(r"(?<![a-z])(?:each|everyone|everybody|apiece|per\s(?:person|user|head))(?![a-z])|每个?人|每[名位]|人均")
# Of people, behind their number.
_AT_ONCE = Gated(r"(?<![a-z])(?:at\s(?:once|the\ssame\stime|any\s)|simultan|concurren)|同时|并发")
_BEHIND_PEOPLE = 40  # characters
_LEAST_OF_BATCH = 1_000_000  # tokens
_LONGEST_BATCH = 31 * 24.0  # hours
_LEAST_WORK = 100  # "nine letters between 9 and 10 am" are no batch
_NOUN = 16  # characters behind an amount that hold its noun
_OUTPUT = Gated(r"output|generat|completion|输出|生成")
_NOTHING = 0.9  # less than the cost of a word of meaning
_FAR = 4.0
_MOST_BEHIND = 160
_MOST_BEHIND_WORK = 320  # of a job, whose deadline may be stated last
_CLOCK = (
    r"(?P<p{n}>早上?|上午|中午|下午|晚上?|凌晨)?\s?(?P<c{n}>\d{{1,2}})(?P<s{n}>:\d\d)?\s?"
    r"(?P<m{n}>[ap]\.?m\.?(?![a-z])|点钟?|时|h(?![a-z]))?"
)
_COUNT = (
    r"(?:\d{1,2}(?:\.\d)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fourteen|sixteen|"
    r"[一二两三四五六七八九十]{1,3})"
)
# The hours of a day within which an amount comes.
_HOURS = Gated(
    r"(?<![a-z])(?:within|in|into|inside|over|during|across|spread\s(?:over|across))\s(?:(?:an?|the|about|around|roughly|some|only|"
    rf"just|one|those|these|our|same|single)\s){{0,3}}(?P<h>{_COUNT})[\s\-]?(?:(?:working|business|office)\s)?(?:hours?|hrs?|h)(?![a-z])"
    r"(?:[\s\-](?:windows?|(?:working\s|business\s)?days?|workdays?|shifts?|periods?|spans?)(?![a-z]))?|"
    rf"(?<![\w.])(?P<times>{_COUNT})\s(?:nights|days|evenings|shifts|sessions|windows)\s(?:of|at|x|with)\s(?P<h7>{_COUNT})[\s\-]?(?:hours|hrs|h)(?:\seach)?(?![a-z])|"
    rf"(?<![a-z])(?:run|window|batch|job|slot|night)\s(?:has|lasts|takes)\s(?P<h9>{_COUNT})\s(?:hours|hrs|h)(?![a-z])|"
    rf"(?<![a-z])(?:have|get|got|ours|mine|booked|rented|reserved|available|free)\s(?:[a-z0-9]{{2,12}}\s){{0,5}}?for\s(?:only\s|just\s|about\s)?(?P<h8>{_COUNT})\s(?:hours|hrs|h)(?![a-z])|"
    rf"(?<![a-z])(?:within|in|over|during)\s(?:(?:max(?:imum)?|at\smost|about|the|next|only|under|no\smore\sthan)\s){{0,2}}(?P<days>{_COUNT})\sdays(?![a-z]|\s(?:of|at|x|with)\s\d)|"
    rf"[(]\s?(?P<h4>{_COUNT})\s?(?:hours|hrs?|h)(?:\s(?:flat|straight|in\s(?:all|total)))?(?=\s?[,)])|"
    rf"(?<![a-z])(?:(?:window|deadline)\shours?\s?[:=]\s?(?P<h3>{_COUNT})(?![\w.])|"
    rf"window\s?(?:[:=]|of|is)?\s?(?P<h6>{_COUNT})[\s\-]?(?:hours?|hrs?|h)(?=\s?(?:[,.;:()!?\n]|$|to(?![a-z])|for\s(?:it|them|this|that|all)(?![a-z])|(?:each|every|per|a|at|over)\s?(?:night|day)))|"
    rf"(?P<h5>{_COUNT})[\s\-](?:hours?|hrs?|h)\s(?:(?:time\s)?(?:windows?|budget|slot)|to\s(?:get|do|finish|process|work|run|complete))(?![a-z]))|"
    rf"(?<![\d.])(?P<days2>{_COUNT})\s?天(?:之?内)?(?:要|得|必须|能|就|全部)?(?:跑完|处理完|做完|完成|搞定)|"
    rf"(?:集中|全部|全都?|都|均匀)?(?:落|发生|分布)?在?(?:这|那|白天|一天的?|工作的?)?(?<!\d)(?P<h2>{_COUNT})\s?个?小时(?:之内|以内|里|内|均匀|(?:要|得|必须|能|就|全部)?(?:跑完|处理完|做完|完成|搞定)|的?时?间?窗口?|的?(?:工作|上班|营业)时间)",
)
_BETWEEN_HOURS = Gated(
    rf"(?P<lead>(?<![a-z])(?:between|from|在)\s?)?{_CLOCK.format(n=1)}\s?(?:and|to|until|till|-|–|~|到|至)\s?{_CLOCK.format(n=2)}(?![\d:%]|\.\d)"
    r"(?P<tail>(?=\s?(?:[,.;:!?()\n]|$|(?:o'clock|hours|every|each|on|only|in\sthe|local|daily|utc|gmt|ces?t|and|but)(?![a-z])|之间|[均基都这])))?",
)
# "bursts of 18 when a streamer goes live": before a figure beside a rate. What comes "in bursts of 18" comes at once.
_BURSTS = Gated(r"(?<![a-z])(?<!in\s)(?:bursts?|spikes?|peaks?|surges?)\s(?:(?:of|to|at|up\sto|around|about)\s){1,2}$")
# "The busiest hour carries 12% of the day", "最忙的一小时占全天的12%".
_BUSY_SHARE = Gated(
    r"(?<![a-z])(?:(?:busiest|peak|rush|worst|top)\shour)(?:\s(?:alone|of\sthe\sday))?\s(?:carries|carry|is|has|takes|sees|gets|brings|makes(?:\sup)?|holds|accounts\sfor|handles)\s"
    r"(?:(?:about|around|roughly|some|up\sto|nearly|almost|approximately)\s)?(?P<a>\d{1,2}(?:\.\d)?)\s?(?:%|percent|per\scent)\sof\s(?:(?:the|a|that|each|our)\s(?:whole\s)?(?:day|daily|total)[a-z'\s]{0,16}|it|them|that|these|those|all)(?![a-z])|"
    r"(?<![\d.])(?P<c>\d{1,2}(?:\.\d)?)\s?(?:%|percent)\sof\s(?:them|these|those|it|that|which|(?:the|a|that|each)\s(?:day|daily)[a-z'\s]{0,16})\s?(?:(?:arrives?|comes?(?:\sin)?|lands?|falls?|hits?|is|are|happens?|pours?\sin)\s)?"
    r"(?:in|within|during|into)\s(?:(?:the|that|its|one|a|our)\s)?(?:busiest|peak|last|rush|first|worst|single|lunch)\shour(?![a-z])|"
    r"(?:最忙|高峰|最高峰)的?(?:那|一|1)?个?小时(?:大?约|要|就)?(?:占|承担|集中|有)了?(?:全天|一天|当天|当日|日)?的?(?:量的?|总量的?)?\s?(?:大?约)?(?P<b>\d{1,2}(?:\.\d)?)\s?%",
)
# "Start Friday 20:00, through by Monday 06:00".
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAME = (
    r"(?P<d{n}>mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}},?\s(?:(?:at|morning|evening|night)\s){{0,2}}"
    r"(?P<c{n}>[01]?\d|2[0-4])(?::(?P<min{n}>[0-5]\d))?(?:\s?(?P<m{n}>[ap])\.?m)?"
)
_WEEKEND = Gated(
    rf"(?<![a-z]){_DAY_NAME.format(n=1)}[^.;\n\d]{{1,60}}?{_DAY_NAME.format(n=2)}(?![\d:])",
)
# Behind a number: it is a factor, or a length ("3000 in on a normal day").
_OF_ELSE = Gated(
    r"\s?(?:(?:x|×|times|fold|倍|out|[进出])(?![a-z])|in(?![a-z])(?!\s(?:the|an?|our|its|this|summer|winter|spring|autumn)(?![a-z])))",
)
_COSTS = Gated(
    r"(?<![a-z])(?:costs?|prices?d?|rents?|rates?\sare|usd|dollars?|eur|euros?|discount|bills?)(?![a-z])|[$€£]|价|费|美元",
)
_OF_A_CARD = re.compile(rf"{CARD}\s?(?:[(@]|at|for)\s?\Z")
_MOST_TO_COST = 80  # characters
_MOST_OF_BURSTS = 24  # characters
_MONTH = Gated("month|月")
_SENTENCE_END = re.compile(r"[!?。\n]|\.(?!\d)")
# In the clause of a window of hours: it is none in which the load comes.
_OF_UPKEEP = Gated(
    r"(?<![a-z])(?:(?:maintenance|outage|back[\s\-]?up|change|patch(?:ing)?|update|upgrade|release|deploy(?:ment)?)\s(?:windows?|slots?|periods?)|"
    r"for\s(?:maintenance|back[\s\-]?ups?|patch(?:es|ing)|updates|upgrades)|downtime)(?![a-z])|(?:维护|变更|备份)(?:窗口|时间)|停机|割接",
)
# How a further sentence shows that it speaks of the amount before it.
_OF_IT = Gated(
    r"[.\s]*(?:(?:all|most|nearly\sall|everything|these|those|they|it|that|this)(?![a-z])|全部|都|它们|这些)",
)
# "Answers must be there within 2 hours" says how long an answer may take.
_DEADLINE = Gated(
    r"(?<![a-z])(?:answer|repl(?:y|ies)|respon|result|read(?:y|able)|done|finish|deliver|must|should|need|kept|stored|retain|old)|"
    r"回复|答复|完成|保[存留]|必须",
)
_OF_NO_HALF = re.compile(r"(?:点钟?|时|h)?")
_LATE = Gated(r"下午|晚|p")
_AT_ONCE_IN_A_TIME = Gated(
    r"(?<![\w.])\d[\d,]{0,8}\s?(?:concurren(?:cy|t(?:\s(?:requests?|users?|calls?))?)|parallel\srequests?)\s?(?:per|/|a|each)\s?(?:s|sec|second|minute|min)(?![a-z])|"
    r"(?<!\d)\d[\d,]{0,8}\s?(?:路|个)?并发(?:数|量)?\s?(?:每|/)\s?(?:秒钟?|s(?![a-z]))"
)
# A claim that is no field, until all has been read: a peak over the mean.
_STRETCH = "peak_over_mean"


def leave_mixed_units(page: Page, claims: Claims) -> None:
    """Take counts "at once" that are given per time off the page: "500 concurrency per second"."""
    for match in page.search(_AT_ONCE_IN_A_TIME):
        words = page.take(*match.span())
        claims.leave_unread(f"{words!r}: say whether so many are served at once or come in a second")


def read_batches(page: Page, claims: Claims) -> None:
    """Read work to be done within some hours as a rate per second: "48,000 documents between 21:00 and 6:00"."""
    for amount in find_quantities(page.text):
        noun = page.original[amount.start : amount.end + _NOUN]
        is_output = amount.unit == "tokens" and amount.value >= _LEAST_OF_BATCH and _OUTPUT.search(noun)
        is_work = (counts_work(page, amount) and amount.value >= _LEAST_WORK) or (
            amount.unit == "requests" and amount.value >= MOST_AT_ONCE and not _are_counted_otherwise(page, amount)
        )
        if amount.upper is not None or not (is_output or is_work):
            continue
        windows = [
            (match, hours)
            for match in (
                *_HOURS.finditer(page.text),
                *_BETWEEN_HOURS.finditer(page.text),
                *_WEEKEND.finditer(page.text),
            )
            if -_MOST_BEHIND < match.start() - amount.end < _MOST_BEHIND_WORK
            and (hours := _hours(page, match, _LONGEST_BATCH)) is not None
        ]
        if len({hours for _, hours in windows}) != 1:
            continue
        share = _share_before(page, amount, windows[0][0])
        each_second = amount.decimal_value * (share.value if share else 1.0) / (windows[0][1] * 3600)
        work = WORK.match(page.text, amount.end)  # its noun must not be read as material of a prompt
        spans = [
            (amount.start, work.end() if work and is_work else amount.end),
            *([(share.start, share.end)] if share else []),
            *(match.span() for match, _ in windows),
        ]
        words = ", ".join(page.take(*span) for span in spans)
        unit = "output tokens/s" if is_output else "requests/s"
        claims.claim("min_tokens_per_second" if is_output else "request_rate", each_second, words)
        claims.reading(f"{words!r} read as {windows[0][1]:g} hours of work at {each_second:.4g} {unit}")
        return


def _are_counted_otherwise(page: Page, amount: Quantity) -> bool:
    """Whether an amount counts people, of whom the text says what each asks or how many are served at once."""
    if _PEOPLE.search(amount.words) is None:
        return False
    clauses = page.text[amount.end : amount.end + _BEHIND_PEOPLE]
    return _EACH.search(page.text, amount.end) is not None or _AT_ONCE.search(clauses) is not None


def read_rates(page: Page, claims: Claims) -> list[Statement]:
    """Every rate of requests, taken off the page."""
    rates = [rate for rate in find_quantities(page.text) if rate.unit == "requests/s" and not is_of_tokens(page, rate)]
    rates = [rate for rate in rates if not _is_price(page, rate)]
    for rate in rates:
        if _MONTH.search(rate.words):
            claims.reading(f"{rate.words!r} read as in a month of 30 days")
    loads = [Statement("rate", _upper_end(claims, rate), _take_rate(page, rate)) for rate in rates]
    if len(loads) == 1:
        loads = [_within_hours(page, claims, loads[0])]
    for other in [other for rate in rates for other in _figures_beside(page, rates, rate)]:
        loads.append(Statement("rate", other, _take_rate(page, other)))
    peaks = [
        peak
        for peak in page.search(TIMES)
        if peak["that"] or PEAK.search(peak.group()) or peak["cn2"] or "峰" in peak.group()
    ]
    peaks = [peak for peak in peaks if not peak["that"] or not loads or _multiplies_a_rate(page, loads, peak)]
    if len({load.quantity.value for load in loads}) > 1:
        peaks = [peak for peak in peaks if not peak["that"]]  # of which of them is asked where loads are weighed
    factors = {factor_of(match) for match in peaks}
    is_wanted = any(peak["that"] and SIZED_FOR.search(page.original, 0, peak.start()) for peak in peaks)
    clauses = [page.clause_text(load.quantity.start, load.quantity.end) for load in loads]
    is_mean = (loads or claims.has("request_rate")) and not any(map(PEAK.search, clauses))
    if len(factors) == 1 and (claims.has(AMOUNTS) or is_mean or (loads and is_wanted)):
        claims.claim(_STRETCH, factors.pop(), ", ".join(page.take(*match.span()) for match in peaks))
    return loads


def _upper_end(claims: Claims, rate: Quantity) -> Quantity:
    """A rate as it stands; of a range, its upper end."""
    if rate.upper is None:
        return rate
    claims.reading(f"{rate.words!r} read as up to {rate.upper:.4g} requests/s, which are planned for")
    return replace(rate, value=rate.upper, decimal_value=rate.upper, upper=None)


def settle_rates(claims: Claims) -> None:
    """Turn amounts of tokens into a rate of requests, and a mean rate into its peak where a factor was stated."""
    settle_token_amounts(claims)
    factor, peak = claims.drop(_STRETCH)
    if factor is None or not claims.has("request_rate"):
        return
    mean, mean_words = claims.values["request_rate"], claims.words["request_rate"]
    claims.replace("request_rate", mean * factor, f"{mean_words}, {peak}")
    claims.reading(f"{peak!r} of {mean_words!r} read as {mean * factor:.4g} requests/s, which are planned for")


def _take_rate(page: Page, rate: Quantity) -> str:
    """Take a rate off the page, with the words behind it that call it the peak; returns the rate's words."""
    words = page.take(rate.start, rate.end)
    if (behind := AT_PEAK.match(page.text, rate.end)) is not None:
        page.take(*behind.span())
    return words


def _figures_beside(page: Page, rates: list[Quantity], rate: Quantity) -> list[Quantity]:
    """Bare numbers beside a rate whose clause only says when they hold, in the unit of the rate."""
    if rate.upper is not None:
        return []
    figures: list[Quantity] = []
    for number in find_quantities(page.text):
        is_behind = number.start >= rate.end
        gap = page.text[rate.end : number.start] if is_behind else page.text[number.end : rate.start]
        is_next = not any(rate.start < q.start < number.start or number.start < q.start < rate.start for q in rates)
        is_bare = number.unit == "count" and number.upper is None and _cost(gap) < _FAR and _is_of_a_time(page, number)
        if is_bare and is_next and (is_behind or OF_SPREAD.search(page.clause_text(rate.start, rate.end))):
            value = number.decimal_value * rate.factor
            figures.append(replace(number, unit="requests/s", value=value, decimal_value=value, factor=rate.factor))
    return figures


def _cost(words: str) -> float:
    return gap_cost(OF_TIME.sub(" ", OF_SPREAD.sub(" ", FACTOR.sub(" ", words))))


def _is_of_a_time(page: Page, number: Quantity) -> bool:
    left, right = page.clause(number.start, number.end)
    if _OF_ELSE.match(page.text, number.end):
        return False
    if _BURSTS.search(page.original[max(0, number.start - _MOST_OF_BURSTS) : number.start]):
        return True
    words = f"{page.original[left : number.start]} {page.original[number.end : right]}"
    is_marked = OF_SPREAD.search(words) or WHEN.search(words)
    return is_marked is not None and not PERCENTILE.search(words) and _cost(words) < _NOTHING


def _is_price(page: Page, rate: Quantity) -> bool:
    """Whether a bare figure an hour or a day is money: "g6e.12xlarge costs 10.50/h and p4d.24xlarge 22/h"."""
    is_bare = not any(letter.isalpha() for letter in rate.spelled.partition("/")[0])
    left = max(page.original.rfind(end, 0, rate.start) for end in ";\n") + 1
    is_of_card = _OF_A_CARD.search(page.text, max(0, rate.start - _MOST_TO_COST), rate.start)
    costs = is_of_card or _COSTS.search(page.original, max(left, rate.start - _MOST_TO_COST), rate.start)
    return is_bare and costs is not None


def _multiplies_a_rate(page: Page, rates: Sequence[Statement], times: re.Match[str]) -> bool:
    """Whether "2x that" speaks of one of the rates: no other number stands between the two."""
    last = max((rate.quantity.end for rate in rates if rate.quantity.end <= times.start()), default=None)
    numbers = find_quantities(page.original) if last is not None else ()
    rivals = [number for number in numbers if number.unit in ("count", "requests", "requests/s")]
    return last is not None and not any(last < rival.start and rival.end <= times.start() for rival in rivals)


def _within_hours(page: Page, claims: Claims, load: Statement) -> Statement:
    """A rate per day as the rate within the hours in which all of it comes, where these are stated."""
    rate = load.quantity
    if abs(rate.factor * DAY_S - 1) > 1e-9 or rate.upper is not None:
        return load
    if (busy := _BUSY_SHARE.search(page.text, rate.end)) is not None:
        value = round(rate.decimal_value * float(busy["a"] or busy["b"] or busy["c"]) * 24 / 100, 9)
        words = f"{load.words}, {page.take(*busy.span())}"
        claims.reading(f"{words!r} read as {value:.4g} requests/s, which are planned for")
        return replace(load, quantity=replace(rate, value=value, decimal_value=value), words=words)
    windows = [
        (match, hours)
        for match in (*_HOURS.finditer(page.text, rate.end), *_BETWEEN_HOURS.finditer(page.text, rate.end))
        if match.start() - rate.end < _MOST_BEHIND and _speaks_of(page.text[rate.end : match.start()])
        if (hours := _hours(page, match)) is not None
    ]
    if not windows:
        return load
    words = ", ".join(page.take(*match.span()) for match, _ in windows)
    hours = {length for _, length in windows}
    if len(hours) > 1:
        claims.leave_unread(f"{words!r} say different hours in which {load.words!r} come; read as spread over the day")
        return load
    share = _share_before(page, rate, windows[0][0])
    if share is not None:
        words = f"{page.take(share.start, share.end)} {words}"
    value = rate.decimal_value * (share.value if share else 1.0) * 24 / hours.pop()
    claims.reading(f"{load.words!r} within {words!r} read as {value:.4g} requests/s in those hours")
    return replace(load, quantity=replace(rate, value=value, decimal_value=value), words=f"{load.words}, {words}")


def _share_before(page: Page, rate: Quantity, window: re.Match[str]) -> Quantity | None:
    """The share of an amount that comes within a window of hours, where it is said: "80% of them within 8 hours"."""
    start, gap = rate.end, page.original[rate.end : window.start()]
    shares = [share for share in find_quantities(gap) if share.unit == "share" and 0.0 < share.value < 1.0]
    last = shares[-1] if shares else None
    return None if last is None else replace(last, start=start + last.start, end=start + last.end)


def _speaks_of(gap: str) -> bool:
    """Whether the words behind `gap` still speak of the amount before it."""
    if _DEADLINE.search(gap):
        return False
    end = _SENTENCE_END.search(gap)
    return end is None or (_OF_IT.match(gap, end.start()) is not None and not _SENTENCE_END.search(gap, end.end()))


def _hours(page: Page, match: re.Match[str], most: float = 24.0) -> float | None:
    """The length of a window in hours; `None` where the words are no window of the load, or one longer than `most`."""
    if _OF_UPKEEP.search(page.clause_text(*match.span())):
        return None
    groups: dict[str, Any] = match.groupdict()
    if "d1" in groups:
        begins, ends = (
            24 * _DAYS.index(groups[f"d{n}"].lower())
            + int(groups[f"c{n}"])
            + 12 * ((groups[f"m{n}"] or "").lower() == "p" and int(groups[f"c{n}"]) < 12)
            + int(groups[f"min{n}"] or 0) / 60
            for n in (1, 2)
        )
        return (ends - begins) % 168 or 168.0
    if days := groups.get("days") or groups.get("days2"):
        hours = 24 * (read_number(days) or 0.0)
        return hours if 24 < hours <= most else None
    if "h" in groups:
        hours = read_number(next(filter(None, map(groups.get, ("h", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9")))))
        hours = (hours or 0.0) * ((read_number(groups["times"]) or 1.0) if groups["times"] else 1.0)
        return hours if hours and hours > 1 and (hours <= most or groups["h3"]) else None
    is_clock = groups["s1"] and groups["s2"]
    if not (
        is_clock or groups["m1"] or groups["m2"] or groups["p1"] or (groups["lead"] and groups["tail"] is not None)
    ):
        return None  # "between 5 and 10 users"
    ends = [int(groups[f"c{n}"]) for n in (1, 2)]
    halves = [groups[f"p{n}"] or groups[f"m{n}"] or "" for n in (1, 2)]
    late = [_LATE.match(half) is not None for half in halves]
    if any(late) and ends[0] < ends[1] and any(_OF_NO_HALF.fullmatch(half) for half in halves):
        late = [True, True]  # "7 to 10 pm", "下午1点到4点": one word for both ends
    start, end = (hour + 12 if is_late and hour < 12 else hour for hour, is_late in zip(ends, late, strict=True))
    if end <= start <= 12 and not any(late):
        end += 12  # "9 to 5"
    return float((end - start) % 24 or 24) if max(start, end) <= 24 else None
