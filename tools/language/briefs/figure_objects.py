"""Figures that a structured brief states as objects or lists: a range, a bound with its metric, a rate by the hour.

{"min": 512, "max": 8192}, {"metric": "ttft", "percentile": 95, "below": "2 s"}, [15, "s", "p90"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...catalog.hardware import mentions
from ..patterns.gated import Gated
from .key_words import key_words

_RANGE_KEYS = {
    "min": "low", "minimum": "low", "from": "low", "low": "low", "lower": "low", "shortest": "low", "最小": "low",
    "max": "high", "maximum": "high", "to": "high", "high": "high", "upper": "high", "longest": "high", "最大": "high",
    "typical": "typical", "typ": "typical", "avg": "typical", "average": "typical", "mean": "typical",
    "median": "typical", "p50": "typical", "usual": "typical", "典型": "typical", "平均": "typical",
}  # fmt: skip
_QUANTILE = (
    r"(?:p|pctl?|quantile|percentile|分位[数点值]?|(?:in|for|of)(?: at least)? (?:percent|share)(?: of (?:all )?\w+)?|"
    r"share of (?:requests|calls|cases|users))"
)
# Keys beside a figure in its object that qualify it.
QUALIFIER = Gated(
    rf"direction(?:ality)?|duplex|{_QUANTILE}|stat(?:istics?)?|agg(?:regat(?:e|ion))?|方向|(?:统计)?口径|统计(?:方式|量)?|"
    r"(?:(?:all|both|each|limits?)(?: are)? )?(?:(?:measured|taken|counted|evaluated|stated|given) (?:at|as|by)|at)"
)
# What is counted in no unit that its object states for lengths or times.
OF_NO_UNIT = Gated(r"(?:^| )(?:concurren\w*|requests?|calls|users|sessions?|turns)(?: |$)|并发|请求|人数|轮")
# "ttft_percentile" beside "ttft_ms".
_QUALIFIER_OF = re.compile(r"(.+?) ?(?:percentile|pctl?|quantile|statistic|stat|分位数?|(?:统计)?口径|统计)")
_LABEL_KEYS = (
    "metric", "name", "kind", "key", "parameter", "item", "field", "sli", "slo", "kpi", "indicator", "what", "which",
    "measure", "signal", "quantity", "on", "of", "指标", "名称", "项目", "项", "内容",
)  # fmt: skip
_FIGURE_KEY = Gated(
    r"(?:(?:(?:(?:must|should|shall|has to) )?(?:(?:be|stay|remain|come) )?"
    r"(?:(?:less|lower|no more|no longer|not more) than|"
    r"(?:not )?(?:above|below|under|over|exceed(?:ing)?)|at (?:most|least)|within|up to)|[lg]te?|[lg]e|"
    r"(?:value|target|goal|objective|limit|max(?:imum)?|threshold|min(?:imum)?|amount|bound|cap|ceiling|upper)"
    r"(?: (?:limit|bound|value))?|"
    r"取?值|目标值?|上限值?|阈值|限值|要求|最[大高]值?|不(?:得|应|可|能)?(?:超过|高于|大于|多于)|"
    r"[小低少]于|最多|至多)(?: |$|(?=毫?秒))|(?=ms|milli|s|毫?秒))"
    r"(?P<unit>ms|milliseconds?|s|sec|seconds?|毫?秒)?"
)
_TIME = re.compile(r"[<≤=\s]{0,4}\d[\d.,]{0,9}\s?(?:ms|milliseconds?|s|secs?|seconds?|毫?秒)(?![a-z])", re.IGNORECASE)
STATISTIC = Gated(r"p\d{2}(?:\.\d{1,2})?|\d{2}(?:th|%)|mean|avg|average|median|平均值?|均值|中位数?")
_BESIDE_FIGURE = Gated(r"[<≤]=?|m?s|milliseconds?|sec(?:onds?)?|毫?秒|under|below|within|max|at most|at")
_BEGINS_FIGURE = re.compile(r"[<≤]?=?\s?\d")
_OF_100 = re.compile(r"(?P<n>\d{1,2}(?:\.\d{1,4})?)\s?(?:%|st|nd|rd|th)?")
_HOURS_KEY = re.compile(
    r"(?P<start>\d{1,2})(?::00)?\s?(?:h\s?)?(?:-|–|to|~|至|到)\s?(?P<end>\d{1,2})(?::00)?\s?(?:h|点|时)?"
)
_OF_LOAD = Gated(r"rps|qps|rates?|requests?|traffic|load|curve|profile|concurren\w*|流量|请求|负载|曲线|并发")
UNIT_KEYS = ("unit", "units", "单位")


def percentile_text(key: str, value: Any) -> str:
    """A qualifier of a figure in words: a quantile of 0.95, 95 or "95%" is p95."""
    figure = _OF_100.fullmatch(str(value).strip())
    if figure is None or not re.fullmatch(rf"{_QUANTILE}|at", key):
        return f"{value}"
    share = float(figure["n"])
    return f"p{round(share * 100, 6) if share < 1 else share:g}"


def with_own_qualifiers(value: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with "ttft_percentile: p90" as a remark behind the figure of "ttft_ms"."""
    merged = dict(value)
    for key, qualifier in value.items():
        stem = _QUALIFIER_OF.fullmatch(key_words(key))
        # "e2e_ms" is "end to end latency ms" in words, "e2e_percentile" names the key as it is written.
        figures = [
            k
            for k in merged
            if stem
            and k != key
            and any(form.startswith(stem[1]) for form in (key_words(k), k.lower().replace("_", " ")))
        ]
        if figures and isinstance(qualifier, str | int | float):
            remark = percentile_text(key_words(key).removeprefix(stem[1] if stem else "").strip(), qualifier)
            merged |= {k: f"{merged[k]} ({remark})" for k in figures if isinstance(merged[k], int | float | str)}
            del merged[key]
    return merged


