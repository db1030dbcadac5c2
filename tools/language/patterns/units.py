"""The units of `quantities.py`: how each is spelled in English and Chinese, and its factor to the base unit."""

from __future__ import annotations

import re
from typing import Literal

from .gated import Gated

Unit = Literal[
    "count", "tokens", "requests", "gpus", "nodes", "ms", "ms/token", "tokens/s", "tokens/s/user", "tokens/s/gpu",
    "requests/s", "requests/s/user", "bytes", "GB/s", "TFLOPS", "share", "percentile", "usd",
]  # fmt: skip

_END = r"(?![A-Za-z])"
_SECOND = r"(?:s|secs?|seconds?|秒)(?![a-z])"
_PER_SECOND = (
    rf"\s?(?:/\s?{_SECOND}|(?<=\s)ps(?![a-z])|(?:per|by|a|each|every)[\s\-](?:s|sec|second)(?![a-z])|每秒钟?)"
)  # fmt: skip
_PER_MINUTE = r"\s?(?:/\s?(?:min|minute|分钟?)(?![a-z])|(?:per|by|a|each|every)[\s\-](?:min|minute)(?![a-z])|每分钟)"
_PER_HOUR = r"\s?(?:/\s?(?:h|hr|hour|小时)(?![a-z])|(?:per|by|an|each|every)[\s\-](?:hr|hour)(?![a-z])|每小时)"
_PER_DAY = r"\s?(?:/\s?(?:d|day|天)(?![a-z])|(?:per|by|a|each|every)[\s\-]day(?![a-z])|每天|一天)"
_PER_WEEK = r"\s?(?:/\s?(?:week|周)(?![a-z])|(?:per|by|a|each|every)[\s\-]week(?![a-z])|每周)"
_PER_MONTH = r"\s?(?:/\s?(?:month|月)(?![a-z])|(?:per|by|a|each|every)[\s\-]month(?![a-z])|每个?月)"
_TIMES = (
    (_PER_SECOND, 1.0), (_PER_MINUTE, 1 / 60), (_PER_HOUR, 1 / 3600), (_PER_DAY, 1 / 86_400), (_PER_WEEK, 1 / 604_800),
    (_PER_MONTH, 1 / 2_592_000),
)  # fmt: skip
_PER_TIME = "|".join(time for time, _ in _TIMES)
_TOKEN = r"(?:(?:output|generated|decode|decoded)\s)?(?:tokens?|toks?|个\s?(?:tokens?|词元)|词元)"
_USER = r"(?:user|request|req|stream|client|session|seq(?:uence)?|person|query|用户|请求|路|人)"
_PER_USER = (
    rf"\s?(?:/\s?{_USER}(?!s)|(?:per|(?:for|to)\s(?:every|each)|each|every)[\s\-](?:single\s|individual\s|concurrent\s)?"
    rf"{_USER}(?!s)|每个?{_USER})"
)
_GPU = r"(?:gpus?|cards?|device|accelerator|chip|卡)"
_PER_GPU = rf"\s?(?:/\s?{_GPU}(?![a-z])|(?:per|each|every|for\seach)[\s\-]{_GPU}(?![a-z])|每[张块]?卡)"
_TOKEN_RATE = rf"(?:{_TOKEN}{_PER_SECOND}|tps{_END}|(?:tok|t)/s{_END})"
# Things that come in, with their verb ("tickets arrive", "calls on average"); nothing that is measured or paid for.
_REQUEST = (
    r"(?:(?:个\s?)?(?:(?!(?:and|but|can|could|get|gets|got|has|have|the|our|its|is|are|was|were|or|so|to|in|on|want|need|take|takes|with|for|from|then|must|may)\s)(?!tok|hour|hr|day|week|min|shift|sec|ms(?:ec|(?![a-z]))|gpu|card|node|word|char|usd|eur|dollar|buck|cent|step|layer)"
    r"[a-z\-]{3,16}(?:\s(?!at|for|with|over|of|(?:and|or|but|can|get|gets|have|has|buy|take|rent|add|order|into|need|want|use|give|gave|bring)\s)[a-z]{2,10}){0,3}?|次?请求|[次条笔单件封篇份段通])|个(?=\s?[/每]))"
)
_BARE_PER = r"\s?(?:/\s?|(?:per|a|each|every)\s)"
_GBIT_SECOND = r"(?:\s?/\s?s(?:ec)?|ps|\sper\ssecond)?(?![a-z])"
_BYTE_SECOND = r"\s?(?:/\s?s(?:ec)?|ps|\sper\ssecond|每秒)(?![a-z])"
_WHO = (
    r"(?:(?:concurrent|simultaneous|parallel|active|running|ongoing|in[\s\-]flight|live|online|end|(?:(?<=parallel\s)|(?<=concurrent\s)|(?<=simultaneous\s)|(?<=active\s))(?:agent|chat|user|client|coding|support|customer|voice|model|llm))\s)*(?:users?|requests?|reqs?|"
    r"sessions?|streams?|chats?|clients?|callers?|people|devs|developers|engineers|employees|students|ppl|folks|"
    r"visitors|guests|staff|workers|members|readers|subscribers|players|operators|colleagues|agents|analysts|customers?|daus?|sequences?|seqs?|conversations?|dialogu?e?s|connections|queries)(?![a-z])"
    r"|(?:个|位|路|条|名)?\s?(?:并发|同时)?(?:在线)?(?:用户|请求|会话|序列)|路(?:并发)?|个并发|个?人(?!工|民)|[个位名]?\s?(?:同事|同学|员工|客服|坐席)(?=\s?在?(?:用|使用|同时))"
)
_SIZES = {
    "tib": 2.0**40, "gib": 2.0**30, "mib": 2.0**20,
    "tb|terabytes?": 1e12, "gb|gigabytes?|gigs?": 1e9, "mb|megabytes?": 1e6, "kb|kilobytes?": 1e3,
}  # fmt: skip
_PEAKS = {"p(?:eta)?": 1000.0, "t(?:era)?": 1.0, "g(?:iga)?": 1e-3}
# Longest meaning first: the first pattern that matches right after the number is its unit. A small `b` is a bit only
# in "Gb/s", "Gbps" and "Gbit"; a unit in small letters alone ("gb/s") is read as bytes.
_TABLE: tuple[tuple[str, Unit, float], ...] = (
    (
        rf"(?:ms|msecs?|milli\s?seconds?|毫秒)\s?(?:/|per|each|a|每个?)\s?(?:(?:output|generated)\s)?(?:tokens?|toks?|词元){_END}",
        "ms/token",
        1.0,
    ),
    (rf"{_TOKEN_RATE}{_PER_USER}", "tokens/s/user", 1.0),
    (rf"{_TOKEN_RATE}{_PER_GPU}", "tokens/s/gpu", 1.0),
    (rf"{_TOKEN}{_PER_USER}{_PER_SECOND}", "tokens/s/user", 1.0),
    (rf"{_TOKEN}{_PER_GPU}{_PER_SECOND}", "tokens/s/gpu", 1.0),
    (_TOKEN_RATE, "tokens/s", 1.0),
    (rf"tpm{_END}", "tokens/s", 1 / 60),
    *((rf"{_TOKEN}{time}", "tokens/s", factor) for time, factor in _TIMES[1:]),
    (rf"(?:ms|msecs?|milli[\s\-]?seconds?){_END}|毫秒", "ms", 1.0),
    (rf"(?:us|µs|μs|micro[\s\-]?seconds?){_END}|微秒", "ms", 1e-3),
    (rf"(?:s|secs?|seconds?){_END}|秒钟?|\((?:s|secs?|seconds?){_END}[^)\d]{{0,12}}\)", "ms", 1000.0),
    (rf"(?:mins?|minutes?){_END}|分钟", "ms", 60_000.0),
    (r"(?-i:Tb)(?:/s|ps)(?![a-z])|(?:tbits?|terabits?)" + _GBIT_SECOND + r"|(?-i:tbps|Tbps)(?![a-z])", "GB/s", 125.0),
    (
        r"(?-i:Gb)(?:/s|ps)(?![a-z])|(?:gbits?|gigabits?)" + _GBIT_SECOND + r"|(?-i:gbps)(?![a-z])|gbe(?![a-z])",
        "GB/s",
        0.125,
    ),
    *((rf"(?:{name}){_BYTE_SECOND}", "GB/s", size / 1e9) for name, size in _SIZES.items()),
    *((rf"(?:{name}flops?|{name}flop/s)(?:/s)?(?![a-z])", "TFLOPS", size) for name, size in _PEAKS.items()),
    (r"(?-i:TOPS)(?:/s)?(?![a-z])", "TFLOPS", 1.0),
    *((rf"(?:{name}){_END}", "bytes", size) for name, size in _SIZES.items()),
    (r"g(?![A-Za-z0-9])", "bytes", 1e9),
    (r"%|(?:percent|per\scent|pct)(?![a-z])", "share", 0.01),
    (r"(?:us\s?dollars?|usd|dollars?|bucks?)(?![a-z])|\$(?!\s?\d)|美元|美金|刀", "usd", 1.0),
    (rf"{_REQUEST}?(?:{_PER_USER}(?:{_PER_TIME})|(?:{_PER_TIME}){_PER_USER})", "requests/s/user", 1.0),
    (rf"{_REQUEST}{_PER_SECOND}|[qr]ps{_END}|\s?[qr]/s{_END}|{_BARE_PER}(?:s|sec|second)(?![a-z])", "requests/s", 1.0),
    (rf"{_REQUEST}{_PER_MINUTE}|[qr]pm{_END}|{_BARE_PER}(?:min|minute)(?![a-z])", "requests/s", 1 / 60),
    (rf"{_REQUEST}{_PER_HOUR}|\s?/\s?(?:h|hr|hour)(?![a-z])", "requests/s", 1 / 3600),
    *((rf"{_REQUEST}{time}", "requests/s", factor) for time, factor in _TIMES[3:]),
    # "512 output tokens": "output" stays readable as a role.
    (r"(?=(?:input|output|prompt|generated|new|context|completion)\s(?:tokens?|toks?)(?![a-z]))", "tokens", 1.0),
    (rf"{_TOKEN}{_END}", "tokens", 1.0),
    (_WHO, "requests", 1.0),
    (
        r"(?:gpus?|cards?|accelerators?|chips|devices)(?![a-z]|\s(?:memory|mem|util|vram|ram)(?![a-z]))|(?:张|块|颗|片|枚)\s?(?:显卡|卡|gpus?(?![a-z])|加速卡)?"
        r"|个\s?(?:gpus?(?![a-z])|卡|加速器)|卡",
        "gpus",
        1.0,
    ),
    (
        r"(?:nodes?|machines?|servers?|workstations|boxes|box|hosts?|instances?|trays?)(?![a-z])"
        r"|(?:台|个)\s?(?:机器(?!人)|服务器|节点|主机|机(?!器人)|(?:计算)?托盘)|台|机(?!器学|架|柜)|节点",
        "nodes",
        1.0,
    ),
)  # fmt: skip

