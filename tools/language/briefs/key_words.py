"""Keys and headings as plain words, in the order and the spelling that the readers of words know."""

from __future__ import annotations

import re
import unicodedata

from ..patterns.gated import Gated

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z])(?=P\d\d)|(?<=\d)(?=[A-Z][a-z])")
_BRACKETS = re.compile(r"[()\[\],:]")
_SEPARATORS = re.compile(r"[_\-/\\|]+|\s+")

_TIME_UNIT = re.compile(r"(?<!per )\b(?:ms|msecs?|millis(?:econds?)?|s|secs?|seconds?)\b|毫秒|(?<![每毫])秒")
_CHINESE_UNITS = {"毫秒": "ms", "秒": "s"}
_STATISTIC = re.compile(r"(?<![a-z\d])p\d{2,3}(?!\d)|\b(?:mean|avg|average|median)\b|平均")
_ANSWER = r"(?:request|call|response|answer|reply)"
_WORK = r"(?:requests|generations|calls|streams|queries|completions)"
_JOBS = (
    rf"(?:{_WORK}|questions|prompts|chats|conversations|dialog(?:ue)?s|sessions|messages|turns|documents|"
    r"translations|summaries|lookups|searches)"
)
_DONE = r"(?:(?:complete|finish|answer|return|respond|deliver)(?:e?d|s)?|done|ready)"
_DELAY = r"(?:的?(?:延迟|时延|响应|返回|时间|耗时))*"
_TOKENS = r"tok(?:en)?s?"
_NEW_TOKENS = rf"(?:(?:output|generated|new) )?{_TOKENS}"
_USUAL = re.compile(r"(?:^| )(?:typical|usual|normal|peak)(?= |$)")
_LIMIT = re.compile(r"\b(?:max(?:imum)?|limit|target|goal|upper|bound|cap|ceiling|budget|threshold|sl[oa])\b|上限|目标")
# With a unit of time in the key.
_LATENCIES = {
    "ttft": r"ttft|(?:(?:time|latency) )?(?:to |until )?(?:the )?first (?:output )?tok(?:en)?(?: latency| time)?"
    rf"|首\s?个?\s?(?:token|字|包){_DELAY}",
    "tpot": (
        rf"tpot|itl|tbt|(?:(?:time|latency) )?(?:per|each|between|of each) {_NEW_TOKENS}|"
        rf"{_NEW_TOKENS}(?: latency| time)|"
        r"output token|inter token(?: latency| time| delay)?|"
        rf"(?:[每逐]\s?个?\s?(?:输出)?\s?(?:token|字)|(?:token|字)\s?间隔?){_DELAY}"
    ),
    "end to end latency": (
        rf"(?:e2el?|end to end)(?: latency| time)?|(?:(?:time|latency) )?(?:per|of each) {_ANSWER}|"
        rf"{_ANSWER} (?:latency|time|duration|turnaround)|"
        rf"(?:whole|full|entire|complete|total) (?:{_ANSWER}|latency|time)(?: latency| time)?|"
        rf"{_DONE} (?:with)?in|(?:整体|全程|端到端|完整|总){_DELAY}"
    ),
}

_OUT = r"out(?:put)?"
_PRICE = r"(?:price|cost|rate|tariff|rent(?:al)?|lease|fee)"
_HOURLY = r"(?: per)? h(?:r|our)?"
_OF_CHAT = r"(?: per (?:session|conversation|chat|dialog(?:ue)?))?"
_MOST, _NUMBER = r"(?:max(?:imum)?|most|upper limit|limit)", r"(?:(?: of)?(?: the)? number| count)?(?: of)?"
_NODES, _GPUS = r"(?:nodes?|hosts?|servers?|machines?)", r"(?:gpus?|cards?)"
_REPLICAS = r"(?:replicas?|instances?|copies|deployments)"
# "in_tok_avg", "tok_s_out", "avg_turns", "price_gpu_h": without their statistics.
_AMOUNTS = {
    "input tokens": rf"in(?:put)? {_TOKENS}|{_TOKENS} in(?:put)?|prompt {_TOKENS} incl(?:uding)? (?:the )?history|"
    r"quer(?:y|ies) (?:len(?:gth)?|size)",
    "output tokens": rf"{_OUT} {_TOKENS}|{_TOKENS} {_OUT}|"
    rf"(?:suggest(?:ed|ions?)|propos(?:ed|als?)|returned|emitted|produced|written|drafted|predicted) {_TOKENS}",
    "output tokens per second": (
        rf"(?:(?:total|aggregate|min|minimum) )?(?:{_OUT} )?{_TOKENS} (?:per )?s(?:ec(?:ond)?)?"
        rf"(?: (?:{_OUT}|total|aggregate))?"
    ),
    "tokens per second per user": r"min(?:imum)? stream (?:rate|speed)|stream (?:rate|speed) (?:min(?:imum)?|at least)",
    "turns per session": rf"(?:number of )?turns(?: (?:count|number))?{_OF_CHAT}|(?:对话|会话)?轮[数次]",
    "concurrent requests": (
        rf"(?:simultaneous|concurrent|parallel|in ?flight) {_JOBS}|(?:active|open|running|ongoing) {_WORK}|"
        rf"(?:{_WORK} |generating )(?:(?:in|at)(?: an?y?| the)?(?: one| same)? ?(?:flight|progress|parallel|once|time)|"
        r"running|open|(?:being )?(?:served|processed|handled|generated))|"
        r"(?:同时|并行)(?:正?在)?(?:处理|进行|生成)?中?的?(?:请求|会话|对话|提问|问答)数?量?|同时(?:处理|进行|生成)"
    ),
    "max gpus": rf"{_MOST}{_NUMBER} {_GPUS}{_NUMBER}|(?:number of )?{_GPUS}{_NUMBER} {_MOST}|"
    r"最[多大](?:可?用)?(?:gpu|卡)数?量?|(?:gpu|卡)数?量?(?:上限|最[多大])",
    "max nodes": rf"{_MOST}{_NUMBER} {_NODES}{_NUMBER}|(?:number of )?{_NODES}{_NUMBER} {_MOST}|"
    r"最[多大](?:可?用)?(?:节点|机器|服务器|台)数?量?|(?:节点|机器|服务器|台)数?量?(?:上限|最[多大])",
    "max instances": rf"(?:number of )?instances {_MOST}",
    "max replicas": rf"max(?:imum)?{_NUMBER} {_REPLICAS}|(?:number of )?replicas? max(?:imum)?|"
    r"最[多大](?:副本|实例)数?",
    "min replicas": rf"(?:min(?:imum)?|least){_NUMBER} {_REPLICAS}|(?:number of )?replicas? min(?:imum)?|"
    r"最[少小](?:副本|实例)数?|(?:副本|实例)数?(?:不少于|最[少小]|下限|至少)",
    "requests per day": r"日均?请求数?量?|每[日天]请求数?量?",
    "requests per hour": rf"(?:busy|busiest|peak) hour {_WORK}|{_WORK} (?:in|of) the (?:busy|busiest|peak) hour",
    "disaggregated": r"split prefill(?: and)? decode|(?:prefill decode|pd) (?:split|separation|disaggregation)",
    "reserved memory per gpu": r"(?:memory |vram )?free per (?:gpu|card)",
    "price per gpu hour": (
        rf"(?=.*(?:{_PRICE}|usd))(?:(?:list |unit )?{_PRICE}(?: card)? )?(?:in )?(?:usd )?(?:per )?(?:gpu|card)"
        rf"(?: {_PRICE}(?: card)?)?(?: usd)?{_HOURLY}(?: usd)?"
    ),
}

