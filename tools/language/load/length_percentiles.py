"""Lengths by percentiles, where each figure has its own: "prompts p50 1k, p95 8k", "mean input 2k, p99 9k"."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Literal

from pydantic import ValidationError

from ...plan.lengths import RequestLengths
from ..conflicts.claims import Claims
from ..lexicons.load import PEAK
from ..patterns.gated import Gated
from ..patterns.page import Page
from .context import Statement

PERCENTILE = Gated(
    r"(?<![A-Za-z0-9])p\s?-?(?P<p>\d{1,2}(?:\.\d{1,3})?)(?![\d.]*\d)|(?P<nth>\d{1,2})\s?th(?:\spercentile)?(?![a-z])"
    r"|(?P<cn>\d{1,2})\s?百?分位(?:数|值)?|(?P<median>(?<![a-z])median(?![a-z])|中位(?:数|值)?)",
)
_MEAN = Gated(r"(?<![a-z])(?:mean|average[sd]?|averaging|avg|on\saverage)(?![a-z])|平均|均值")
# What ends the words of a figure.
_ENDS = Gated(r"[,;。\n(、，；]|\.(?!\d)|(?<![a-z])and(?![a-z])")
_MOST_BETWEEN = 30
# Which of several figures words choose to plan with: "size for the average", "plan with the p90".
Choice = float | Literal["peak", "usual"]
_KIND_OF_FIGURE = (
    r"(?:p\s?-?\d{1,2}(?:\.\d)?|\d{1,2}(?:th|st|nd|rd)(?:\spercentile)?|median|mean|average|peak|maximum|max|worst\scase|"
    r"longest|usual|typical|normal|off[\s\-]peak)"
)
_PLAN = (
    r"(?:plan(?:ned|ning)?|siz(?:e|ed|ing)|dimension(?:ed|ing)?|design(?:ed)?|budget|provision|calculat(?:e|ed|ing)|reckon|"
    r"comput(?:e|ed)|work(?:ed|ing)?|go|stick|count|us(?:e|ed|ing)|tak(?:e|en|ing)|assum(?:e|ed|ing)|bas(?:e|ed))"
)
_CHOICE = Gated(
    rf"(?<![a-z]){_PLAN}\s(?:(?:it|this|that|them|everything|the\s(?:plan|size|sizing|system|cluster))\s)?(?:(?:for|with|by|on|around|at|against|to|from)\s)?"
    rf"(?:(?:the|its|our|their|that|a|an)\s)?(?P<what>{_KIND_OF_FIGURE})(?![a-z\d])"
    r"(?!\s?(?:ttft|tpot|itl|latency|of\s(?:the\s)?(?:ttft|tpot|latency)|(?:<|below|under)))|"
    rf"(?<![a-z])(?:the|our|that)\s(?P<that>{_KIND_OF_FIGURE})\s(?:load\s|figure\s|value\s|number\s)?(?:is|it\sis|'s)\s(?:what|the\sone)\s"
    r"(?:(?:that|we|i|to|should|you)\s){0,2}(?:counts?|matters?|plan|size|want|care|decides?|go)(?![a-z])|"
    rf"(?<![a-z])(?:the|our)\s(?P<basis>{_KIND_OF_FIGURE})\sas\s(?:the|an?|our)\s(?:basis|base|reference|yardstick|planning|figure)(?![a-z])|"
    r"(?:hold|survive|withstand|cope|keep\sup|work)\s(?:up\s)?(?:at|in|under|during|with)\s(?:the\s|its\s|that\s)?(?P<held>peak)(?:\s(?:load|hour|rate|traffic))?(?![a-z])|"
    r"(?:按照?|以|用)\s?(?P<cn>p\s?\d{2}|峰值|高峰|平均值?|均值|平时|中位数|最大值?)(?:来|去)?(?:的)?(?:规划|估算|计算|设计|配置|配|算|定|为准)",
)
_FIGURE = re.compile(r"\d{1,2}(?:\.\d)?")


def claim_percentiles(page: Page, claims: Claims, side: str, statements: Sequence[Statement]) -> bool:
    """Claim `statements` of a side's lengths as percentiles, where each names another; returns whether it did.

    Where words choose one of them to plan with, every request has that length.
    """
    points = {_percent(page, statements, statement): int(statement.quantity.value) for statement in statements}
    if len(points) < 2 or len(points) < len({statement.quantity for statement in statements}):
        return False
    mean = points.pop(None, None)
    if mean is not None and not _is_mean(page, statements, mean):
        return False
    if mean is not None and len(points) == 1:
        return _claim_fit(page, claims, side, statements, mean, points)
    choice = chosen(page)
    if (tokens := points.get(choice if isinstance(choice, float) else None)) is not None:
        words = ", ".join(page.take(statement.quantity.start, statement.quantity.end) for statement in statements)
        claims.claim(f"{side}_tokens", tokens, words)
        claims.reading(f"{words!r}: every {side} is planned for as the p{choice:g} of {tokens:,} tokens, as was chosen")
        return True
    if isinstance(choice, float):
        claims.leave_unread(f"p{choice:g} is chosen to plan with, and no p{choice:g} of the {side} is stated")
    known: RequestLengths | None = claims.values.get("lengths")
    rising = sorted((percent, tokens) for percent, tokens in points.items() if percent is not None)
    stated: dict[str, Any] = {} if known is None else known.model_dump(exclude_none=True)
    try:
        lengths = RequestLengths.model_validate({**stated, side: {"percentiles": rising}})
    except ValidationError:
        return False
    words = ", ".join(page.take(statement.quantity.start, statement.quantity.end) for statement in statements)
    claims.replace("lengths", lengths, words if known is None else f"{claims.words['lengths']}; {words}")
    listed = ", ".join(f"p{percent:g} {tokens:,}" for percent, tokens in rising)
    claims.reading(f"{words!r} read as percentiles of the {side}: {listed}, log-normal between and beyond them")
    if mean is not None:
        claims.reading(f"the mean {side} of {mean:,} tokens is not used beside them: percentiles have their own")
    return True


def _claim_fit(
    page: Page, claims: Claims, side: str, statements: Sequence[Statement], mean: int, points: dict[float | None, int]
) -> bool:
    """Claim the log-normal lengths that have a mean and one percentile; returns whether there are any.

    mean = median * exp(sigma^2 / 2) and tokens = median * exp(z * sigma); the lesser sigma is taken. None has a
    percentile above mean * exp(z^2 / 2): then the one of that mean with the longest tail is claimed.
    """
    ((percent, tokens),) = points.items()
    if percent == 50.0 and mean > tokens:
        z, root, sigma = 0.0, 0.0, math.sqrt(2.0 * math.log(mean / tokens))
    elif percent and 50.0 < percent < 100.0 and tokens > mean:
        z = NormalDist().inv_cdf(percent / 100.0)
        root = z * z - 2.0 * math.log(tokens / mean)
        sigma = z - math.sqrt(max(0.0, root))
    else:
        return False
    median = round(mean * math.exp(-sigma * sigma / 2.0))
    known: RequestLengths | None = claims.values.get("lengths")
    stated: dict[str, Any] = {} if known is None else known.model_dump(exclude_none=True)
    fit = {"log_normal": {"median_tokens": median, "sigma": round(sigma, 4)}}
    lengths = RequestLengths.model_validate({**stated, side: fit})
    words = ", ".join(page.take(statement.quantity.start, statement.quantity.end) for statement in statements)
    claims.replace("lengths", lengths, words if known is None else f"{claims.words['lengths']}; {words}")
    claims.claim(f"{side}_tokens", mean, words)
    reached = round(median * math.exp(z * sigma)) if root < 0.0 else tokens
    most = f", the most that any with that mean has, not {tokens:,}" if root < 0.0 else ""
    figures = f"a mean of {mean:,} tokens and a p{percent:g} of {reached:,}{most}"
    claims.reading(f"{words!r} read as log-normal lengths of the {side} with {figures}")
    return True


def _is_mean(page: Page, statements: Sequence[Statement], mean: int) -> bool:
    """Whether the figure without a percentile is called the mean."""
    of_mean = [statement for statement in statements if statement.quantity.value == mean]
    return all(_MEAN.search(" ".join(_beside(page, statements, statement))) for statement in of_mean)


def _beside(page: Page, statements: Sequence[Statement], statement: Statement) -> tuple[str, str]:
    """The words before a figure, back to the figure before it, and those behind it, on to the next."""
    start, end = statement.quantity.start, statement.quantity.end
    before = max((other.quantity.end for other in statements if other.quantity.end <= start), default=0)
    after = min(
        (other.quantity.start for other in statements if other.quantity.start >= end), default=len(page.original)
    )
    ahead = _ENDS.split(page.original[max(before, start - _MOST_BETWEEN) : start])[-1]
    behind = _ENDS.split(page.original[end : min(after, end + _MOST_BETWEEN)])[0]
    return ahead, behind


def _percent(page: Page, statements: Sequence[Statement], statement: Statement) -> float | None:
    """The percentile that the words before a figure name, or else those behind it."""
    ahead, behind = _beside(page, statements, statement)
    named = list(PERCENTILE.finditer(ahead))[-1:] or list(PERCENTILE.finditer(behind))[:1]
    if not named:
        return None
    return 50.0 if named[0]["median"] else float(named[0]["p"] or named[0]["nth"] or named[0]["cn"])


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
