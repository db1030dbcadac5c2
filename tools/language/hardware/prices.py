"""What hardware costs by the hour: the price of a GPU or a node, and the budget for all of them.

Money for some time is a price only where a GPU, a card's name or "each" bears on it, and a budget where its words say
so; other money is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ...plan.constraints import BudgetConstraint, chosen_kinds
from ..conflicts.claims import Claims
from ..constraints.words import add_constraints
from ..lexicons.reserved import NODE, cues
from ..patterns.gated import Gated
from ..patterns.page import BOX, CARD, SENTENCE_END, Page
from ..patterns.quantities import Quantity, find_quantities

# The time that a price is for, behind it or before it.
_TIME = r"(?P<{0}>hour|hr|h|day|week|month|mo|year|yr)"
_TIME_AFTER = Gated(
    r"^\s?(?:/|per|an?|each|every)?\s?(?:(?P<gpu>gpu|card|accelerator|device|卡|[\ue001]+s?)(?:\sand\s|[\s\-])?|(?:node|server|machine|instance|box|vm)[\s\-]?)?(?:/|per|an|a)?\s?"
    rf"{_TIME.format('time')}(?![a-z])|^\s?(?:/|每)?\s?(?P<gpu2>卡)?\s?(?P<time2>小?时|钟头|天|周|月|年)",
)
_TIME_BEFORE = Gated(
    r"每?(?:卡时|小时|卡每小时|卡)[^\d,;。\n]{0,4}?(?:最多|不(?:能|可|得|要)?超过|上限|约|大约|控制在)?\s?$|(?:gpu[\s\-]?hour|per\shour)\W{0,3}$|hourly[^\d.;\n]{0,50}$|"
    r"(?<![a-z])(?P<time>dai|week|month|year|annual)ly[^\d.;\n]{0,50}$|"
    rf"(?<![a-z])per\s{_TIME.format('time2')}\W{{0,3}}$|每(?P<time3>[天周月年])[^\d.;。\n]{{0,20}}$",
)
# By the first letters of each; a month is a twelfth of a year.
_HOURS_OF = {"h": 1, "小": 1, "时": 1, "钟": 1, "d": 24, "天": 24, "w": 168, "周": 168, "m": 730, "月": 730,
             "y": 8760, "a": 8760, "年": 8760}  # fmt: skip
_PRICE_KEY = Gated(r"(?:usd|dollars?|\$|price|cost)[\s/]{1,2}(?:per\s|of\sa\s|a\s)?gpu[\s\-]?hour\s?[:=]\s?$")
# A budget per hour for all, and a price per card.
_BUDGET = cues(
    r"budget|cap(?:s|ped)?|ceiling|at\smost|max(?:imum|imal)?|(?:go|run|come|be)\s(?:over|above|beyond)|no\smore\sthan|not\s(?:(?:a\scent|to|go|be|come)\s){0,2}(?:above|over|more|exceed)|exceed|under|below|up\sto|limit(?:s|ed)?|"
    r"to\s(?:burn|spend|use|invest|play\swith)|on\s(?:gpus|cards|hardware|compute|servers)|altogether|in\s(?:all|total)|total|all[\s\-]in|for\s(?:the\slot|everything|all)|overall|spend|stay\s(?:at|within)|whole\sthing|entire",
    "预算|最多|不(?:能|可|得|要)?超过|以内|上限|一共|总共|合计|整[套个]|全部|控制在",
)
_EACH_CARD = cues(
    r"each|apiece|per\s(?:gpu|card|h\d{2,3}|a\d{2,3})|a\s(?:gpu|card)|gpu[\s\-]?hours?", "单卡|每[张块]?卡|卡时|一张"
)
# Money that somebody has or was given: a budget where no card is named beside it.
_GIVEN = cues(
    r"ha(?:s|ve|d)|got|gets?|gives?|given|gave|grant(?:s|ed)?|approve[sd]?|sign(?:s|ed)(?:\soff)?|allow(?:s|ed)?|available|offers?|set\sus|afford",
    "只有|只给|给了?|批了?|有|能花|可以花|可花",
)
# A clause of nothing but the price: it is of the card that was named before.
_BARE_PRICE = Gated(
    r"(?:[\s,:;=@()|*#-]|[\ue000-\ue006]|(?:at|for|is|are|which|that|they|these|those|the|a|an|our|its?|price|priced|rate|hourly|rent(?:ed|al)?|cost|list|spot|on[\s\-]demand|reserved|about|around|ca|currently|now|roughly|approx\w*|usd|租价|租金|单价|价格|约|大约|现价|每小?时)(?![a-z]))*",
)
# What a list says is not what is paid.
_LISTED = cues(
    r"list(?:ed)?|catalogu?e|msrp|rrp|official|retail|on[\s\-]demand|street|nominal|before\sdiscount",
    "目录价|刊例价?|标价|原价|挂牌价?|列表价|官网价?|公开价",
)
_PAID = cues(
    r"(?:we|i|they|he|she|you|customer|client)\s(?:only\s|actually\s)?(?:pay|paid|get|got|give|gave|sell|offer|charge)|"
    r"(?:our|contract|negotiated|discounted|actual|effective|net|final|agreed)(?:\s(?:price|rate))?",
    "我们?(?:拿到|付|给|谈到|实付|按)|实付|折后|合同价?|成交价?|到手价?|优惠价?|谈(?:到|下来)",
)
_CARD_BEFORE = re.compile(r"(?:单|每张?|一张)卡(?:约|大约)?\s?$")
# What a price belongs to: "4 x p5.48xlarge at $55/hour each", "8 H100 at $2.5/h each".
_PRICED_THING = Gated(rf"(?P<card>{CARD}+|(?<![a-z])(?:gpus?|cards?)(?![a-z])|卡)|{BOX}+|(?<![a-z])(?:{NODE})(?![a-z])")
_MOST_TO_PRICED = 60  # characters
_PER_NODE_AFTER = Gated(r"^.{0,30}?(?:per|each|/|a)\s?(?:node|machine|server|box|instance)|^.{0,12}?每台")

_ENDS = re.compile(r"\s?(?:[,;:.)(\n]|\Z|(?:per|each|a|an|instead|now)\b|/|每)")
_LIST_PRICE, _NO_CURRENCY = "is a list price", "names no currency"
_LEAST_PAID = 0.2  # of the list price
_ALIKE = 2.0  # times: two prices of the same thing


class _Timed(Struct, frozen=True):
    """Money for some time: the end of its words, the hours that it pays for, whether it or its key names a GPU."""

    end: int
    hours: int
    of_card: bool
    is_keyed: bool


class _Price(Struct, frozen=True):
    usd: float
    field: str
    words: str
    lacks: str = ""  # why it gives way to another


def read_price(page: Page, claims: Claims) -> None:
    """Read the price of a GPU hour in USD and the budget per hour for all; other prices stay on the page."""
    prices: list[_Price] = []
    quantities = find_quantities(page.text)
    money = [quantity for quantity in quantities if quantity.unit == "usd"]
    for quantity in quantities:
        if (timed := _timed(page, quantity)) is None:
            continue
        clause = _words_around(page, quantity, money)
        kind = _kind_of(page, quantity, timed, clause)
        if kind is None or (kind == "open" and timed.hours > 1):
            continue  # "the two cards cost us $50 a day"
        card = _CARD_BEFORE.search(page.text[max(0, quantity.start - 8) : quantity.start])
        words = page.take(quantity.start - (len(card.group()) if card else 0), timed.end)
        usd = round(quantity.decimal_value / timed.hours, 4)
        if timed.hours > 1:
            claims.reading(f"{words!r} read as ${usd:g} an hour, of {timed.hours} hours without a break")
        if kind == "budget":
            add_constraints(claims, [BudgetConstraint(kind="usd_per_hour", value=usd, words=clause.strip()[:500])])
        else:
            no_currency = _NO_CURRENCY if quantity.unit != "usd" and not timed.is_keyed else ""
            prices.append(_Price(usd, kind, words, _LIST_PRICE if _LISTED.search(clause) else no_currency))
            prices += _paid_instead(page, quantity, prices[-1])
    _claim_price(claims, prices)


def _claim_price(claims: Claims, prices: Sequence[_Price]) -> None:
    """Claim the only price, or the only one that counts in full; else list all of them."""
    unclear = [price for price in prices if price.field == "open"]
    prices = [price for price in prices if price not in unclear]
    for price in unclear:
        claims.leave_unread(f"{price.words!r}: say whether that is the price of each GPU or what all of them may cost")
    full = [price for price in prices if not price.lacks]
    meant = full if len({(price.usd, price.field) for price in full}) == 1 else prices
    is_one = len({(price.usd, price.field) for price in meant}) == 1
    # "$2.10/h at vendor A and $2.30/h at vendor B"
    is_one = is_one and not any(1 / _ALIKE < price.usd / meant[0].usd < _ALIKE for price in unclear if meant[0].usd)
    if is_one and len(chosen_kinds(claims.values.get("constraints", ()))) < 2:
        claims.claim(meant[0].field, meant[0].usd, meant[0].words)
        for price in prices:
            if price not in meant:
                claims.reading(f"{price.words!r} {price.lacks}; {meant[0].words!r} is planned with")
        if meant[0].lacks == _NO_CURRENCY:
            claims.reading(f"{meant[0].words!r} {_NO_CURRENCY}, and was read as USD")
        return
    for words in dict.fromkeys(price.words for price in prices):
        claims.leave_unread(f"{words!r}: of several kinds the catalogue's prices count, not those that are stated")


def _timed(page: Page, quantity: Quantity) -> _Timed | None:
    """What a figure is paid for, where it is money for some time; a bare one only beside "per GPU hour"."""
    time = _TIME_AFTER.match(page.text[quantity.end : quantity.end + 40])
    before = _TIME_BEFORE.search(page.text[max(0, quantity.start - 60) : quantity.start])
    of_card = time is not None and bool(time["gpu"] or time["gpu2"])
    is_keyed = _PRICE_KEY.search(page.text[: quantity.start][-40:]) is not None
    if quantity.unit != "usd" and (quantity.unit != "count" or not (is_keyed or of_card)):
        return None
    if time is None and before is None and not is_keyed:
        return None
    end = quantity.end + (time.end() if time else 0)
    return _Timed(end, _hours_of(time) or _hours_of(before) or 1, of_card or is_keyed, is_keyed)


def _kind_of(page: Page, quantity: Quantity, timed: _Timed, clause: str) -> str | None:
    """What money for some time is: the price of a GPU or a node (its field), a "budget", "open", or none of them."""
    of_each = timed.of_card or _EACH_CARD.search(clause) is not None
    if _BUDGET.search(clause) and not of_each:
        return None if _PER_NODE_AFTER.match(page.text[quantity.end : timed.end + 30]) else "budget"
    if not timed.of_card and _is_of_node(page, quantity, timed.end):
        return "usd_per_node_hour"
    left, right = page.clause(quantity.start, timed.end)
    beside = page.text[left : quantity.start], page.text[timed.end : right]
    is_bare = all(_BARE_PRICE.fullmatch(part) for part in beside)
    of_card = any(match["card"] for part in beside for match in _PRICED_THING.finditer(part))
    if of_each or (timed.hours == 1 and (is_bare or of_card)):
        return "usd_per_gpu_hour"
    return "budget" if timed.hours == 1 and _GIVEN.search(clause) else "open"


def _paid_instead(page: Page, listed: Quantity, price: _Price) -> list[_Price]:
    """What is paid in place of a price that a list says, as in "list $3.60/GPU/h, we give it at 3.20"."""
    stop = SENTENCE_END.search(page.text, listed.end)
    for quantity in find_quantities(page.text[: stop.start() if stop else len(page.text)]):
        before = page.original[page.clause(quantity.start, quantity.end)[0] : quantity.start]
        is_money = quantity.unit in ("usd", "count") and _timed(page, quantity) is None
        is_money = is_money and _ENDS.match(page.text, quantity.end) is not None
        if price.lacks == _LIST_PRICE and is_money and quantity.start >= listed.end and _PAID.search(before):
            share = quantity.decimal_value / listed.decimal_value
            if _LEAST_PAID <= share <= 1.0:
                words = page.take(quantity.start, quantity.end)
                return [_Price(round(price.usd * share, 4), price.field, words)]
    return []


def _is_of_node(page: Page, price: Quantity, end: int) -> bool:
    """Whether a price, whose words go on to `end`, is of a whole node: it says so, or stands behind a node."""
    if _PER_NODE_AFTER.match(page.text[price.end : end + 30]):
        return True
    named = list(_PRICED_THING.finditer(page.text, max(0, price.start - _MOST_TO_PRICED), price.start))
    if not named or named[-1]["card"] is not None or SENTENCE_END.search(page.text, named[-1].end(), price.start):
        return False
    _, comma, behind = page.text[named[-1].end() : price.start].rpartition(",")
    return not comma or _BARE_PRICE.fullmatch(behind) is not None  # "in 3 nodes, finance signs $40/h"


def _words_around(page: Page, price: Quantity, prices: Sequence[Quantity]) -> str:
    """The clause of a price, as far as the prices beside it."""
    left, right = page.clause(price.start, price.end)
    left = max([left, *(other.end for other in prices if other.end <= price.start)])
    right = min([right, *(other.start for other in prices if other.start >= price.end)])
    return page.original[left:right]


def _hours_of(time: re.Match[str] | None) -> int | None:
    """The hours of the time that a price is for, where it is named."""
    named = (
        next((words for name, words in time.groupdict().items() if "time" in name and words), None) if time else None
    )
    return None if named is None else _HOURS_OF[named[0].lower()]
