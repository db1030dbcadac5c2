"""Numbers of people that are sums of groups, what each of them has at work, and shares of them in words.

"23 people per floor, four floors" are 92 people; "25 doctors, each always with one report in work" are 25 reports at
once; "every fifth is generating" is one in five of them.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import NUMBER
from ..patterns.quantities import find_quantities, read_number
from ..patterns.rewriting import Workings

_N = rf"(?<![\w.,-])(?:\d{{1,3}}(?:,\d{{3}})+(?![\d.]|\s?%)|(?:{NUMBER})(?!\s?%))"
_M = rf"(?:an?(?![a-z])|{NUMBER})"
_PLACE = (
    r"floor|storey|office|site|team|department|clinic|hospital|ward|school|class|branch|store|shop|room|building|region|"
    r"plant|tenant|squad|unit|faculty|lab|court|city|desk|shift|practice|warehouse"
)
_WHOSE = r"(?:the\s|our\s|those\s|these\s|all\s){0,2}"
# "floors", "branches", "cities" of "floor", "branch", "cit(y)".
_PLACES = rf"(?:(?:{_PLACE})(?:e?s)|cities|branches|faculties)(?![a-z])"
_NO_PEOPLE = (
    r"(?!gpus?|cards?|nodes?|servers?|machines?|box(?:es)?|hosts?|tokens?|words?|pages?|replicas?|copies|instances?|hours?|"
    r"minutes?|seconds?|days?|weeks?|times|percent|is|are|has|was)"
)
_WHO = (
    rf"(?:{_NO_PEOPLE}[a-z\-]{{3,16}}\s)?{_NO_PEOPLE}"
    r"(?:[a-z\-]{2,16}s|people|staff|personnel|men|women)(?![a-z])"
)
_OF_PLACES = Gated(
    rf"(?P<n>{_N})\s(?P<who>{_WHO})\s(?:per|an?|on\s(?:each|every)|in\s(?:each|every)|for\seach|each)\s(?P<one>{_PLACE}),?\s(?:(?:and|on|over|across|in|with|we\shave|there\sare|times|x)\s){{0,2}}{_WHOSE}(?P<m>{_N})\s(?P<all>{_PLACES})|"
    rf"(?P<n2>{_N})\s(?P<who2>{_WHO})\s(?:in|on|at|for)\s(?:each|every\sone)\sof\s{_WHOSE}(?P<m2>{_N})\s(?P<all2>{_PLACES})|"
    rf"(?P<m3>{_N})\s(?P<all3>{_PLACES}),?\s(?:(?P<each>each|every\sone)\s)?(?:(?:with|of|having|have|has|on\seach|in\seach)\s)?(?:(?:about|some|around)\s)?(?P<n3>{_N})\s(?P<who3>{_WHO})(?P<each2>\s(?:each|apiece|on\seach|in\seach|per\s(?:{_PLACE}))(?![a-z]))?(?!\s(?:open|running|active|online|in|at|an?|per|each|every)(?![a-z])|/)"
)
_NC = r"(?<![\d.])(?:\d{1,6}(?![\d.%])|[一二两三四五六七八九十]{1,3})"
_OF_PLACES_CHINESE = Gated(
    rf"(?P<m>{_NC}|(?<=[店点校院所部])\s?\d{{1,6}})\s?(?P<unit>[层栋间所家座个])(?!节点|副本|实例)(?P<what>[^\d,;。每个名位人]{{0,5}})[,;]?\s?(?:平均)?每[一]?(?P=unit)(?P<what2>[^\d,;。一二两三四五六七八九十]{{0,5}}?)(?:有|约|大约|大概)?\s?(?P<n>{_NC})\s?(?:多?[个名位]\s?)?(?P<who>人|用户|员工|学生|老师|客服|坐席|同事|(?P<other>[\u4e00-\u9fff]{{1,2}}[员师生手士民警]))"
)
_ALWAYS = (
    r"(?:always|constantly|permanently|continuously|at\s(?:all\stimes|any\s(?:given\s)?(?:time|moment)|every\smoment)|"
    r"all\s(?:day|the\stime))"
)
_AT_WORK = (
    rf"(?:{_ALWAYS}|(?:open\s)?in\sparallel|side\sby\sside|at\sonce|at\s(?:the\ssame|a)\stime|concurrently|simultaneously|"
    r"in\s(?:work|flight|progress|process|the\sworks)|under\sway|running|going|pending|"
    r"(?:being|getting)\s(?:generated|written|answered|processed|served))"
)
# "60 teams, a team runs two agents in parallel"; "25 radiologists, each always with one report in work".
_OF_EACH = Gated(
    rf"(?P<n>{_N})\s(?P<who>(?:[a-z\-]{{3,16}}\s)?(?!(?:request|call|prompt|message)s)[a-z\-]{{2,16}}?)s(?![a-z])(?P<between>[^\n]{{0,80}}?)[,;.]\s?(?:and\s)?(?:(?:an?|each|every)\s(?:(?P=who)|(?:one\s)?of\s(?:them|these|which|whom))|each|every\sone|everyone|everybody)\s"
    rf"(?P<first>{_ALWAYS}\s)?(?:runs?|has|have|having|keeps?|uses?|opens?|holds?|with)\s(?P<second>{_ALWAYS}\s)?(?:(?:about|some|around|exactly|just|only)\s)?(?P<m>{_M})\s(?P<thing>(?:[a-z\-]{{3,16}}\s){{0,2}}?{_NO_PEOPLE}[a-z\-]{{3,16}}?)(?P<at>(?:\s{_AT_WORK})*)(?=\s?(?:[,.;:)\n]|$|and(?![a-z])))"
)
_OF_EACH_CHINESE = Gated(
    rf"(?P<n>{_NC})\s?[个名位](?P<who>[^\d,;。]{{1,6}})[,;]\s?(?:平均)?每[人位个名][^\d,;。一两]{{0,6}}?(?P<at>始终|一直|总是|随时|同时|任何时候)都?(?:会?有|保持|在?跑)\s?(?P<m>{_NC})\s?[个份条路篇]"
)
_ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "twentieth": 20}
_DOES = r"(?=\s(?:is|are|has|have|waits?|runs?|gets?|will)(?![a-z]))"
_EVERY = Gated(
    rf"(?<![a-z])every\s(?!second{_DOES})(?P<ordinal>{'|'.join(_ORDINALS)})(?:\s(?:one|(?P<of>of\s(?:them|those|these|whom))|user|person|session|chat|conversation|player|student|employee))?{_DOES}|"
    rf"每\s?(?P<whole>{_NC})\s?个?(?:[^\d,;。]{{0,4}}?)(?:里|中|当中)?(?:就|只|大约|约)?有\s?(?P<part>{_NC})\s?[个人](?:人)?(?=[^,;。\d]{{0,4}}(?:在|等|跑|问|用))"
)
# "1% 的人同时有一个请求在处理": the one request is that of each.
_ONE_OF_EACH = Gated(
    r"(?P<share>\d(?:[\d.]*)\s?%\s?的[^\d,;。]{1,6}?(?:同时|随时|同一时[刻间]))(?:都|会|各)?有\s?[一1]\s?[个条份]\s?(?:请求|任务|会话|问题)(?=[^\d,;。]{0,2}(?:在|正))"
)


def _value(words: str) -> float:
    quantities = find_quantities(words.strip())
    return 1.0 if words.lower() in ("a", "an") else quantities[0].decimal_value if quantities else 0.0


def _in_all_places(match: re.Match[str]) -> str | None:
    n, m, who = (next(filter(None, (match[f"{name}{i}"] for i in ("", "2", "3"))), "") for name in ("n", "m", "who"))
    one, places = match["one"], match["all"]
    is_of_each = one or match["who2"] or match["each"] or match["each2"]
    if not is_of_each or (one and not places.lower().startswith(one.lower()[:4])):
        return None
    return f"{_value(n) * _value(m):.12g} {who}"


def _in_all_places_in_chinese(match: re.Match[str]) -> str | None:
    n, m = read_number(match["n"]), read_number(match["m"])
    return f"{n * m:.12g}{'名' if match['other'] else ''}{match['who']}" if n and m else None


def _at_work_in_all(match: re.Match[str]) -> str | None:
    if not (match["first"] or match["second"] or match["at"]):
        return None
    ending = "s" if _value(match["m"]) == 1 else ""
    things = f"{_value(match['n']) * _value(match['m']):.12g} {match['thing']}{ending}"
    return f"{things} at once{match['between']}"


def _at_work_in_all_in_chinese(match: re.Match[str]) -> str | None:
    n, m = read_number(match["n"]), read_number(match["m"])
    return f"同时 {n * m:.12g} 个" if n and m else None


def _share(match: re.Match[str]) -> str | None:
    if match["ordinal"]:
        return f"{100 / _ORDINALS[match['ordinal'].lower()]:.4g}% {match['of'] or 'of them'}"
    part, whole = (read_number(match[name]) or 0.0 for name in ("part", "whole"))
    return f"其中 {100 * part / whole:.4g}% 的人" if 0 < part < whole else None


PEOPLE: Workings = (
    (_OF_PLACES, _in_all_places),
    (_OF_PLACES_CHINESE, _in_all_places_in_chinese),
    (_OF_EACH, _at_work_in_all),
    (_OF_EACH_CHINESE, _at_work_in_all_in_chinese),
    (_EVERY, _share),
    (_ONE_OF_EACH, lambda match: match["share"]),
)
