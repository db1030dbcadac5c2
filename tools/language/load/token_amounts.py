"""Tokens over a time: "30 billion input and 6 billion output tokens per month" are requests once lengths are known."""

from __future__ import annotations

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import read_number

DAY_S = 86_400
_SECONDS_OF: dict[str, int] = {
    "hour": 3600, "小时": 3600, "day": DAY_S, "天": DAY_S, "日": DAY_S, "week": 7 * DAY_S, "周": 7 * DAY_S,
    "month": 30 * DAY_S, "月": 30 * DAY_S, "year": 365 * DAY_S, "年": 365 * DAY_S,
}  # fmt: skip
_TOKENS = r"\s?个?(?:tokens?|词元)"
_IN = r"(?:input|prompt|incoming|in|输入)"
_OUT = r"(?:output|completion|generated|outgoing|out|输出|生成)"
_AMOUNT = (
    r"(?<![A-Za-z0-9.])(?P<{}>\d[\d,]{{0,15}}(?:\.\d{{1,4}})?\s?(?:k|m|mn|b|bn|million|billion|trillion|万|亿)?)"
    r"(?![\d.%])"
)
_PER = r"(?:\s?(?:per|an?|each|every|/)\s?(?P<time{}>hour|day|week|month|year)(?![a-z]))"
# "30 billion input and 6 billion output tokens per month (30 days)", "每月输入300亿token,输出60亿token".
_TOKENS_IN_TIME = Gated(
    rf"{_AMOUNT.format('i')}(?:{_TOKENS})?\s{_IN}(?:{_TOKENS})?\s?(?:and|plus|,|\+|/|&)\s?{_AMOUNT.format('o')}(?:{_TOKENS})?\s{_OUT}"
    rf"(?:{_TOKENS})?{_PER.format(1)}(?:\s?\((?P<days>\d{{1,3}})(?:\s(?:working|business))?\sdays\))?|"
    rf"{_AMOUNT.format('i2')}(?:{_TOKENS}\s{_IN}|\s{_IN}{_TOKENS}){_PER.format(2)}|"
    rf"(?<![a-z]){_IN}\stokens?\s(?:per|a|/)\s?(?P<time4>hour|day|week|month|year)\s?[:=]\s?{_AMOUNT.format('i4')}\s{{1,4}}{_OUT}\stokens?\s(?:per|a|/)\s?(?P=time4)\s?[:=]\s?{_AMOUNT.format('o4')}|"
    rf"每个?(?P<time3>[天日周月年])[^\d。;]{{0,8}}输入(?:大?约)?{_AMOUNT.format('i3')}(?:{_TOKENS})?[,和\s]{{0,3}}输出(?:大?约)?{_AMOUNT.format('o3')}(?:{_TOKENS})?",
)
_SCALES = {"b": "billion", "bn": "billion", "mn": "million", "m": "million"}
# A claim that is no field, until all has been read: (tokens in, tokens out) a second.
AMOUNTS = "tokens_that_come"


def read_token_amounts(page: Page, claims: Claims) -> None:
    """Take amounts of tokens over a time off the page; what rate they are is settled once lengths are known."""
    for match in page.search(_TOKENS_IN_TIME):
        groups = match.groupdict()
        time = next(str(groups[name]) for name in ("time1", "time2", "time3", "time4") if groups[name])
        seconds = int(groups["days"]) * DAY_S if groups["days"] else _SECONDS_OF[time.lower()]
        sides = [
            next((groups[n] for n in names if groups[n]), None)
            for names in (("i", "i2", "i3", "i4"), ("o", "o3", "o4"))
        ]
        amounts = tuple(None if side is None else _amount(side) / seconds for side in sides)
        claims.claim(AMOUNTS, amounts, page.take(*match.span()))


def settle_token_amounts(claims: Claims) -> None:
    """Claim the rate of requests that amounts of tokens are, by the lengths that were read."""
    amounts, words = claims.drop(AMOUNTS)
    if amounts is None:
        return
    tokens_in, tokens_out = amounts
    if tokens_in and tokens_out and claims.has("input_tokens") and not claims.has("output_tokens"):
        length = max(1, round(claims.values["input_tokens"] * tokens_out / tokens_in))
        claims.claim("output_tokens", length, words)
        claims.reading(f"{words!r} read as an output of {length:,} tokens for each request")
    rates = {
        side: tokens / claims.values[f"{side}_tokens"]
        for side, tokens in zip(("input", "output"), amounts, strict=True)
        if tokens is not None and claims.has(f"{side}_tokens")
    }
    if not rates:
        claims.leave_unread(f"{words!r}: how many requests these are takes the length of one, which was not said")
        return
    rate = max(rates.values())
    by_side = " and ".join(f"{per_second:.4g} by the {side}" for side, per_second in rates.items())
    claims.reading(f"{words!r} read as {rate:.4g} requests/s: {by_side} tokens of a request")
    claims.claim("request_rate", rate, words)


def _amount(words: str) -> float:
    written = words.strip().lower()
    suffix = written.lstrip("0123456789,.")
    number, suffix = written.removesuffix(suffix), suffix.strip()
    scale = read_number(f"1 {_SCALES.get(suffix, suffix)}" if suffix.isascii() and suffix != "k" else f"1{suffix}")
    return float(number.replace(",", "")) * (1000 if suffix == "k" else scale or 1)
