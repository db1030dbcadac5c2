"""Growth of a load before it is planned for: "plus 20% for growth", "a quarter more requests", "再加 20% 余量"."""

from __future__ import annotations

import math
import re

from .claims import Claims
from .gated import Gated
from .page import Page
from .quantities import read_share

_LOAD = r"(?:requests?|traffic|load|users?|calls?|volume|quer(?:y|ies)|chats?|sessions?|tickets?)(?![a-z])"
_GROWTH = Gated(
    r"(?:(?<![a-z])(?:plus|add(?:ing)?|with|including|incl\.?|plan\sfor|expect(?:s|ed|ing)?)|\+)\s?(?:another\s|about\s|some\s){0,2}(?P<a>\d{1,3}(?:\.\d)?)\s?%\s"
    r"(?:(?:for|of|as)\s)?(?:(?:the\s|future\s|expected\s|a\s)*(?:growth|safety|reserve|margin)|more)(?![a-z])|"
    r"(?:(?<![a-z])(?:put|add|and)\s)?(?<![\d.])(?P<b>\d{1,3}(?:\.\d)?)\s?%\son\stop(?:\sof\s(?:that|it|the\s[a-z]{3,12}(?:\sfigures?)?))?(?:\sfor\s(?:growth|safety|reserve))?(?![a-z])|"
    rf"(?<![\w.])(?P<c>\d{{1,3}}(?:\.\d)?\s?%|a\squarter|a\sthird|a\sfifth|a\stenth)\smore\s{_LOAD}|(?<![a-z])(?P<d>half)\sas\s(?:many|much)\s(?:{_LOAD})?\s?again|"
    r"(?:再|另外?|还要|多)?(?:加|预留|多留|考虑|按|留)\s?(?P<e>\d{1,3}(?:\.\d)?)\s?%\s?的?(?:增长|余量|冗余|富余|增量|涨幅)",
)
_MEMORY = re.compile(r"显存|内存|memory|vram|hbm", re.IGNORECASE)


def settle_growth(page: Page, claims: Claims) -> None:
    """Raise the load by its stated growth, where exactly one load is stated."""
    loads = [name for name in ("request_rate", "concurrency") if claims.has(name)]
    for match in page.search(_GROWTH):
        if len(loads) != 1 or _MEMORY.search(page.clause_text(*match.span())):
            continue
        amount = next(filter(None, match.groups()))
        factor = 1 + (read_share(amount if match["c"] or match["d"] else f"{amount}%") or 0.0)
        before, words = claims.values[loads[0]], claims.words[loads[0]]
        value = before * factor if loads[0] == "request_rate" else math.ceil(before * factor - 1e-9)
        more = page.take(*match.span())
        claims.replace(loads[0], value, f"{words}, {more}")
        unit = "requests/s" if loads[0] == "request_rate" else "served at once"
        claims.reading(f"{more!r} on top of {words!r} read as {value:.4g} {unit}")
