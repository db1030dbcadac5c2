"""Figures that follow from others beside them, worked out in the text before it is read.

"52,000 chats a day, and a chat makes six calls" is 312,000 requests a day; "11 pages at 520 tokens" are
5,720 tokens; "5,200 managers, of whom 65% are at work, each of these asks seven questions an hour" are
23,660 requests an hour. A reading notes which words became which figure.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.quantities import read_share
from ..patterns.rewriting import Workings, worked_out_by
from .amounts_in_time import ABOUT, NO_REQUEST, SHARE, N, form, value_of

_NZ = r"(?<![A-Za-z\d.])(?:\d{1,3}(?:,\d{3})+|\d{1,9}(?:\.\d{1,3})?)(?:\s?[万亿])?"
_CALLS = (
    r"(?:(?:separate|llm|model|parallel|sequential|single|own)\s){0,2}"
    r"(?:calls?|requests?|steps?|passes|prompts?|queries|completions?|rounds?|invocations?|inferences?)(?![a-z])"
    r"(?:\s(?:to|of|against|through)\s(?:the|our|this)\s(?:model|llm))?"
)
_MAKES = (
    r"(?:makes?|takes?|needs?|costs?|triggers?|passes(?:\sthrough)?|goes\sthrough|means|requires?|results?\sin|"
    r"fans\sout\s(?:in)?to|becomes|turns\sinto|is\ssplit\sinto)"
)
# "52,000 chats a day, and a chat makes six calls to the model"; "50k tickets a day, each needs 2 LLM calls".
_CALLS_OF_EACH = Gated(
    rf"(?P<n>{N})(?:\s(?:[a-z\-]{{2,14}}\s){{0,2}}?)(?P<item>[a-z][a-z\-]{{2,20}}?)s(?P<between>(?![a-z])[^\n]{{0,120}}?)"
    rf"(?:[,;.]|\sand)\s?(?:(?:and|where|as|with)\s)?"
    rf"(?:(?:an?|each|every|one|per)(?:\ssingle|\ssuch)?\s(?P=item)|(?:each|every\sone)(?:\sof\s(?:them|these|those|which))?)"
    rf"\s{_MAKES}\s{ABOUT}(?P<m>{N})\s{_CALLS}",
)
# "5,200 pull requests on a working day; 3.5 review passes per pull request".
_CALLS_PER_ITEM = Gated(
    rf"(?P<n>{N})\s(?P<item>[a-z][a-z\-]{{2,20}}(?:\s[a-z][a-z\-]{{2,16}})?)s(?P<between>(?![a-z])[^;]{{0,120}}?)"
    rf"(?:[,;.\n]|\sand)\s{{0,3}}(?:[*\-]\s)?(?:(?:and|at|with)\s)?{ABOUT}(?P<m>{N})\s(?:[a-z]{{3,10}}\s)?{_CALLS}\s(?:per|for\s(?:each|every)|a)\s(?P=item)(?![a-z])",
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
_INTERVAL = (
    rf"(?:every|per|each|an?|in|during)\s(?:(?:an?|the|its|our|their|one)\s)?(?:(?:peak|busiest|busy|rush)\s)?{ABOUT}"
    rf"(?:(?P<t>{N})[\s\-]?)?(?P<unit>s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|days?)(?![a-z])(?:\s(?:shift|duty|day)(?![a-z]))?"
)
_ASKS = (
    r"(?:(?:will|would|can|may|usually|typically|then|only|just)\s){0,2}(?:ask|send|fir|submit|mak|issu|trigger|rais|typ|post|start|call|quer|prompt|hit|put|writ|generat|produc|fil|open|us|run|do|need|tak)(?:e|es|s|y|ies|ing|ting|ning)?"
    r"(?:\s(?:us|it|in|off|out|(?:the|our)\s(?:model|bot|llm|assistant|system)))?\s"
)
_TIMES = rf"(?:(?P<n>once|twice|an?|one|something|{N})\s)?(?:{NO_REQUEST}[a-z\-]{{3,16}}\s){{0,2}}?"
_SO_OFTEN = rf"(?P<n>once|twice|{N}\stimes)"
_WHO = (
    r"(?:\s(?!one|two|three|few|other|second|minute|hour|day|gpu|card|node|server|machine|replica|instance|request|"
    r"prompt|token|costs?)[a-z\-]{3,16}){0,2}?(?:'s\s[a-z\-]{2,16})?"
)
_EACH = (
    r"(?<![a-z])(?:each|every(?:\sone)?|everyone|everybody)"
    rf"(?:\sof\s(?:(?:them|these|those|us|whom|which)|(?:the|our|these|those|all)\s(?P<of>{N}"
    r"(?:\s[a-z\-]{3,16}){1,2}?)))?"
)
_ASKED = (
    rf"(?:once|twice|(?:an?|one|{N})\s(?:times|requests?|prompts?|questions?|quer(?:y|ies)|calls?|messages?|chats?|"
    r"completions?|search(?:es)?|lookups?|reports?))"
)


# "240 nurses, each asks once every 4 minutes", "a clerk asks 3 times an hour", "one prompt each per 3 minutes".
_OF_EACH = Gated(
    rf"{_EACH}(?:{_WHO}\s{_ASKS}{ABOUT}{form(_TIMES + _INTERVAL, '1')}|"
    rf"(?:\sone|{_WHO}\s{ABOUT}{form(_SO_OFTEN, '2')})\s{form(_INTERVAL, '2')})|"
    rf"(?<![a-z])(?:an?|one)\s(?P<one>[a-z]{{3,16}})\s{_ASKS}{ABOUT}{form(_TIMES + _INTERVAL, '3')}|"
    rf"(?<![\w.])(?P<n4>{_ASKED})\s(?:each|apiece|per{_WHO})\s{form(_INTERVAL, '4')}"
)
# "40 % of them use it on a working day and each of those sends 12 prompts": as many a day.
_IN_SUCH_A_TIME = Gated(
    r"(?P<time>(?<![a-z])(?:on|in|during|within|over)\s(?:an?|the|our|each|every|any)\s(?:(?:busiest|busy|peak|normal|typical|average|usual|working|business|good|single)\s)?(?P<unit>day|hour|minute)(?![a-z]))(?P<between>[^\n.;]{0,80}?)"
    rf"{_EACH}(?:{_WHO})\s{_ASKS}{ABOUT}(?P<n>{N})\s(?:requests?|prompts?|questions?|quer(?:y|ies)|calls?|messages?|chats?|searches|drafts?|reports?)(?![a-z]|\s(?:per|an?|each|every|in|within|at)(?![a-z]))"
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
    rf"{_RATE.format(n=N)}(?![a-z])(?P<between>[^\n]{{0,90}}?)(?:[,;.]\s?|\s(?=but|of\swhich))(?:(?:but|and|of\swhich)\s)?(?:only\s)?"
    rf"(?:(?:llm|model)\s(?:calls|requests)\sare\s{ABOUT}(?:(?P<a>\d{{1,3}})\sin\s(?P<b>\d{{1,4}})|(?P<p>{SHARE}))(?:\sof\s(?:that|those|them|it|these))?|"
    rf"{ABOUT}(?:(?P<c>\d{{1,3}}|one)\sin\s(?P<d>\d{{1,4}}|ten|five|four|three|twenty)|(?P<q>{SHARE}))\s(?:of\s(?:that|those|them|it|these|which)\s)?(?:ever\s)?(?:reach(?:es)?|goes?\sto|hits?|needs?|ends?\sup\s(?:at|in|with)|gets?\sto)\s(?:the|a|our)\s(?:llm|model))(?![a-z])",
)
# "11 pages at some 520 tokens", "5 pages of text (a page ~ 600 tokens)", "18 pages, call it 500 words a page".
_SHEET = (
    r"(?:page|chunk|snippet|passage|document|file|message|turn|paragraph|result|example|image|screenshot|slide|section|"
    r"case|record|note|article|abstract|table)"
)
_PAGES = Gated(
    rf"(?P<n>{N})\s(?:(?:retrieved|scanned|top|rag|full|dense|text|similar|earlier|previous|past|older?|related|short|long|prior|relevant)\s)?(?P<what>{_SHEET}s)\s?(?:\s(?:at|of|with|x|each)|,)\s{ABOUT}(?P<m>{N})\s(?P<unit>tokens|words)(?:\s(?:each|apiece|(?:per|a)\s[a-z]{{4,9}}))?(?![a-z])|"
    rf"(?P<n3>{N})\s(?P<what3>{_SHEET}s)[^\n.;,\d]{{0,40}}?\s?[,;(]\s?(?:(?:call\sit|say|with|at|roughly|about)\s){{0,2}}"
    rf"(?:(?:an?|each|one|every|per)\s{_SHEET}\s(?:(?:is|has|being|of|at|holds|averages|~|=|≈)\s?){{0,2}}{ABOUT}(?P<m3>{N})\s(?P<unit3>tokens|words)|"
    rf"{ABOUT}(?P<m4>{N})\s(?P<unit4>tokens|words)\s(?:an?|per|each|every)\s{_SHEET})(?![a-z])\)?|"
    r"(?<![\dA-Za-z.,])(?P<n2>\d{1,4})\s?[页段篇条个份张]\s?(?:片段|文档片段|文档|段落|切片|结果|图片|图|(?:检索|知识库|历史|参考)?(?:内容|结果|资料|记录|案例))?\s?(?:[,x*]?\s?每[页段篇条个份张]?|[x*]\s?)(?:片段|文档|段落|切片|结果|图片|图)?(?:大?约|平均|折合)?\s?(?P<m2>\d[\d,]{1,7})\s?(?:个\s?)?token",
)
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_ONCE = {"": 1.0, "once": 1.0, "twice": 2.0, "a": 1.0, "an": 1.0, "one": 1.0, "something": 1.0}
_MOST_PAGES = 200
_BEFORE_ONE = 160  # characters
_FEWEST = 20  # "two agents" that make calls are no amount of work


def worked_out(text: str) -> tuple[str, list[str]]:
    """A normalised text with what follows from figures in place of them, and how each was worked out."""
    return worked_out_by(text, _RULES)


def _with_calls(match: re.Match[str]) -> str | None:
    items, calls = value_of(match["n"]), value_of(match["m"])
    if items < _FEWEST or not calls:
        return None
    noun = "requests" if match["item"].isascii() else "个请求"
    return f"{items * calls:.12g} {noun}{match['between']}"


def _of_each_in_chinese(match: re.Match[str]) -> str:
    time = match["time"] if match["time"].startswith("每") else f"每{match['time'].removeprefix('一')}"
    return f"{time} {value_of(match['n']) * value_of(match['m']):.12g} {match['unit']}"


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
    each = (_ONCE.get(times.lower().split(" ")[0]) or value_of(times)) / (value_of(span) if span else 1.0)
    written = f"{counted}each of them sends {each:.15g} requests per {_UNITS[unit[0].lower()]}"
    return None if written == match.group() or not each else written


def _let_through(match: re.Match[str]) -> str | None:
    of, among = match["a"] or match["c"], match["b"] or match["d"]
    share = (read_share(match["p"] or match["q"]) or 0.0) if of is None else value_of(of) / value_of(among)
    return f"{value_of(match['n']) * share:.12g}{match['unit']}"


def _all_pages(match: re.Match[str]) -> str | None:
    if value_of(match["n"] or match["n2"] or match["n3"]) > _MOST_PAGES:
        return None  # "5,000 notes of 900 tokens each" are as many requests
    if match["n2"]:
        return f"文档 {value_of(match['n2']) * value_of(match['m2']):.12g} token"
    if match["n3"]:
        each, unit = match["m3"] or match["m4"], match["unit3"] or match["unit4"]
        return f"{value_of(match['n3']) * value_of(each):.12g} {unit} of {match['what3']}"
    return f"{value_of(match['n']) * value_of(match['m']):.12g} {match['unit']} of {match['what']}"


_RULES: Workings = (
    (_OF_EACH_CHINESE, _of_each_in_chinese),
    (_CALLS_OF_EACH_CHINESE, _with_calls),
    (_OF_EACH, _of_one_of_them),
    (_CALLS_OF_EACH, _with_calls),
    (_CALLS_PER_ITEM, _with_calls),
    (
        _IN_SUCH_A_TIME,
        lambda match: f"{match['between'].lstrip()}each of them sends {match['n']} requests per {match['unit']}",
    ),
    (_FILTERED, _let_through),
    (_PAGES, _all_pages),
)
