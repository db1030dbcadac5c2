"""A load that is to be multiplied: "4 rps, so double it", "the launch will triple it, plan for after the launch".

Which of the two states is planned for has to be said; else the factor is left unread. Growth that is to be planned for
("plus 20% for growth", "a quarter more requests", "再加 20% 余量") raises the load once all of it was read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

from ..conflicts.claims import Claims
from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import OF_SPREAD, USUAL, WHEN
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import read_number, read_share
from .context import LOADS, Statement
from .people import times

_SMALL = r"\d{1,2}(?:\.\d{1,2})?|two|three|four|five|six|eight|ten"
_OF_IT = (
    r"(?:that|this|it|the|as|of|our|today|what|current|now|after|by|from|once|when|more|next|"
    r"in\s(?:q\d|\d{4}|the)|expected|growth|normal|usual|average|an?\s(?:normal|usual|ordinary|regular)|as\smany|our)"
)
FACTOR = Gated(
    r"(?<![a-z])(?P<verb>doubl|tripl|trebl|quadrupl|halv)(?:e[sd]?|ing)(?![a-z])(?!\s(?:to\s\d|check|precision))|"
    rf"(?<![\w.])(?P<n>{_SMALL})(?:\s?x|\s?×|\stimes|[\s\-]?fold)(?=\s{_OF_IT}(?![a-z])|\s?(?:[,.;)\n]|$))|(?<![\w.])x\s?(?P<x>\d{{1,2}}(?:\.\d)?)(?=\s{_OF_IT}(?![a-z])|\s?(?:[,.;)\n]|$))|"
    rf"(?<![a-z])(?:multipl(?:y|ies|ied)\s(?:(?:this|that|it|everything|the\s(?:load|rate|traffic)|our\s(?:load|traffic))\s)?by|(?:by\s)?a\sfactor\sof)\s(?P<by>{_SMALL})(?![\w%])|"
    r"(?<![a-z])(?P<twice>twice|double|triple|thrice)\s(?=(?:that|this|it|the|as|our|of|today|what|current)(?![a-z]))|"
    r"翻(?P<cn>[两三四五六\d])?(?:(?P<fan>番)|倍)|(?P<one>翻一番|加倍)|(?P<half>减半)|(?:是|到|至|成|有|为)(?:了)?(?:现在|目前|当前|今天|平时|原来|试点|试用|内测|公测|灰度)?的?\s?(?P<times>\d(?:\.\d)?|[两三四五六])\s?倍(?!率)"
)
_TIMES = {"twice": 2.0, "double": 2.0, "triple": 3.0, "thrice": 3.0}
_VERBS = {"doubl": 2.0, "tripl": 3.0, "trebl": 3.0, "quadrupl": 4.0, "halv": 0.5}
# Orders to multiply, and peaks: these are planned for whatever else is said.
_ORDER = Gated(
    r"(?:(?<![a-z])(?:so|please|then|now|,|(?:ha(?:s|ve)\sto|must|needs?\sto|should|shall)\s(?:take|handle|serve|carry|hold|sustain|do|manage|support|cope\swith))\s$|所以?要?$)"
)
_AT_PEAK = Gated(r"\s(?:it\s)?(?:at|during|in)\s(?:the\s)?peak(?:\shours?)?(?![a-z])")
_PEAK_BEFORE = Gated(r"(?:peak|高峰|峰值)[^,;。\n]{0,6}?(?:会|要|将)?$")
_OF_ELSE = Gated(
    r"(?<![a-z])(?:length|tokens?|prompts?|inputs?|outputs?|answers?|replies|context|costs?|price|budget|memory|gpus?|cards?|nodes?|hardware|replicas?|bandwidth|speed|team|staff|revenue)(?![a-z])|长度|输入|输出|成本|价格|显存|带宽|卡|机器"
)
_PLAN = Gated(
    r"(?<![a-z])(?:plan(?:ned|ning)?|siz(?:e|ed|ing)|design(?:ed)?|dimension(?:ed)?|provision(?:ed)?|prepare|calculate|budget|spec|(?:be|get)\sready|cater)\s"
    r"(?:(?:it|this|that|us|everything|please|the\s(?:plan|system|cluster))\s)?(?:for|with|on|by|against|to)\s(?P<en>[^.;,\n]{1,60})|"
    r"(?<![a-z])(?P<that>(?:doubl|tripl|quadrupl)ed\s(?:figure|number|load|rate|value|amount|traffic))\s(?:is\s(?:what|the\sone|to\sbe)|has\sto|must|counts|applies|needs)(?![a-z])|"
    r"(?:按|以|照)照?(?P<cn>[^,;。\n]{1,16}?)的?(?:量|负载|流量|来)?(?:规划|计?算|做|设计|估算?|配置?|准备|定|为准)(?!的(?!话))"
)
_NOW = Gated(
    r"(?<![a-z])(?:today(?:'s)?|now|current|present(?:\sday)?|existing|before|as\sis)(?![a-z])|现在|目前|当前|今天|上线前|之前|眼下"
)
_LATER = Gated(
    r"(?<![a-z])(?:after|that|it|this|then|future|new|later|growth|(?:launch|go-?live|roll(?:ed)?[\s\-]?out|peak)[a-z]*|higher|larger|bigger|(?:doubl|tripl|quadrupl)ed|both)(?![a-z])|后|翻|大促|活动|高峰|峰值|新|未来|倍"
)
_IGNORED = Gated(
    r"(?<![a-z])(?:ignore|disregard|forget|(?:do\snot|don't)\s(?:plan|size)\sfor|no\sneed\sto\s(?:plan|size)\sfor)\s(?:that|it|this)(?![a-z])|先?不(?:用)?(?:管|考虑|算)|忽略"
)
# What runs in a trial is outgrown by what is expected after it.
_TRIAL = Gated(
    r"(?<![a-z])(?:beta|pilot|trial|test\s(?:phase|run)|poc|proof\sof\sconcept|preview)(?![a-z])|试点|试用|试运行|内测|公测|灰度"
)
_EXPECTED = Gated(r"(?<![a-z])(?:expect\w{0,3}|will|launch|production|roll-?out|go-?live)(?![a-z])|上线|正式|预计")
_UNSURE = Gated(
    r"(?<![a-z])(?:may|might|could|if|maybe|perhaps|next\s(?:year|quarter)|some\s?day|eventually)(?![a-z])|明年|可能|也许|将来|如果"
)
# "The 5,400 was all regions summed up, this cluster gets a third of it", "60 是全站,问答只占四分之一".
_PART_OF_WHOLE = Gated(
    r"(?:the\s|those\s)?(?<![\w.])(?P<n>\d[\d,.]{0,10}k?)\s(?:[a-z]{3,12}\s)?(?:is|are|was|were)\s(?:(?:for|of|from|over|across)\s)?(?:the\s)?(?:all|whole|entire|total|sum|every|company|group|global|both)(?![a-z])[^.;\n]{0,50}?[,;.]\s"
    r"(?:(?:and|but|so)\s)?(?:this|our|ours|we|the|here)(?![a-z])[^,.;\n\d]{0,30}?\s(?P<share>half|(?:a|one)\s(?:third|quarter|fifth|tenth)|two\sthirds|three\squarters|\d{1,2}\s?(?:%|percent))(?:\sof\s(?:it|that|them|those|this))?(?=\s?[.,;!)\n]|$)|"
    r"(?<![\w.])(?P<m>\d[\d,.]{0,10})\s?(?:路|个)?是(?:所有|全|整|总)[^,;。\n]{0,10}[,;。]\s?[^,;。\n\d]{0,10}?(?:占|分到|承担|拿)(?:到|了)?(?:其中)?的?\s?(?P<part>[^,;。\n]{2,6})(?=[,;。\n]|$)"
)
_WORD = re.compile(r"[a-z]{4,}|q\d|双\s?\d{2}|618|[\u4e00-\u9fff]{2}", re.IGNORECASE)
_HALF_DAY = re.compile(r"\d\s?(?P<half>[ap])\.?m(?![a-z])", re.IGNORECASE)
_HALVES = {"a": ("morning",), "p": ("afternoon", "evening")}
_RANGE = re.compile(r"\d\s?(?:-|–|~|to|到|至)\s?\d")
_FAR = 160  # characters
_GROWING = r"(?:requests?|traffic|load|users?|calls?|volume|quer(?:y|ies)|chats?|sessions?|tickets?)(?![a-z])"
_GROWTH = Gated(
    r"(?:(?<![a-z])(?:plus|add(?:ing)?|with|including|incl\.?|plan\sfor|expect(?:s|ed|ing)?)|\+)\s?(?:another\s|about\s|some\s){0,2}(?P<a>\d{1,3}(?:\.\d)?)\s?%\s"
    r"(?:(?:for|of|as)\s)?(?:(?:the\s|future\s|expected\s|a\s)*(?:growth|safety|reserve|margin|headroom|buffer|slack|cushion)|more)(?![a-z])|"
    r"(?:(?<![a-z])(?:put|add|and)\s)?(?<![\d.])(?P<b>\d{1,3}(?:\.\d)?)\s?%\s(?:(?:growth|safety|reserve|margin|headroom|buffer|slack)\s)?on\stop(?:\sof\s(?:that|it|the\s[a-z]{3,12}(?:\sfigures?)?))?(?:\sfor\s(?:growth|safety|reserve))?(?![a-z])|"
    rf"(?<![\w.])(?P<c>\d{{1,3}}(?:\.\d)?\s?%|a\squarter|a\sthird|a\sfifth|a\stenth)\smore\s{_GROWING}|(?<![a-z])(?P<d>half)\sas\s(?:many|much)\s(?:{_GROWING})?\s?again|"
    r"(?<![a-z])another\s(?P<f>\d{1,3})\s?%(?=\s(?:by|until|within|over|next|in\sthe\snext)(?![a-z]))|"
    r"(?<![a-z])(?:grow|increase|rise)s?\sby\s(?P<g>\d{1,3}\s?%|half|a\s(?:third|quarter|fifth|tenth))(?=[^.;\n]{0,60}(?<![a-z])(?:size|plan|dimension)\sfor\s(?:that|it|this)(?![a-z]))|"
    r"(?:再|另外?|还要|多)?(?:加|预留|多留|考虑|按|留)\s?(?P<e>\d{1,3}(?:\.\d)?\s?%|[一二两三四五六七八九]成)\s?的?(?:增长|余量|冗余|富余|增量|涨幅)",
)
# "25% headroom", "capacity headroom: 0.25": what may come in addition, while the load stays what it is.
_OF_LOAD = r"(?:(?:capacity|load|traffic|rate|throughput|demand|peak|growth)\s)"
_HEADROOM = Gated(
    rf"(?<![a-z])(?:{_OF_LOAD}?headroom|(?:safety|reserve)\smargin\s(?:on|of|for)\s(?:the\s)?{_OF_LOAD}?)(?:\s(?:percent|share|fraction))?\s?(?:[:=]|of|is)?\s?"
    r"(?:(?:at\sleast|about|some|~)\s?)?(?P<a>\d{1,2}(?:\.\d)?\s?%|0?\.\d{1,3})(?![\d%])|"
    rf"(?<![\d.])(?P<b>\d{{1,2}}(?:\.\d)?\s?%)\s(?:of\s)?{_OF_LOAD}?headroom(?![a-z])|"
    r"(?:容量|流量|负载|吞吐|性能)(?:余量|冗余|裕[量度])(?:比例?|率)?\s?[:=为]?\s?(?P<c>\d{1,2}(?:\.\d)?\s?%|0?\.\d{1,3})(?![\d%])"
)
_NO_LOAD = Gated(r"(?<![a-z])(?:disks?|storage|power|cooling|cpus?|network)(?![a-z])|磁盘|功率")
_MEMORY = re.compile(r"显存|内存|memory|vram|hbm|util", re.IGNORECASE)


def multiplied(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements with the last load before a factor multiplied by it, where that state is the planned one."""
    for cue in page.search(FACTOR):
        before = [load for load in statements if load.role in LOADS and load.quantity.end <= cue.start()]
        left, right = page.clause(*cue.span())
        clause = page.original[left : cue.start()] + page.original[cue.end() : right]
        if not before or _OF_ELSE.search(clause) or LATENCY.search(clause):
            continue
        last = max(before, key=lambda load: load.quantity.end)
        near = {load.role for load in before if load.quantity.start >= min(last.quantity.start, cue.start() - _FAR)}
        is_ordered = _ORDER.search(page.original, 0, cue.start()) or _PEAK_BEFORE.search(page.original, 0, cue.start())
        planned = "later" if is_ordered or _AT_PEAK.match(page.original, cue.end()) else None
        planned = planned or _planned(page, cue, last, [load for load in statements if load.role in LOADS])
        if planned is None and _outgrows_trial(page, last, clause):
            planned = "later"
        if planned is None or (not is_ordered and len(near) > 1):
            continue
        words = page.take(*cue.span())
        if planned == "now":
            claims.reading(f"{last.words!r} is planned for, not {words!r}")
            continue
        larger = times(last, factor(cue))
        claims.reading(f"{last.words!r}, {words!r} read as {larger.quantity.value:g}")
        return [larger if load is last else load for load in statements]
    return statements