def unit_words(unit: str) -> str:
    """A unit in plain words: "requests per minute" for "requests_per_minute"."""
    return unit.replace("_", " ")


def range_text(value: Mapping[str, Any]) -> str | None:
    """`{"min": 512, "max": 8192, "typical": 4096}` as words; `None` where it is not such an object."""
    parts: dict[str, Any] = {}
    unit = ""
    for key, item in value.items():
        words = key_words(key)
        if words in UNIT_KEYS and isinstance(item, str):
            unit = f" {unit_words(item)}"
        elif (kind := _RANGE_KEYS.get(words)) and isinstance(item, int | float | str) and kind not in parts:
            parts[kind] = item
        else:
            return None
    if not {"low", "high"} <= parts.keys():
        return None
    typical = f", typically {parts['typical']}{unit}" if "typical" in parts else ""
    return f"{parts['low']} to {parts['high']}{unit}{typical}"


def curve_text(key: str, value: Mapping[str, Any]) -> str | None:
    """Rates by all hours of the day, `{"00-07": 0.5, "07-19": 8, "19-24": 2}`, as words; `None` where it is none.

    `key`: what they stand under.
    """
    if len(value) < 2 or not _OF_LOAD.search(key_words(key)):
        return None
    hours = [match for part in value if (match := _HOURS_KEY.fullmatch(part.strip())) is not None]
    rates = [rate for rate in value.values() if isinstance(rate, int | float) and not isinstance(rate, bool)]
    spans = [(int(match["end"]) - int(match["start"])) % 24 for match in hours]
    if not len(value) == len(hours) == len(rates) or sum(spans) != 24:
        return None
    mean = sum(rate * span for rate, span in zip(rates, spans, strict=True)) / sum(spans)
    return f"{max(rates)} at peak, {mean:.6g} on average over the day"


def labelled_figure(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """`{"metric": "TTFT p99", "value": 2, "unit": "s"}` as a label and words; `None` where it is not such an object."""
    plain = {key_words(k): v for k, v in value.items() if isinstance(v, str | int | float) and not isinstance(v, bool)}
    if len(plain) != len(value):
        return None
    label_key = next((k for k in _LABEL_KEYS if k in plain and not mentions(str(plain[k]))), None)
    figure_key, match = next(((k, match) for k in plain if (match := _FIGURE_KEY.fullmatch(k))), (None, None))
    if figure_key is None or match is None or len(plain) > 6:
        return None
    unit = next((unit_words(str(plain[k])) for k in UNIT_KEYS if k in plain), match["unit"] or "")
    others = plain.keys() - {label_key, figure_key, *UNIT_KEYS}
    remarks = [percentile_text(k, plain[k]) for k in plain if k in others]
    # Without a label it is a time or has a statistic, and nothing that does not qualify it.
    is_limit = unit or _TIME.match(str(plain[figure_key])) or any(map(STATISTIC.fullmatch, remarks))
    if label_key is None and not (is_limit and all(map(QUALIFIER.fullmatch, others))):
        return None
    text = " ".join(part for part in (str(plain[figure_key]), unit) if part)
    return (str(plain[label_key]) if label_key else "", f"{text} {', '.join(remarks)}".strip())


def figure_in(items: list[Any]) -> str | None:
    """`[15, "s", "p90"]` as words: a figure with its statistic and what else qualifies it; `None` for other lists."""
    words = [str(item).strip() for item in items if isinstance(item, str | int | float) and not isinstance(item, bool)]
    statistics = [word for word in words if STATISTIC.fullmatch(word)]
    others = [word for word in words if word not in statistics and not _BESIDE_FIGURE.fullmatch(word)]
    is_figure = len(statistics) == len(others) == 1 and len(words) == len(items) and _BEGINS_FIGURE.match(others[0])
    return " ".join(words) if is_figure else None
