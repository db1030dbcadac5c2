"""Which of several figures for one quantity words choose to plan with: "size for the average", "plan with the p90"."""

from __future__ import annotations

import re
from typing import Literal

from .gated import Gated
from .load_lexicon import PEAK
from .page import Page

Choice = float | Literal["peak", "usual"]
_PERCENTILE = (
    r"(?:p\s?-?\d{1,2}(?:\.\d)?|\d{1,2}(?:th|st|nd|rd)(?:\spercentile)?|median|mean|average|peak|maximum|max|worst\scase|"
    r"longest|usual|typical|normal|off[\s\-]peak)"
)
_PLAN = (
    r"(?:plan(?:ned|ning)?|siz(?:e|ed|ing)|dimension(?:ed|ing)?|design(?:ed)?|budget|provision|calculat(?:e|ed|ing)|reckon|"
    r"comput(?:e|ed)|work(?:ed|ing)?|go|stick|count|us(?:e|ed|ing)|tak(?:e|en|ing)|assum(?:e|ed|ing)|bas(?:e|ed))"
)
_CHOICE = Gated(
    rf"(?<![a-z]){_PLAN}\s(?:(?:it|this|that|them|everything|the\s(?:plan|size|sizing|system|cluster))\s)?(?:(?:for|with|by|on|around|at|against|to|from)\s)?"
    rf"(?:(?:the|its|our|their|that|a|an)\s)?(?P<what>{_PERCENTILE})(?![a-z\d])"
    r"(?!\s?(?:ttft|tpot|itl|latency|of\s(?:the\s)?(?:ttft|tpot|latency)|(?:<|below|under)))|"
    rf"(?<![a-z])(?:the|our|that)\s(?P<that>{_PERCENTILE})\s(?:load\s|figure\s|value\s|number\s)?(?:is|it\sis|'s)\s(?:what|the\sone)\s"
    r"(?:(?:that|we|i|to|should|you)\s){0,2}(?:counts?|matters?|plan|size|want|care|decides?|go)(?![a-z])|"
    rf"(?<![a-z])(?:the|our)\s(?P<basis>{_PERCENTILE})\sas\s(?:the|an?|our)\s(?:basis|base|reference|yardstick|planning|figure)(?![a-z])|"
    r"(?:hold|survive|withstand|cope|keep\sup|work)\s(?:up\s)?(?:at|in|under|during|with)\s(?:the\s|its\s|that\s)?(?P<held>peak)(?:\s(?:load|hour|rate|traffic))?(?![a-z])|"
    r"(?:按照?|以|用)\s?(?P<cn>p\s?\d{2}|峰值|高峰|平均值?|均值|平时|中位数|最大值?)(?:来|去)?(?:的)?(?:规划|估算|计算|设计|配置|配|算|定|为准)",
)
_FIGURE = re.compile(r"\d{1,2}(?:\.\d)?")


def chosen(page: Page) -> Choice | None:
    """The percentile or kind of figure that words choose; `None` where they choose none, or several."""
    choices: set[Choice] = {
        _kind(match["what"] or match["that"] or match["basis"] or match["held"] or match["cn"])
        for match in _CHOICE.finditer(page.original)
        if not page.is_negated(*match.span())
    }
    return choices.pop() if len(choices) == 1 else None


def take_choice(page: Page) -> None:
    """Take the words of a choice that was followed off the page."""
    page.take_all(_CHOICE)


def _kind(words: str) -> Choice:
    if figure := _FIGURE.search(words):
        return float(figure.group())
    if words.lower() in ("median", "中位数"):
        return 50.0
    return "peak" if PEAK.search(words) else "usual"