UNIT_PATTERNS: tuple[tuple[Gated, Unit, float], ...] = tuple(
    (Gated(rf"[ \-]?(?:{pattern})"), unit, factor) for pattern, unit, factor in _TABLE
)
_UNIT = Gated("|".join(f"(?P<u{place}>{pattern.pattern})" for place, (pattern, _, _) in enumerate(UNIT_PATTERNS)))

# `k` is 1024 where things are counted, 1000 where they are measured.
COUNTED: frozenset[Unit] = frozenset({"count", "tokens", "requests", "gpus", "nodes"})
_KEY = re.compile(r" ?[=:] ?\d")


def unit_at(text: str, position: int) -> tuple[Unit, float, str, int]:
    """The unit at a position of a text: its name, factor, spelling and end; "count" if there is none."""
    match = _UNIT.match(text, position)
    if match is None:
        return "count", 1.0, "", position
    _, unit, factor = UNIT_PATTERNS[int(str(match.lastgroup)[1:])]
    if unit in COUNTED and _KEY.match(text, match.end()):
        return "count", 1.0, "", position  # "out=1k users=20": the word belongs to the next number
    spelled = match.group().strip(" -")
    if unit == "requests/s/user":
        factor = next(scale for time, scale in _TIMES if re.search(time, spelled, re.IGNORECASE))
    return unit, factor, spelled, match.end() if spelled else position