# {"reserved_for_others": {"nodes": 1}}
KEPT_BACK = Gated(
    r"reserved?|(?:keep|kept|hold|held|set|put) (?:back|free|aside)|with ?h[eo]ld|stand ?by|spares?(?: |$)|others?$|"
    r"(?:lent|loaned|leased|promised)(?: out| to)?(?= |$)|不参与|"
    r"(?:(?:held|kept|out|down) )?(?:in|for|under) (?:maintenance|repairs?)|"
    r"not (?:ours|available|to be used)|(?:do|must) not use|blocked|unavailable|"
    r"[冷热灾]备|不可用|预留|备用|留[给出]|占用"
)
# "gpus_held_back", "留给训练的节点": the key itself keeps something back.
_THINGS = rf"(?:(?P<nodes>{_NODES}|节点|机器|台数)|(?P<gpus>{_GPUS}|卡))"
_NOT_THEIRS = r"(?!.*(?:(?:per|each|every|with|in) |[gmt]i?b(?: |$)|memory|显存|内存|每))"
_KEPT = (
    Gated(rf"{_NOT_THEIRS}{_THINGS}(?: (?:for|of|by|taken by))? (?:{KEPT_BACK.pattern}).*"),
    Gated(rf"{_NOT_THEIRS}(?:.*[ \u4e00-\u9fff])?(?:{KEPT_BACK.pattern}).*?{_THINGS}数?量?"),
)

# "预留显存GB": the unit of a Chinese key, without a blank before it.
UNIT_BEHIND = Gated(r"(?<=[\u4e00-\u9fff])(?=(?:[gmt]i?b|ms|us|s|usd)$)")


def key_words(key: str) -> str:
    """A key or heading as plain lower-case words: `gpuCount`, `gpu_count` and `GPU count` read alike."""
    return known_key(key) or _parted(key)


def known_key(key: str) -> str | None:
    """A key that has one name here, however it is spelled and ordered: "ttft p99 seconds"; `None` for others.

    Its statistic stands behind its name, its unit last.
    """
    words = " ".join(_BRACKETS.sub(" ", _parted(key)).split())
    bare = " ".join(_STATISTIC.sub("", words).split())
    statistics = [match.group() for match in _STATISTIC.finditer(words)]
    unit = _TIME_UNIT.search(bare)
    if unit is not None:
        named = " ".join(_LIMIT.sub("", _TIME_UNIT.sub("", bare)).split())
        if latency := _name_of(named, _LATENCIES):
            return " ".join((latency, *statistics, _CHINESE_UNITS.get(unit.group(), unit.group())))
    if kept := next(filter(None, (pattern.fullmatch(words) for pattern in _KEPT)), None):
        return f"reserved {kept.lastgroup}"
    amount = _name_of(_USUAL.sub("", bare).strip(), _AMOUNTS)
    return amount and " ".join((amount, *(statistics if amount.endswith("tokens") else ())))


def _parted(key: str) -> str:
    text = UNIT_BEHIND.sub(" ", unicodedata.normalize("NFKC", key))
    return _SEPARATORS.sub(" ", _CAMEL.sub(" ", text)).strip().lower()


def _name_of(words: str, names: dict[str, str]) -> str | None:
    return next((name for name, spelled in names.items() if re.fullmatch(spelled, words)), None)
