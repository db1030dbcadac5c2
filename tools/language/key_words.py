"""Keys and headings as plain words, in the order and the spelling that the readers of words know."""

from __future__ import annotations

import re
import unicodedata

from .gated import Gated

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z])(?=P\d\d)|(?<=\d)(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-/\\|]+|\s+")

_TIME_UNIT = re.compile(r"(?<!per )\b(?:ms|msecs?|millis(?:econds?)?|s|secs?|seconds?)\b")
_STATISTIC = re.compile(r"\b(?:p\d{2,3}|mean|avg|average|median)\b|平均")
_ANSWER = r"(?:request|call|response|answer|reply)"
_TOKENS = r"tok(?:en)?s?"
_NEW_TOKENS = rf"(?:(?:output|generated|new) )?{_TOKENS}"
_USUAL = re.compile(r"(?:^| )(?:typical|usual|normal|peak)(?= |$)")
# With a unit of time in the key.
_LATENCIES = {
    "ttft": r"ttft|(?:(?:time|latency) )?(?:to |until )?(?:the )?first (?:output )?tok(?:en)?(?: latency| time)?",
    "tpot": (
        rf"tpot|itl|tbt|(?:(?:time|latency) )?(?:per|each|between|of each) {_NEW_TOKENS}|"
        rf"{_NEW_TOKENS}(?: latency| time)|"
        r"output token|inter token(?: latency| time| delay)?"
    ),
    "end to end latency": (
        rf"(?:e2el?|end to end)(?: latency| time)?|(?:(?:time|latency) )?(?:per|of each) {_ANSWER}|"
        rf"{_ANSWER} (?:latency|time|duration|turnaround)|"
        rf"(?:whole|full|entire|complete|total) (?:{_ANSWER}|latency|time)(?: latency| time)?|整体|全程|端到端"
    ),
}

_OUT = r"out(?:put)?"
_HOURLY = r"(?: per)? h(?:r|our)?"
_OF_CHAT = r"(?: per (?:session|conversation|chat|dialog(?:ue)?))?"
# "in_tok_avg", "tok_s_out", "avg_turns", "price_gpu_h": without their statistics.
_AMOUNTS = {
    "input tokens": rf"in(?:put)? {_TOKENS}|{_TOKENS} in(?:put)?|prompt {_TOKENS} incl(?:uding)? (?:the )?history",
    "output tokens": rf"{_OUT} {_TOKENS}|{_TOKENS} {_OUT}",
    "output tokens per second": (
        rf"(?:(?:total|aggregate|min|minimum) )?(?:{_OUT} )?{_TOKENS} (?:per )?s(?:ec(?:ond)?)?"
        rf"(?: (?:{_OUT}|total|aggregate))?"
    ),
    "turns per session": rf"(?:number of )?turns(?: (?:count|number))?{_OF_CHAT}|(?:对话|会话)?轮[数次]",
    "concurrent requests": r"(?:simultaneous|concurrent|parallel) (?:generations|requests|calls|streams)",
    "disaggregated": r"split prefill(?: and)? decode|(?:prefill decode|pd) (?:split|separation|disaggregation)",
    "reserved nodes": r"(?:nodes|servers|hosts|machines) (?:held|kept|set) (?:back|aside|free)",
    "reserved gpus": r"(?:gpus|cards) (?:held|kept|set) (?:back|aside|free)",
    "reserved memory per gpu": r"(?:memory |vram )?free per (?:gpu|card)",
    "price per gpu hour": (
        rf"(?:price|cost|rate)(?: per)? (?:gpu|card){_HOURLY}|(?:gpu|card) (?:price|cost|rate){_HOURLY}"
    ),
}

# "预留显存GB": the unit of a Chinese key, without a blank before it.
UNIT_BEHIND = Gated(r"(?<=[\u4e00-\u9fff])(?=(?:[gmt]i?b|ms|us|s|usd)$)")


def key_words(key: str) -> str:
    """A key or heading as plain lower-case words: `gpuCount`, `gpu_count` and `GPU count` read alike."""
    return known_key(key) or _parted(key)


def known_key(key: str) -> str | None:
    """A key that has one name here, however it is spelled and ordered: "ttft p99 seconds"; `None` for others.

    Its statistic stands behind its name, its unit last.
    """
    words = _parted(key)
    bare = " ".join(_STATISTIC.sub("", words).split())
    statistics = [match.group() for match in _STATISTIC.finditer(words)]
    unit = _TIME_UNIT.search(bare)
    if unit is not None:
        named = " ".join(_TIME_UNIT.sub("", bare).split())
        if latency := _name_of(named, _LATENCIES):
            return " ".join((latency, *statistics, unit.group()))
    amount = _name_of(_USUAL.sub("", bare).strip(), _AMOUNTS)
    return amount and " ".join((amount, *(statistics if amount.endswith("tokens") else ())))


def _parted(key: str) -> str:
    text = UNIT_BEHIND.sub(" ", unicodedata.normalize("NFKC", key))
    return _SEPARATORS.sub(" ", _CAMEL.sub(" ", text)).strip().lower()


def _name_of(words: str, names: dict[str, str]) -> str | None:
    return next((name for name, spelled in names.items() if re.fullmatch(spelled, words)), None)
