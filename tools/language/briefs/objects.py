"""Objects that a structured brief states as one thing: a range, a figure with its metric, layouts to be weighed.

{"min": 512, "max": 8192}, {"metric": "ttft", "max_s": 3}, {"candidates": [{"tp": 8}, {"tp": 4, "replicas": 2}]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...catalog.hardware import mentions
from ...input.shapes import is_object
from ..patterns.gated import Gated
from .key_words import key_words
from .keys import DEGREE, GPU_KEY, MACHINE_TYPE, MACHINES, OF_EACH, names_full_machine, rules_out

_RANGE_KEYS = {
    "min": "low", "minimum": "low", "from": "low", "low": "low", "lower": "low", "shortest": "low", "最小": "low",
    "max": "high", "maximum": "high", "to": "high", "high": "high", "upper": "high", "longest": "high", "最大": "high",
    "typical": "typical", "typ": "typical", "avg": "typical", "average": "typical", "mean": "typical",
    "median": "typical", "p50": "typical", "usual": "typical", "典型": "typical", "平均": "typical",
}  # fmt: skip
# Keys beside a figure in its object that qualify it.
QUALIFIER = Gated(
    r"direction(?:ality)?|duplex|p|pct|percentile|quantile|statistic|stat|方向|分位数?|(?:统计)?口径|"
    r"(?:(?:all|both|each|limits?)(?: are)? )?(?:(?:measured|taken|counted|evaluated|stated|given) (?:at|as|by)|at)"
)
# What is counted in no unit that its object states for lengths or times.
OF_NO_UNIT = Gated(r"(?:^| )(?:concurren\w*|requests?|calls|users|sessions?|turns)(?: |$)|并发|请求|人数|轮")
# "ttft_percentile" beside "ttft_ms".
_QUALIFIER_OF = re.compile(r"(.+?) ?(?:percentile|pctl?|quantile|statistic|stat|分位数?|(?:统计)?口径|统计)")
_LABEL_KEYS = (
    "metric",
    "name",
    "kind",
    "key",
    "parameter",
    "item",
    "field",
    "sli",
    "slo",
    "kpi",
    "indicator",
    "指标",
    "名称",
)
_FIGURE_KEY = Gated(
    r"(?:(?:value|target|limit|max(?:imum)?|threshold|min(?:imum)?|amount|取?值|目标|上限)(?: |$)|(?=ms|milli|s))"
    r"(?P<unit>ms|milliseconds?|s|sec|seconds?|毫?秒)?"
)
_QUANTILE = re.compile(r"p|pct|quantile|percentile|分位数?")
_HOURS_KEY = re.compile(
    r"(?P<start>\d{1,2})(?::00)?\s?(?:h\s?)?(?:-|–|to|~|至|到)\s?(?P<end>\d{1,2})(?::00)?\s?(?:h|点|时)?"
)
_OF_LOAD = Gated(r"rps|qps|rates?|requests?|traffic|load|curve|profile|concurren\w*|流量|请求|负载|曲线|并发")
UNIT_KEYS = ("unit", "units", "单位")
# Layouts that are listed to be weighed: {"candidates": [{"tp": 8}, {"tp": 4, "replicas": 2}]}.
_WEIGHED = Gated(
    r"(?:(?:decide|choose|pick|select) )?(?:between|among)|(?:to )?compare[ds]?|comparisons?|options?|"
    r"对比|比较|(?:候选|备选)(?:方案|布局)?|"
    r"(?:candidate )?(?:candidates?|layouts?|strateg(?:y|ies)|parallelisms?|variants?|configurations?)"
    r"(?: (?:to )?(?:compare|judge|try|weigh|choose from))?"
)
_DEGREE_OF_LAYOUT = Gated(rf"{DEGREE.pattern}|replicas?|(?:attention|attn) (?:dp|data parallel\w*)(?: size)?")
_LABEL_OF_LAYOUT = Gated(r"name|label|id|key|note|comment|名称|编号|备注")

# A list of number formats, of kinds of cards or of engines is a choice between them.
_CHOICE_LIST = Gated(
    r"(?:\w+ )?(?:precisions?|quanti[sz]ations?|(?:d|data ?)types?|number formats?|(?:weights?|kv cache|activations?) "
    r"(?:precisions?|d?types?|formats?)|gpu|card|accelerator|engines?|runtimes?|(?:gpu|card|accelerator) "
    r"(?:types?|kinds?|models?|options?|choices?)|(?:any|one|either) of|cho(?:ose|ice) (?:from|of)|select from|"
    r"(?:allowed|possible|acceptable) "
    r"(?:gpus?|cards?|accelerators?|kinds?|types?|models?)|pick (?:one|any)(?: of)?)|精度|量化|卡型|显卡型号"
)
# A list of offers to choose from, each with its cards and number of nodes.
_OFFERS = Gated(r"(?:.* )?(?:options?|choices?|alternatives?|candidates?|offers?|quotes?)|.*(?:方案|候选|备选|选项)")
_NODES_OF_OFFER = Gated(r"(?:max(?:imum)? |available )?(?:nodes?|servers?|machines?)(?: count)?|(?:最大)?(?:节点|台)数")
IDENTITY = r"(?:.* )?(?:id|index|rank|ip|hostname|host|name|uuid|serial|rack|zone|address|no)"


def percentile_text(key: str, value: Any) -> str:
    """A qualifier of a figure in words: a quantile of 0.95 or 95 is p95."""
    if not isinstance(value, int | float) or not _QUANTILE.fullmatch(key):
        return f"{value}"
    return f"p{round(value * 100, 6) if value < 1 else value:g}"


class CommonFacts(Struct, frozen=True):
    """What an object says of all its figures: what its counts count, their unit, and the qualifier with its `keys`."""

    counted: str
    unit: str
    qualifier: str
    keys: tuple[str, ...]


def common_facts(parent: str, value: Mapping[str, Any]) -> CommonFacts:
    """What an object under the key `parent` says of all its figures."""
    named = [(key, key_words(key), item) for key, item in value.items()]
    texts = [words for _, words, item in named if isinstance(item, str)]
    of_each = [words for _, words, _ in named if OF_EACH.fullmatch(words)]
    counts_both = any(
        MACHINES.fullmatch(words) and isinstance(item, int) and words not in of_each for _, words, item in named
    )
    is_of_machines = (
        (of_each and not counts_both)
        or any(map(MACHINE_TYPE.fullmatch, texts))
        or MACHINES.fullmatch(parent)
        or any(names_full_machine(item) for _, _, item in named)
    )
    names_card = GPU_KEY.fullmatch(parent) or any(map(GPU_KEY.fullmatch, texts))
    qualifying = [entry for entry in named if QUALIFIER.fullmatch(entry[1]) and isinstance(entry[2], str | int | float)]
    qualifier = ", ".join(percentile_text(words, item) for _, words, item in qualifying)
    return CommonFacts(
        counted="node" if is_of_machines else "gpu" if names_card else "",
        unit=next(
            (f" {unit_words(item)}" for _, words, item in named if words in UNIT_KEYS and isinstance(item, str)), ""
        ),
        qualifier=f" ({qualifier})" if qualifier else "",
        keys=tuple(key for key, _, _ in qualifying),
    )


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
    label_key = next((k for k in _LABEL_KEYS if k in plain), None)
    figure_key = next((k for k in plain if _FIGURE_KEY.fullmatch(k)), None)
    unit = next((unit_words(str(plain[k])) for k in UNIT_KEYS if k in plain), "")
    match = None if figure_key is None else _FIGURE_KEY.fullmatch(figure_key)
    unit = unit or (match["unit"] if match else None) or ""
    used = {label_key, figure_key, *UNIT_KEYS}
    # Without a label or a unit of its own it is one figure with what qualifies it, or several.
    is_one = (
        label_key is not None
        or used & plain.keys() > {figure_key}
        or all(k in used or QUALIFIER.fullmatch(k) for k in plain)
    )
    if figure_key is None or (label_key is None and not unit) or not is_one or len(plain) > 6:
        return None
    remarks = ", ".join(percentile_text(k, v) for k, v in plain.items() if k not in used)
    text = " ".join(part for part in (str(plain[figure_key]), unit) if part)
    return (str(plain[label_key]) if label_key else "", f"{text} {remarks}".strip())


def weighed_layouts(key: str, items: list[Any]) -> str | None:
    """The words that weigh the layouts in a list under `key`, in plain words; `None` where it is no list of layouts."""
    if len(items) < 2 or not _WEIGHED.fullmatch(key):
        return None
    layouts = [item if isinstance(item, str) else _layout(item) for item in items]
    return f"compare {' or '.join(filter(None, layouts))}" if all(layouts) else None


def _layout(item: Any) -> str | None:
    """The degrees of a layout as words; `None` where it has something else than whole degrees and labels."""
    degrees = {key_words(name): value for name, value in item.items()} if is_object(item) else {}
    degrees = {name: value for name, value in degrees.items() if not _LABEL_OF_LAYOUT.fullmatch(name)}
    if not all(_DEGREE_OF_LAYOUT.fullmatch(name) and isinstance(value, int) for name, value in degrees.items()):
        return None
    return " ".join(f"{name} {value}" for name, value in degrees.items()) or None


def offered_hardware(key: str, items: list[Any]) -> dict[str, str] | None:
    """A list of hardware offers as a choice, and by its key what each says beside it; `None` where it is none."""
    if len(items) < 2 or not _OFFERS.fullmatch(key):
        return None
    offers: list[str] = []
    others: dict[str, list[str]] = {}
    for item in items:
        plain = {key_words(k): v for k, v in item.items()} if is_object(item) else {}
        card = next((v for k, v in plain.items() if GPU_KEY.fullmatch(k) and isinstance(v, str)), None)
        counts = (
            next((v for k, v in plain.items() if pattern.fullmatch(k)), None) for pattern in (_NODES_OF_OFFER, OF_EACH)
        )
        nodes, each = counts
        if card is None or not all(isinstance(n, int) for n in (nodes, each)):
            return None
        offers.append(f"{nodes} nodes with {each}x {card}")
        for name, value in plain.items():
            if value not in (card, nodes, each) and not re.fullmatch(IDENTITY, name):
                others.setdefault(name, []).append(f"{value} ({card})")
    return {"": " or ".join(offers), **{name: ", ".join(values) for name, values in others.items()}}


def is_choice(key: str, items: list[str]) -> bool:
    """Whether a list of words is a choice: by its key, or as a list of cards that its key does not rule out."""
    if _CHOICE_LIST.fullmatch(key):
        return True
    named = [mentions(item) for item in items]
    return all(len(cards) == 1 and cards[0].accelerator for cards in named) and not rules_out(key)


def are_kinds(items: list[Any]) -> bool:
    """Whether a list names different kinds of cards to choose from, not the cards themselves."""
    return all(isinstance(item, str) for item in items) and len({str(item).lower() for item in items}) == len(items)
