"""Figures that follow from others beside them, worked out in the text before it is read.

"52,000 chats a day, and a chat makes six calls" is 312,000 requests a day; "11 pages at 520 tokens" are
5,720 tokens; "5,200 managers, of whom 65% are at work, each of these asks seven questions an hour" are
23,660 requests an hour. A reading notes which words became which figure.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.quantities import find_quantities, read_number, read_share
from ..patterns.rewriting import Workings, worked_out_by

_N = (
    r"(?<![\w.,])(?:\d(?:[\d,]{0,12}\d)?(?:\.\d{1,12})?(?:\s?(?:k|m|million|thousand|万|亿))?(?![a-z\d%])|"
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty)(?![a-z]))"
)
_NZ = r"(?<![A-Za-z\d.])(?:\d{1,3}(?:,\d{3})+|\d{1,9}(?:\.\d{1,3})?)(?:\s?[万亿])?"
_ABOUT = r"(?:(?:about|around|roughly|some|on\saverage|approximately|an\saverage\sof|only|~)\s?){0,2}"
_CALLS = (
    r"(?:(?:separate|llm|model|parallel|sequential|single|own)\s){0,2}"
    r"(?:calls?|requests?|steps?|passes|prompts?|queries|completions?|rounds?|invocations?|inferences?)(?![a-z])"
    r"(?:\s(?:to|of|against|through)\s(?:the|our|this)\s(?:model|llm))?"
)
_MAKES = (
    r"(?:makes?|takes?|needs?|costs?|triggers?|passes(?:\sthrough)?|goes\sthrough|means|requires?|results?\sin|"
    r"fans\sout\s(?:in)?to|becomes|turns\sinto|is\ssplit\sinto)"
)
# "peak-to-mean ratio is 1.7", "peaks of twice the average", "the busiest moment is 3x the mean".
_PEAK = Gated(
    r"(?<![a-z])peak[\s\-](?:(?:to|over)[\s\-](?:mean|average|avg)(?:\s(?:ratio|factor))?|factor|multiplier)\s?(?:is|of|=|:|about|around)?\s?"
    r"(?P<ratio>\d{1,2}(?:\.\d{1,2})?)(?![\d%])(?:\s?x(?![a-z]))?|"
    r"(?<![a-z])(?:(?:the|our)\s)?(?:busiest|worst)\s(?:moment|minute|second|time|hour)\sis\s(?P<busy>\d{1,2}(?:\.\d)?|two|three|four|five)\s?(?:x|times)\s(?=(?:the\s)?(?:mean|average|norm))|"
    r"(?<![a-z])(?P<word>twice|double|triple)\s(?=(?:the\s)?(?:mean|average|usual|norm)(?![a-z]))",
)
_TWICE = {"twice": "2x ", "double": "2x ", "triple": "3x "}
# "2.1 million mails a month, which arrive on 22 working days of nine hours".
_WORKING_DAYS = Gated(
    rf"(?P<n>{_N})(?P<what>\s(?:[a-z\-]{{2,16}}\s){{1,3}})(?:per|a|each|every)\smonth(?P<between>[^\n.]{{0,40}}?)\s(?:on|over|in)\s(?P<days>{_N})\s(?:working|business|week|work)?\s?days"
    rf"(?:\sof\s(?P<h>{_N})\shours)?(?![a-z])",
)
# "25,000 documents per working day, a working day being 10 hours".
_WORKING_DAY = Gated(
    rf"(?:per|a|each|every)\s(?:working|business|work)\s?day(?P<between>[^\n]{{0,90}}?)(?:[,;(.]\s?)(?:(?:an?|the|our|each|one|which|it)\s)?(?:(?:working|business|work)\s?day\s)?(?:being|is|has|of|lasts)\s(?P<h>{_N})\s(?:working\s)?hours(?![a-z])",
)
_DAY_BY_ITS_HOUR = Gated(
    r"(?:on\s)?(?:per|an?|each|every)\s(?:working|business|work)\s?day(?=[^\n]{0,80}\d\s?%\sof\s[^\n]{0,50}hour)",
)
# "52,000 chats a day, and a chat makes six calls to the model"; "50k tickets a day, each needs 2 LLM calls".
_CALLS_OF_EACH = Gated(
    rf"(?P<n>{_N})(?:\s(?:[a-z\-]{{2,14}}\s){{0,2}}?)(?P<item>[a-z][a-z\-]{{2,20}}?)s(?P<between>(?![a-z])[^\n]{{0,120}}?)"
    rf"(?:[,;.]|\sand)\s?(?:(?:and|where|as|with)\s)?"
    rf"(?:(?:an?|each|every|one|per)(?:\ssingle|\ssuch)?\s(?P=item)|(?:each|every\sone)(?:\sof\s(?:them|these|those|which))?)"
    rf"\s{_MAKES}\s{_ABOUT}(?P<m>{_N})\s{_CALLS}",
)
# "5,200 pull requests on a working day; 3.5 review passes per pull request".
_CALLS_PER_ITEM = Gated(
    rf"(?P<n>{_N})\s(?P<item>[a-z][a-z\-]{{2,20}}(?:\s[a-z][a-z\-]{{2,16}})?)s(?P<between>(?![a-z])[^;]{{0,120}}?)"
    rf"(?:[,;.\n]|\sand)\s{{0,3}}(?:[*\-]\s)?(?:(?:and|at|with)\s)?{_ABOUT}(?P<m>{_N})\s(?:[a-z]{{3,10}}\s)?{_CALLS}\s(?:per|for\s(?:each|every)|a)\s(?P=item)(?![a-z])",
)
# "3.6 万份作业,每份要调 3 次模型".
_CALLS_OF_EACH_CHINESE = Gated(
    rf"(?P<n>{_NZ})\s?(?P<item>[份条个单篇封件通])(?P<between>[^\n]{{0,60}}?)[,;。]\s?(?:每|一)(?P=item)[^\d,;。]{{0,8}}?"
    r"(?P<m>\d{1,2}|[两三四五六])\s?(?:次|轮|遍|个)[^,;。\d]{0,4}?(?:大?模型|调用|请求|推理)(?:检查|调用|推理)?",
)
# "46 家医院,平均每家每天 320 份".
_OF_EACH_CHINESE = Gated(
    rf"(?P<n>{_NZ})\s?(?P<item>[家所个])(?P<who>[^\d,;。每]{{1,8}})[,;]\s?(?:平均|大约)?每(?P=item)(?P<time>每?[天日月周]|一天|每?小时)"
    rf"[^\d,;。]{{0,4}}(?P<m>{_NZ})\s?(?P<unit>[份条个单篇封件通次])",
)
_SHARE = r"(?:\d{1,3}(?:\.\d)?\s?%|a\sthird|half|a\squarter|two\sthirds|three\squarters|a\stenth|a\sfifth)"
_INTERVAL = (
    rf"(?:every|per|each|an?|in|during)\s(?:(?:an?|the|its|our|their|one)\s)?(?:(?:peak|busiest|busy|rush)\s)?{_ABOUT}"
    rf"(?:(?P<t>{_N})[\s\-]?)?(?P<unit>s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|days?)(?![a-z])(?:\s(?:shift|duty|day)(?![a-z]))?"
)
_ASKS = (
    r"(?:(?:will|would|can|may|usually|typically|then|only|just)\s){0,2}(?:ask|send|fir|submit|mak|issu|trigger|rais|typ|post|start|call|quer|prompt|hit|put|writ|generat|produc|fil|open|us|run|do|need|tak)(?:e|es|s|y|ies|ing|ting|ning)?"
    r"(?:\s(?:us|it|in|off|out|(?:the|our)\s(?:model|bot|llm|assistant|system)))?\s"
)
_NO_REQUEST = (
    r"(?!(?:every|per|each|tokens?|gpus?|cards?|nodes?|servers?|hours?|minutes?|seconds?|days?|weeks?|usd|eur|euros?|"
    r"dollars?|bucks?|cents?|gb|words?|pages?)(?![a-z]))"
)
_TIMES = rf"(?:(?P<n>once|twice|an?|one|something|{_N})\s)?(?:{_NO_REQUEST}[a-z\-]{{3,16}}\s){{0,2}}?"
_SO_OFTEN = rf"(?P<n>once|twice|{_N}\stimes)"
_WHO = (
    r"(?:\s(?!one|two|three|few|other|second|minute|hour|day|gpu|card|node|server|machine|replica|instance|request|"
    r"prompt|token|costs?)[a-z\-]{3,16}){0,2}?(?:'s\s[a-z\-]{2,16})?"
)
_EACH = (
    r"(?<![a-z])(?:each|every(?:\sone)?|everyone|everybody)"
    rf"(?:\sof\s(?:(?:them|these|those|us|whom|which)|(?:the|our|these|those|all)\s(?P<of>{_N}"
    r"(?:\s[a-z\-]{3,16}){1,2}?)))?"
)
_ASKED = (
    rf"(?:once|twice|(?:an?|one|{_N})\s(?:times|requests?|prompts?|questions?|quer(?:y|ies)|calls?|messages?|chats?|"
    r"completions?|search(?:es)?|lookups?|reports?))"
)


def _form(pattern: str, place: str) -> str:
    """A pattern with its groups named for one of several places."""
    return re.sub(r"\?P<(n|t|unit)>", rf"?P<\g<1>{place}>", pattern)


# "240 nurses, each asks once every 4 minutes", "a clerk asks 3 times an hour", "one prompt each per 3 minutes".
_OF_EACH = Gated(
    rf"{_EACH}(?:{_WHO}\s{_ASKS}{_ABOUT}{_form(_TIMES + _INTERVAL, '1')}|"
    rf"(?:\sone|{_WHO}\s{_ABOUT}{_form(_SO_OFTEN, '2')})\s{_form(_INTERVAL, '2')})|"
    rf"(?<![a-z])(?:an?|one)\s(?P<one>[a-z]{{3,16}})\s{_ASKS}{_ABOUT}{_form(_TIMES + _INTERVAL, '3')}|"
    rf"(?<![\w.])(?P<n4>{_ASKED})\s(?:each|apiece|per{_WHO})\s{_form(_INTERVAL, '4')}"
)
# A noun behind "each" that may be another than what was counted.
_EACH_WHO = Gated(
    r"(?:each|every)\s(?!(?:one|of)(?![a-z]))(?:[a-z\-]{3,16}\s)?"
    rf"(?P<who>(?!{_ASKS}|(?:user|client|person|customer|caller|member|employee|seat|session)(?![a-z]))[a-z\-]{{3,16}}?)\s{_ASKS}"
)
# "300 rps at the ingress, LLM calls are 1 in 25 of that"; "only 40% of them reach the model".
_RATE = (
    r"(?P<n>{n})(?P<unit>\s?(?:rps|qps|req/s|requests?\s(?:per|a)\s(?:second|minute|hour|day)|requests?/(?:s|sec|min)))"
)
_FILTERED = Gated(
    rf"{_RATE.format(n=_N)}(?![a-z])(?P<between>[^\n]{{0,90}}?)(?:[,;.]\s?|\s(?=but|of\swhich))(?:(?:but|and|of\swhich)\s)?(?:only\s)?"
    rf"(?:(?:llm|model)\s(?:calls|requests)\sare\s{_ABOUT}(?:(?P<a>\d{{1,3}})\sin\s(?P<b>\d{{1,4}})|(?P<p>{_SHARE}))(?:\sof\s(?:that|those|them|it|these))?|"
    rf"{_ABOUT}(?:(?P<c>\d{{1,3}}|one)\sin\s(?P<d>\d{{1,4}}|ten|five|four|three|twenty)|(?P<q>{_SHARE}))\s(?:of\s(?:that|those|them|it|these|which)\s)?(?:ever\s)?(?:reach(?:es)?|goes?\sto|hits?|needs?|ends?\sup\s(?:at|in|with)|gets?\sto)\s(?:the|a|our)\s(?:llm|model))(?![a-z])",
)
# "11 pages at some 520 tokens", "5 pages of text (a page ~ 600 tokens)", "18 pages, call it 500 words a page".
_SHEET = (
    r"(?:page|chunk|snippet|passage|document|file|message|turn|paragraph|result|example|image|screenshot|slide|section)"
)
_PAGES = Gated(
    rf"(?P<n>{_N})\s(?:(?:retrieved|scanned|top|rag|full|dense|text)\s)?(?P<what>{_SHEET}s)\s?(?:\s(?:at|of|with|x|each)|,)\s{_ABOUT}(?P<m>{_N})\s(?P<unit>tokens|words)(?:\s(?:each|apiece|(?:per|a)\s[a-z]{{4,9}}))?(?![a-z])|"
    rf"(?P<n3>{_N})\s(?P<what3>{_SHEET}s)[^\n.;,\d]{{0,40}}?\s?[,;(]\s?(?:(?:call\sit|say|with|at|roughly|about)\s){{0,2}}"
    rf"(?:(?:an?|each|one|every|per)\s{_SHEET}\s(?:(?:is|has|being|of|at|holds|averages|~|=|≈)\s?){{0,2}}{_ABOUT}(?P<m3>{_N})\s(?P<unit3>tokens|words)|"
    rf"{_ABOUT}(?P<m4>{_N})\s(?P<unit4>tokens|words)\s(?:an?|per|each|every)\s{_SHEET})(?![a-z])\)?|"
    r"(?<![\dA-Za-z.,])(?P<n2>\d{1,4})\s?[页段篇条个份张]\s?(?:片段|文档片段|文档|段落|切片|结果|图片|图)?\s?(?:[,x*]?\s?每[页段篇条个份张]?|[x*]\s?)(?:片段|文档|段落|切片|结果|图片|图)?(?:大?约|平均|折合)?\s?(?P<m2>\d[\d,]{1,7})\s?(?:个\s?)?token",
)
# "On a busy day that's 90k conversations": an amount of each day.
_ON_A_DAY = Gated(
    rf"(?:on|in)\s(?:an?|our|the)\s(?:busy|normal|typical|average|usual|peak|bad|good|working|busiest|heavy|regular)\sday,?\s(?:(?:that's|it's|that\sis|this\sis|we\s(?:see|get|have|handle|process|do|serve|take)|there\sare|there're)\s)?"
    rf"{_ABOUT}(?P<n>{_N})(?P<what>(?:\s[a-z\-]{{3,16}})?\s(?!tokens)[a-z\-]{{3,16}}s)(?=[,.;\n]|\sand\s|$)"
)
# "540,000 requests a day, 80% of them inside the 8 office hours", "每天 12 万次, 晚上两小时占全天的三成".
_IN_HOURS = r"(?:in|inside|within|during|over)\s(?:the\s|our\s|its\s|a\s)?(?:window\sof\s|block\sof\s)?"
_PART_OF_DAY = Gated(
    rf"(?P<n>{_N})(?P<what>(?:\s[a-z\-]{{2,16}}){{1,3}}?)\s(?:per|a|each|every)\sday(?P<between>[^\n\d]{{0,40}}?)[,;.(]\s?(?:(?:and|of\swhich|with|but)\s)?{_ABOUT}(?P<share>{_SHARE})\s(?:of\s(?:them|that|those|these|it|which|the\s[a-z]{{4,10}})\s)?"
    rf"(?:(?:is|are|come|comes|fall|falls|land|lands|arrive|arrives|happen|happens|hit|hits|concentrated)\s){{0,2}}{_IN_HOURS}(?P<h>{_N})\s(?:[a-z]{{4,10}}\s)?hours(?![a-z])\)?"
)
# "a request shows up every 250 ms", "one per 0.5 s", "requests come 200 ms apart", "每 100 毫秒来一个请求".
_ASKED_ONE = r"(?:request|query|call|prompt|message|ticket|job|question|document|user|conversation|chat)"
_COMES = r"(?:shows?\sup|arrives?|comes?(?:\sin)?|lands?|hits\sus|is\ssent|gets?\sin|starts?|drops\sin|reaches)"
_MOMENT = rf"{_ABOUT}(?P<n>{_N}|half(?:\sa)?)\s?(?P<unit>ms|milliseconds?|s|sec|seconds?|min|minutes?)(?![a-z])"
_MOMENTS = [_form(_MOMENT, place) for place in "0123"]
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
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_ONCE = {"": 1.0, "once": 1.0, "twice": 2.0, "a": 1.0, "an": 1.0, "one": 1.0, "something": 1.0}
_BEFORE_ONE = 160  # characters
_FEWEST = 20  # "two agents" that make calls are no amount of work


def worked_out(text: str) -> tuple[str, list[str]]:
    """A normalised text with what follows from figures in place of them, and how each was worked out."""
    return worked_out_by(_DAY_BY_ITS_HOUR.sub("per day", _PEAK.sub(_over_the_mean, text)), _RULES)


def _value(words: str) -> float:
    """The number that words of an amount stand for, k being 1000."""
    quantities = find_quantities(words.strip())
    return quantities[0].decimal_value if quantities else 0.0


def _with_calls(match: re.Match[str]) -> str | None:
    items, calls = _value(match["n"]), _value(match["m"])
    if items < _FEWEST or not calls:
        return None
    noun = "requests" if match["item"].isascii() else "个请求"
    return f"{items * calls:.12g} {noun}{match['between']}"


def _over_the_mean(match: re.Match[str]) -> str:
    if match["word"]:
        return _TWICE[match["word"].lower()]
    return f"peak is {match['ratio']}x the mean" if match["ratio"] else f"peak is {_value(match['busy']):g}x "


def _a_working_day(match: re.Match[str]) -> str:
    hours = f", within {_value(match['h']):g} hours" if match["h"] else ""
    return f"{_value(match['n']) / (_value(match['days']) or 1):.12g}{match['what']}a day{hours}{match['between']}"


def _of_each_in_chinese(match: re.Match[str]) -> str:
    time = match["time"] if match["time"].startswith("每") else f"每{match['time'].removeprefix('一')}"
    return f"{time} {_value(match['n']) * _value(match['m']):.12g} {match['unit']}"


def _of_one_of_them(match: re.Match[str]) -> str | None:
    """What each of several asks in a time; `None` where nothing tells that there are several."""
    times, span, unit = (next(filter(None, (match[f"{name}{i}"] for i in "1234")), "") for name in ("n", "t", "unit"))
    before = match.string[max(0, match.start() - _BEFORE_ONE) : match.start()]
    noun = match["one"]
    if noun and not re.search(rf"\d\s(?:[a-z\-]+\s){{0,2}}{noun}s(?![a-z])", before, re.IGNORECASE):
        return None
    who = _EACH_WHO.match(match.group())
    if who is not None and not re.search(rf"(?<![a-z]){re.escape(who['who'])}", before, re.IGNORECASE):
        return None  # "40 users. Each lesson runs every 15 minutes."
    counted = f"{match['of']}, " if match["of"] else ""
    each = (_ONCE.get(times.lower().split(" ")[0]) or _value(times)) / (_value(span) if span else 1.0)
    written = f"{counted}each of them sends {each:.15g} requests per {_UNITS[unit[0].lower()]}"
    return None if written == match.group() or not each else written


def _let_through(match: re.Match[str]) -> str | None:
    of, among = match["a"] or match["c"], match["b"] or match["d"]
    share = (read_share(match["p"] or match["q"]) or 0.0) if of is None else _value(of) / _value(among)
    return f"{_value(match['n']) * share:.12g}{match['unit']}"


def _all_pages(match: re.Match[str]) -> str:
    if match["n2"]:
        return f"文档 {_value(match['n2']) * _value(match['m2']):.12g} token"
    if match["n3"]:
        each, unit = match["m3"] or match["m4"], match["unit3"] or match["unit4"]
        return f"{_value(match['n3']) * _value(each):.12g} {unit} of {match['what3']}"
    return f"{_value(match['n']) * _value(match['m']):.12g} {match['unit']} of {match['what']}"


def _every_so_often(match: re.Match[str]) -> str | None:
    number, unit = (next(filter(None, (match[f"{name}{i}"] for i in "1234"))) for name in ("n", "unit"))
    value = 0.5 if number.lower().startswith("half") else _value(number)
    is_ms = unit.lower().startswith(("ms", "milli", "毫"))
    seconds = value / 1000 if is_ms else value * _SECONDS_OF[unit[0].lower()]
    return f"{1 / seconds:.12g} requests per second" if seconds else None


def _in_a_part_of_the_day(match: re.Match[str]) -> str:
    amount = _value(match["n"]) * (read_share(match["share"]) or 0.0)
    return f"{amount:.12g}{match['what']} per day, within {_value(match['h']):g} hours{match['between']}"


def _each_second(match: re.Match[str]) -> str:
    seconds = _value(match["t"]) * (60 if match["unit"] == "分钟" else 1)
    return f"每秒 {_value(match['n']) / seconds:.12g} 次请求"


_RULES: Workings = (
    (_IN_SO_MANY_SECONDS, _each_second),
    (
        _PEAK_CHINESE,
        lambda match: f"高峰每天 {_value(match['n']) * (read_number(match['k']) or 1):.0f} 次请求",
    ),
    (_WORKING_DAYS, _a_working_day),
    (_WORKING_DAY, lambda match: f"per day, within {_value(match['h']):g} hours{match['between']}"),
    (_OF_EACH_CHINESE, _of_each_in_chinese),
    (_CALLS_OF_EACH_CHINESE, _with_calls),
    (_OF_EACH, _of_one_of_them),
    (_ON_A_DAY, lambda match: f"{match['n']}{match['what']} per day"),
    (_EVERY_SO_OFTEN, _every_so_often),
    (_CALLS_OF_EACH, _with_calls),
    (_CALLS_PER_ITEM, _with_calls),
    (_PART_OF_DAY, _in_a_part_of_the_day),
    (_FILTERED, _let_through),
    (_PAGES, _all_pages),
)
