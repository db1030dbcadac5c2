"""The serving engine that a request names, and the price of a GPU hour."""

from __future__ import annotations

import re

from .claims import Claims
from .page import Page
from .quantities import find_quantities

_ENGINES: dict[str, str] = {
    "vllm": r"v[\s\-]?llm",
    "sglang": r"sg[\s\-]?lang",
    "trtllm": r"tensorrt[\s\-]?llm|trt[\s\-]?llm|tensorrt",
    "dynamo": r"(?:nvidia\s)?dynamo",
}
_ENGINE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _ENGINES.items())
    + r")(?![A-Za-z])",
    re.IGNORECASE,
)
_HOUR = re.compile(
    r"^\s?(?:/|per|an?|each|every)?\s?(?:(?P<gpu>gpu|card|accelerator|device|卡)[\s\-]?)?(?:/|per|an|a)?\s?(?:hour|hr|h)(?![a-z])|^\s?(?:/|每)?\s?(?P<gpu2>卡)?\s?(?:小?时|钟头)",
    re.IGNORECASE,
)
_PER_NODE_AFTER = re.compile(
    r"^.{0,30}?(?:per|each|/|a)\s?(?:node|machine|server|box|instance)|^.{0,12}?每台", re.IGNORECASE
)


def read_engine(page: Page, claims: Claims) -> None:
    """Read the serving engine that the plan is meant for."""
    for match in page.search(_ENGINE):
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        claims.claim("engine", str(match.lastgroup), page.take(*match.span()))


def read_price(page: Page, claims: Claims) -> None:
    """Read the price of one GPU hour in USD; prices of anything else stay on the page."""
    for quantity in find_quantities(page.text):
        if quantity.unit != "usd":
            continue
        after = page.text[quantity.end : quantity.end + 40]
        hour = _HOUR.match(after)
        before = page.text[max(0, quantity.start - 16) : quantity.start]
        if hour is None and not re.search(
            r"每?(?:卡时|小时|卡每小时|卡)\s?$|(?:gpu[\s\-]?hour|per\shour)\W{0,3}$", before, re.IGNORECASE
        ):
            continue
        end = quantity.end + (hour.end() if hour else 0)
        if _PER_NODE_AFTER.match(page.text[end : end + 30]) and "gpu" not in after[: hour.end() if hour else 0].lower():
            continue
        claims.claim("usd_per_gpu_hour", quantity.decimal_value, page.take(quantity.start, end))