def _outgrows_trial(page: Page, load: Statement, clause: str) -> bool:
    """Whether a load is that of a trial, and the clause of a factor says what is expected after it."""
    is_of_trial = _TRIAL.search(page.clause_text(load.quantity.start, load.quantity.end)) is not None
    is_after = _TRIAL.search(clause) is not None or _EXPECTED.search(clause) is not None
    return is_of_trial and is_after and _UNSURE.search(clause) is None


def parts_of_whole(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements with a load that is said to be that of more than is planned reduced to the planned share."""
    for match in page.search(_PART_OF_WHOLE):
        whole, share = read_number(match["n"] or match["m"]), read_share(match["share"] or match["part"])
        loads = [
            load
            for load in statements
            if load.role in LOADS and load.quantity.end <= match.start() and load.quantity.number == whole
        ]
        if len(loads) != 1 or not share:
            continue
        words = page.take(*match.span())
        if loads[0].role == "concurrency":
            share = max(1.0, round(loads[0].quantity.value * share)) / loads[0].quantity.value
        part = times(loads[0], share)
        claims.reading(f"{loads[0].words!r}, {words!r} read as {part.quantity.value:.4g}")
        statements = [part if load is loads[0] else load for load in statements]
    return statements


def factor(cue: re.Match[str]) -> float:
    """What a match of `FACTOR` multiplies by."""
    if cue["verb"]:
        return _VERBS[cue["verb"].lower()]
    if cue["twice"]:
        return _TIMES[cue["twice"].lower()]
    if cue["half"]:
        return 0.5
    written = next(filter(None, map(cue.group, ("n", "x", "by", "times", "cn"))), None)
    value = (read_number(written.lower()) if written else None) or 2.0
    return 2.0**value if cue["fan"] and cue["cn"] else value


def of_planned_state(page: Page, rivals: Sequence[Statement]) -> list[Statement]:
    """The loads of the state that words plan for: "10 rps now, 30 rps after the launch, plan for after the launch"."""
    plans = [plan for plan in _PLAN.finditer(page.original) if not page.is_negated(*plan.span())]
    if len(plans) != 1:
        return []
    what = plans[0]["en"] or plans[0]["that"] or plans[0]["cn"]
    # "Size for the peak" is asked of the marks of each figure, "for the morning peak" of when each comes.
    words = _words(" ".join(WHEN.findall(what)) if OF_SPREAD.search(what) else what)
    chosen: list[Statement] = []
    for rival in rivals:
        clause = page.clause_text(rival.quantity.start, rival.quantity.end)
        is_same = _NOW.search(clause) if _NOW.search(what) else words & _words(clause)
        chosen += [rival] if is_same else []
    # "210 rpm, Friday 16-19 h": a range in its clause may be hours of the day.
    return [] if any(_RANGE.search(rival.words) for rival in chosen) else chosen


def _planned(
    page: Page, cue: re.Match[str], base: Statement, loads: Sequence[Statement]
) -> Literal["now", "later"] | None:
    """Which state words near a factor of `base` say to plan for; `None` for neither, both, or that of another load."""
    states: set[Literal["now", "later"] | None] = set()
    for plan in _PLAN.finditer(page.original, max(0, cue.start() - _FAR), cue.end() + _FAR):
        what = (plan["en"] or plan["that"] or plan["cn"]).strip()
        if page.is_negated(*plan.span()):
            continue
        left, right = page.clause(*cue.span())
        clause = page.original[left : cue.start()] + page.original[cue.end() : right]
        spans = {load: (load.quantity.start, load.quantity.end) for load in loads}
        named = [load for load, span in spans.items() if _words(what) & _words(page.clause_text(*span))]
        begins, ends = page.sentence(*cue.span())
        sentence = page.original[begins : cue.start()] + page.original[cue.end() : ends]
        if _NOW.search(what) or USUAL.search(what):
            states.add("now")
        elif _words(what) & _words(clause):
            states.add("later")
        elif named:
            states.add("now" if named == [base] else None)
        elif _words(what) & _words(sentence) or (_LATER.search(what) and plan.start() > cue.start()):
            states.add("later")
        else:
            continue
        page.take(*plan.span())
    if _IGNORED.search(page.original, cue.end(), cue.end() + _FAR):
        states.add("now")
    return states.pop() if len(states) == 1 else None


def _words(text: str) -> set[str]:
    """The words of a text that tell states apart, with the parts of the day of its hours."""
    halves = (half for match in _HALF_DAY.finditer(text) for half in _HALVES[match["half"].lower()])
    return {*map(str.lower, _WORD.findall(text)), *halves}


def settle_growth(page: Page, claims: Claims) -> None:
    """Raise the load by its stated growth, where exactly one load is stated, and claim its headroom."""
    has_rate = any(map(claims.has, ("request_rate", "rate_curve")))
    for match in page.search(_HEADROOM) if has_rate else ():
        clause, amount = page.clause_text(*match.span()), match["a"] or match["b"] or match["c"]
        if not any(words.search(clause) for words in (_MEMORY, _OF_ELSE, _NO_LOAD, LATENCY)):
            claims.claim("headroom", read_share(amount) or float(amount), page.take(*match.span()))
    loads = [name for name in ("request_rate", "concurrency") if claims.has(name)]
    for match in page.search(_GROWTH):
        if len(loads) != 1 or _MEMORY.search(page.clause_text(*match.span())):
            continue
        amount = next(filter(None, match.groups()))
        factor = 1 + (read_share(f"{amount}%" if amount.replace(".", "").isdigit() else amount) or 0.0)
        before, words = claims.values[loads[0]], claims.words[loads[0]]
        value = before * factor if loads[0] == "request_rate" else math.ceil(before * factor - 1e-9)
        more = page.take(*match.span())
        claims.replace(loads[0], value, f"{words}, {more}")
        unit = "requests/s" if loads[0] == "request_rate" else "served at once"
        claims.reading(f"{more!r} on top of {words!r} read as {value:.4g} {unit}")
