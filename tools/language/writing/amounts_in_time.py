"""Amounts that come in a time, as a rate: "a shift has 8 hours and sees 230,400 letters", "240 mails every 10 minutes".

Peaks over a mean get one form here too.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.quantities import find_quantities, read_number, read_share
from ..patterns.rewriting import Workings, worked_out_by

N = (
    r"(?<![\w.,])(?:\d(?:[\d,]{0,12}\d)?(?:\.\d{1,12})?(?:\s?(?:k|m|million|thousand|万|亿))?(?![a-z\d%])|"
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty)(?![a-z]))"
)
ABOUT = r"(?:(?:about|around|roughly|some|on\saverage|approximately|an\saverage\sof|up\sto|at\smost|only|~)\s?){0,2}"
SHARE = r"(?:\d{1,3}(?:\.\d)?\s?%|a\sthird|half|a\squarter|two\sthirds|three\squarters|a\stenth|a\sfifth)"
NO_REQUEST = (
    r"(?!(?:every|per|each|tokens?|gpus?|cards?|nodes?|servers?|hours?|minutes?|seconds?|days?|weeks?|usd|eur|euros?|"
    r"dollars?|bucks?|cents?|gb|words?|pages?)(?![a-z]))"
)
_THE = r"(?:(?:the|that|its)\s(?:(?:(?:shift|day|week|month|night|hour)(?:'s|ly)|daily)\s)?)?"
# "peak-to-mean ratio is 1.7", "peaks of twice the average", "the worst hour runs at 1.5 times the shift's average".
_PEAK = Gated(
    r"(?<![a-z])peak[\s\-](?:(?:to|over)[\s\-](?:mean|average|avg)(?:\s(?:ratio|factor))?|factor|multiplier)\s?(?:is|of|=|:|about|around)?\s?"
    r"(?P<ratio>\d{1,2}(?:\.\d{1,2})?)(?![\d%])(?:\s?x(?![a-z]))?|"
    rf"(?<![a-z])(?:(?:the|our)\s)?(?:busiest|worst|peak)\s(?:half[\s\-])?(?:moment|minute|second|time|hour|quarter(?:\sof\san\shour)?)\s(?:is|runs|goes|comes|has|sees|gets)\s(?:(?:up\s)?(?:at|to)\s)?{ABOUT}(?:(?P<busy>\d{{1,2}}(?:\.\d)?|two|three|four|five)\s?(?:x|times)|(?P<busy_word>twice|double|triple))\s{_THE}(?=mean|average|norm)|"
    rf"(?<![a-z])(?P<word>twice|double|triple)\s{_THE}(?=(?:mean|average|usual|norm)(?![a-z]))",
)
_TWICE = {"twice": "2x ", "double": "2x ", "triple": "3x "}
# "2.1 million mails a month, which arrive on 22 working days of nine hours".
_WORKING_DAYS = Gated(
    rf"(?P<n>{N})(?P<what>\s(?:[a-z\-]{{2,16}}\s){{1,3}})(?:per|a|each|every)\smonth(?P<between>[^\n.]{{0,40}}?)\s(?:on|over|in)\s(?P<days>{N})\s(?:working|business|week|work)?\s?days"
    rf"(?:\sof\s(?P<h>{N})\shours)?(?![a-z])",
)
# "25,000 documents per working day, a working day being 10 hours".
_WORKING_DAY = Gated(
    rf"(?:per|a|each|every)\s(?:working|business|work)\s?day(?P<between>[^\n]{{0,90}}?)(?:[,;(.]\s?)(?:(?:an?|the|our|each|one|which|it)\s)?(?:(?:working|business|work)\s?day\s)?(?:being|is|has|of|lasts)\s(?P<h>{N})\s(?:working\s)?hours(?![a-z])",
)
_DAY_BY_ITS_HOUR = Gated(
    r"(?:on\s)?(?:per|an?|each|every)\s(?:working|business|work)\s?day(?=[^\n]{0,80}\d\s?%\sof\s[^\n]{0,50}hour)",
)


def form(pattern: str, place: str) -> str:
    """A pattern with its groups named for one of several places."""
    return re.sub(r"\?P<(n|t|unit|what)>", rf"?P<\g<1>{place}>", pattern)


# "A shift has 8 hours and sees 230,400 letters", "57,600 letters per 8-hour shift": as many in an hour.
_SHIFT = r"(?!request|call|answer|prompt|job|task|node|server)[a-z]{3,12}(?:\sday)?"
_THINGS = rf"\s(?P<what>(?:[a-z\-]{{3,14}}\s)?{NO_REQUEST}[a-z\-]{{3,16}}s)(?![a-z])"
_THINGS_OF = [form(_THINGS, place) for place in "01234"]
_LONG = r"(?P<unit>hours?|h|minutes?|min)"
_LONG_OF = [form(_LONG, place) for place in "01234"]
_IN_A_SHIFT = Gated(
    rf"(?<![a-z])(?:an?|the|our|each|every|one|per)\s(?:(?P<t1>{N})[\s\-]{_LONG_OF[1]}\s{_SHIFT}|{_SHIFT},?\s(?:(?:which|that|it)\s)?(?:has|of|is|lasts|runs|takes)\s(?P<t2>{N})\s{_LONG_OF[2]}(?:\slong)?),?\s"
    rf"(?:(?:and|that|it|we|which|there)\s){{0,2}}(?:sees?|brings?|gets?|has|have|handles?|takes?|produces?|are|is)\s{ABOUT}(?P<n1>{N}){_THINGS_OF[1]}"
    rf"(?:[.;,][^\n.;,]{{0,60}}?[.;,:]?[^\n.;,]{{0,24}}?(?P<share>{SHARE})\sof\s(?:(?:the|a)\s{_SHIFT}'s|its|them|those|these|it|that)(?:\s[a-z]{{2,12}}){{0,4}}?\s(?:in|within|during)\s(?:the|that|its|one)\s(?:first|last|busiest|peak|worst|single)\shour)?|"
    rf"(?P<n2>{N}){_THINGS_OF[2]}\s(?:per|an?|each|every|in\san?|over\san?)\s(?:(?P<t3>{N})[\s\-]{_LONG_OF[3]}\s{_SHIFT}|{_SHIFT}\sof\s(?P<t4>{N})\s{_LONG_OF[4]})(?![a-z])|"
    r"(?:一个|每个?)?(?:班次?|夜班|白班|早班|晚班|工作日|晚上|白天)(?:有|是|共|为)?\s?(?P<t5>\d{1,2}(?:\.\d)?)\s?个?(?P<unit5>小时)[,;]?[^\d,;。]{0,8}(?P<n5>\d[\d,.]{0,11}\s?[万千]?)\s?(?P<what5>[份条个篇封件通次单段])(?!人)"
)
# "240 bulletins every 10 minutes", "in 15 minutes 2,700 alerts arrive".
_IN_A_TIME = Gated(
    rf"(?P<n1>{N}){_THINGS_OF[1]}\s(?:every|per|each|in)\s(?P<t1>{N})\s(?P<unit1>seconds|minutes|hours)(?![a-z])|"
    rf"(?<![a-z])(?:in|within|during|over)\s(?:(?:an?|the|our|about|some)\s[a-z\s]{{3,24}}\sof\s)?(?P<t2>{N})\s(?P<unit2>seconds|minutes|hours),?\s(?P<n2>{N}){_THINGS_OF[2]}(?=\s(?:come|arrive|land|pour|are\s(?:sent|filed|written))(?![a-z]))"
)
# "the busiest hour has 14k turns", "Busiest hour (09-10): 1,440 letters", "最忙 15 分钟有 2700 个请求".
_NO_REQUESTS = (
    r"(?!tokens|words|gpus|cards|nodes|minutes|seconds|users|people|agents|clients|customers|employees|students|visitors|members|players|sessions|streams|callers|workers|engineers|"
    r"developers|times)"
)
_BUSIEST_TIME = Gated(
    rf"(?<![a-z])(?:(?:in\s)?(?:the|our)\s|in\s)?(?:busiest|peak|rush|worst|top)\s(?P<time>hour|half[\s\-]hour|quarter(?:[\s\-]|\sof\san\s)hour|minute|(?P<t>{N})\s(?:minutes|seconds))(?:\s?\([^()\n]{{1,24}}\))?\s?"
    rf"(?:(?:has|have|had|sees?|saw|brings?|brought|gets?|got|carries|is|was|with|we\s(?:get|see|have))(?![a-z])|[:=|,])\s?(?:about\s|around\s|roughly\s|some\s|up\sto\s|~\s?){{0,2}}(?P<n>\d[\d,.]{{0,11}}\s?k?)\s"
    rf"(?P<what>(?:(?!(?:active|concurrent|simultaneous|parallel|output|input)\s)[a-z\-]{{3,14}}\s)?{_NO_REQUESTS}[a-z\-]{{3,16}}s)(?![a-z]|\s(?:per|an?|each|every|at\sonce|online|open|active|are|is|wait)(?![a-z]))|"
    r"(?:最忙|最高峰|高峰)的?(?:那|一)?\s?(?P<t_cn>\d{1,2})?\s?个?(?P<time_cn>小时|分钟|半小时|刻钟)(?:\([^()\n]{1,24}\))?(?:里|内)?\s?(?:有|来|大?约|达到?|是|为|:){0,3}\s?(?P<cn>\d[\d,.]{0,11}\s?[万千]?)\s?[份条个篇封件通次单段](?!人)"
)
# "On a busy day that's 90k conversations": an amount of each day.
_ON_A_DAY = Gated(
    rf"(?:on|in)\s(?:an?|our|the)\s(?:busy|normal|typical|average|usual|peak|bad|good|working|busiest|heavy|regular)\sday,?\s(?:(?:that's|it's|that\sis|this\sis|we\s(?:see|get|have|handle|process|do|serve|take)|there\sare|there're)\s)?"
    rf"{ABOUT}(?P<n>{N})(?P<what>(?:\s[a-z\-]{{3,16}})?\s(?!tokens)[a-z\-]{{3,16}}s)(?=[,.;\n]|\sand\s|$)"
)
# "540,000 requests a day, 80% of them inside the 8 office hours", "每天 12 万次, 晚上两小时占全天的三成".
_IN_HOURS = r"(?:in|inside|within|during|over)\s(?:the\s|our\s|its\s|a\s)?(?:window\sof\s|block\sof\s)?"
_PART_OF_DAY = Gated(
    rf"(?P<n>{N})(?P<what>(?:\s[a-z\-]{{2,16}}){{1,3}}?)\s(?:per|a|each|every)\sday(?P<between>[^\n\d]{{0,40}}?)[,;.(]\s?(?:(?:and|of\swhich|with|but)\s)?{ABOUT}(?P<share>{SHARE})\s(?:of\s(?:them|that|those|these|it|which|the\s[a-z]{{4,10}})\s)?"
    rf"(?:(?:is|are|come|comes|fall|falls|land|lands|arrive|arrives|happen|happens|hit|hits|concentrated)\s){{0,2}}{_IN_HOURS}(?P<h>{N})\s(?:[a-z]{{4,10}}\s)?hours(?![a-z])\)?"
)
# "a request shows up every 250 ms", "one per 0.5 s", "requests come 200 ms apart", "每 100 毫秒来一个请求".
_ASKED_ONE = r"(?:request|query|call|prompt|message|ticket|job|question|document|user|conversation|chat)"
_COMES = r"(?:shows?\sup|arrives?|comes?(?:\sin)?|lands?|hits\sus|is\ssent|gets?\sin|starts?|drops\sin|reaches)"
_MOMENT = rf"{ABOUT}(?P<n>{N}|half(?:\sa)?)\s?(?P<unit>ms|milliseconds?|s|sec|seconds?|min|minutes?)(?![a-z])"
_MOMENTS = [form(_MOMENT, place) for place in "0123"]
_EVERY_SO_OFTEN = Gated(
    r"(?<![a-z])(?:an?|one|another|the\snext)\s(?:new\s|single\s)?"
    rf"{_ASKED_ONE}s?\s(?:{_COMES}\s)?(?:on\saverage\s)?(?:about\s|roughly\s|some\s|~\s?)?(?:once\s)?(?:every|each|per)\s{_MOMENTS[1]}|"
    rf"(?<![a-z])(?:every|each)\s{_MOMENTS[2]},?\s(?:on\saverage,?\s)?(?:an?|one|another|the\snext|some(?:body|one)'s)\s(?:new\s)?{_ASKED_ONE}\s{_COMES}(?![a-z])|"
    rf"(?<![a-z])(?<!\d\s)(?<!of\s)(?:{_ASKED_ONE}s\s(?:{_COMES}|are)\s(?=[^,;.\n]{{1,24}}\sapart)|inter-?arrival\s(?:times?|gaps?|intervals?)?\s?(?:of|is|:|=)?\s?){_MOMENTS[3]}(?:\sapart)?|"
    r"每(?:隔)?\s?(?P<n4>\d[\d.]{0,5})\s?(?P<unit4>毫秒|ms)(?:会?有?[来到进收]?(?:了|到|来)?)?\s?[一1]\s?[个次条]新?(?:请求|调用|提问|问题)"
)
# "高峰大概是均值的 3 倍", behind an amount of each day.
_PEAK_CHINESE = Gated(
    r"每天\s?(?P<n>\d[\d.]{0,6}\s?[万亿千]?)\s?次请求[,;。][^\n\d]{0,10}?高峰(?:时段|时|期)?(?:大?概|大?约)?(?:是|为|有|按)?(?:全天|一天|当天|日)?的?(?:均值|平均值?|日均|平时)的?\s?(?P<k>\d(?:\.\d)?|两|三|四|五)\s?倍"
)
# "每10秒25个请求"
_IN_SO_MANY_SECONDS = Gated(
    r"每\s?(?P<t>[1-9]\d{0,3})\s?(?P<unit>秒|分钟)钟?(?:约|大约|有|来|平均)?\s?(?P<n>\d[\d,.]{0,9})\s?(?:个|次|条|通)?(?:请求|调用|提问|问答)"
)
_SECONDS_OF = {"m": 60.0, "s": 1.0}
_FEWEST = 20  # "a shift of 8 hours has 3 people"


def as_rates(text: str) -> tuple[str, list[str]]:
    """A normalised text with amounts of a time as rates, and how each was worked out."""
    return worked_out_by(_DAY_BY_ITS_HOUR.sub("per day", _PEAK.sub(_over_the_mean, text)), _RULES)


def value_of(words: str) -> float:
    """The number that words of an amount stand for, k being 1000."""
    quantities = find_quantities(words.strip())
    return quantities[0].decimal_value if quantities else 0.0


def _over_the_mean(match: re.Match[str]) -> str:
    if match["word"]:
        return _TWICE[match["word"].lower()]
    if match["busy_word"]:
        return f"peak is {_TWICE[match['busy_word'].lower()]}"
    return f"peak is {match['ratio']}x the mean" if match["ratio"] else f"peak is {value_of(match['busy']):g}x "


def _a_working_day(match: re.Match[str]) -> str:
    hours = f", within {value_of(match['h']):g} hours" if match["h"] else ""
    return f"{value_of(match['n']) / (value_of(match['days']) or 1):.12g}{match['what']}a day{hours}{match['between']}"


def _every_so_often(match: re.Match[str]) -> str | None:
    number, unit = (next(filter(None, (match[f"{name}{i}"] for i in "1234"))) for name in ("n", "unit"))
    value = 0.5 if number.lower().startswith("half") else value_of(number)
    is_ms = unit.lower().startswith(("ms", "milli", "毫"))
    seconds = value / 1000 if is_ms else value * _SECONDS_OF[unit[0].lower()]
    return f"{1 / seconds:.12g} requests per second" if seconds else None


def _in_a_part_of_the_day(match: re.Match[str]) -> str:
    amount = value_of(match["n"]) * (read_share(match["share"]) or 0.0)
    return f"{amount:.12g}{match['what']} per day, within {value_of(match['h']):g} hours{match['between']}"


def _hours(number: str | None, time: str) -> float:
    """The hours of so many of a time ("15", "minutes"; "quarter hour")."""
    parts = {
        "half": 2.0,
        "quarter": 4.0,
        "minute": 60.0,
        "min": 60.0,
        "second": 3600.0,
        "半": 2.0,
        "刻": 4.0,
        "分": 60.0,
    }
    per_hour = next((part for words, part in parts.items() if words in time.lower()), 1.0)
    return (value_of(number) if number else 1.0) / per_hour


def _busiest_time(match: re.Match[str]) -> str | None:
    hours = _hours(match["t"] or match["t_cn"], match["time"] or match["time_cn"])
    if not hours:
        return None
    amount = value_of(match["n"] or match["cn"]) / hours
    return f"a peak of {amount:.12g} {match['what']} per hour" if match["n"] else f"高峰每小时 {amount:.12g} 次请求"


def _in_an_hour(match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    number, amount, what, unit = (
        next(filter(None, (groups.get(f"{name}{i}") for i in "12345"))) for name in ("t", "n", "what", "unit")
    )
    share = read_share(groups.get("share") or "") if groups.get("share") else None
    hours = 1.0 if share else _hours(number, unit)
    if value_of(amount) < _FEWEST or not hours:
        return None
    each = value_of(amount) * (share or 1.0) / hours
    if not what.isascii():
        return f"每小时 {each:.12g} 次请求"
    return f"{'a peak of ' if share else ''}{each:.12g} {what} per hour"


def _each_second(match: re.Match[str]) -> str:
    seconds = value_of(match["t"]) * (60 if match["unit"] == "分钟" else 1)
    return f"每秒 {value_of(match['n']) / seconds:.12g} 次请求"


_RULES: Workings = (
    (_IN_SO_MANY_SECONDS, _each_second),
    (
        _PEAK_CHINESE,
        lambda match: f"高峰每天 {value_of(match['n']) * (read_number(match['k']) or 1):.0f} 次请求",
    ),
    (_WORKING_DAYS, _a_working_day),
    (_WORKING_DAY, lambda match: f"per day, within {value_of(match['h']):g} hours{match['between']}"),
    (_ON_A_DAY, lambda match: f"{match['n']}{match['what']} per day"),
    (_EVERY_SO_OFTEN, _every_so_often),
    (_BUSIEST_TIME, _busiest_time),
    (_IN_A_SHIFT, _in_an_hour),
    (_PART_OF_DAY, _in_a_part_of_the_day),
    (_IN_A_TIME, _in_an_hour),
)
