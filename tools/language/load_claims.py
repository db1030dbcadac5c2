"""Claims figures of a load for the fields of their roles."""

from __future__ import annotations

from ..plan.lengths import RequestLengths
from . import load_lexicon as lex
from .claims import Claims
from .load_context import Statement
from .page import Page
from .quantities import Quantity

_SPREAD = ("input_tokens_range", "output_tokens_range", "lengths", "prefixes", "trace")
PHASES = {"prefill": "input", "decode": "output"}
_LEAST_BROKEN = 16  # a mean of 512.5 tokens may be; 1.6 are a ratio


def claim_statement(page: Page, claims: Claims, statement: Statement) -> None:
    """Claim a figure for the field of its role."""
    role, quantity, words = statement.role, statement.quantity, statement.words
    role = "input" if role == "tokens_of" else PHASES.get(role, role)
    if role in ("input", "output"):
        claim_length(claims, role, quantity, words)
    elif role == "concurrency":
        _claim_concurrency(claims, quantity, words)
    elif role == "throughput":
        claims.claim("min_tokens_per_second", quantity.decimal_value, words)
        claims.reading(f"{words!r} read as tokens/s of the whole deployment")
    elif role == "rate":
        claims.claim("request_rate", quantity.decimal_value, words)
    elif role in ("ttft", "tpot"):
        claims.claim(f"{role}_ms_max", quantity.decimal_value, words)
        claims.reading(f"{words!r} states no unit and was read as ms")
    elif role == "hit_rate":
        claims.claim("prefix_cache_hit_rate", _share(quantity), words)
    else:
        share = _share(quantity)
        if lex.HEADROOM.search(page.clause_text(quantity.start, quantity.end)):
            share = round(1 - share, 12)
            claims.reading(f"{words!r} read as memory left free: {share:g} of it may be used")
        claims.claim("memory_utilization", share, words)


def _share(quantity: Quantity) -> float:
    """A share of 1; a bare number from 2 on is a percentage (1.2 stays an impossible share)."""
    value = quantity.decimal_value
    return round(value / 100 if quantity.unit == "count" and value >= 2 else value, 12)


def claim_length(claims: Claims, role: str, quantity: Quantity, words: str) -> None:
    """Claim a length, or a range of them, of a side (`role`)."""
    if quantity.value != int(quantity.value) and quantity.value < _LEAST_BROKEN:
        claims.leave_unread(f"{words!r} is no number of tokens")  # "1.6 tokens for each word"
        return
    if quantity.upper is not None:
        claims.claim(f"{role}_tokens_range", (quantity.value, quantity.upper), words)
    else:
        claims.claim(f"{role}_tokens", quantity.value, words)


def _claim_concurrency(claims: Claims, quantity: Quantity, words: str) -> None:
    value = quantity.value
    if quantity.upper is not None:
        value = quantity.upper
        claims.reading(f"{words!r} read as up to {value:g} requests in flight")
    claims.claim("concurrency", value, words)


def claim_context(page: Page, claims: Claims, statement: Statement) -> None:
    """A context is the prompt where no prompt was stated; else it is the longest request that servers have to take."""
    words = statement.words
    if claims.has("input_tokens") or claims.has("input_tokens_range") or lex.MOST_OF_ENGINE.search(words):
        longest = sum(claims.values.get(name, 0) for name in ("input_tokens", "output_tokens"))
        if 0 < statement.quantity.value < longest and lex.MOST_OF_ENGINE.search(words):
            raise claims.refusal(
                f"{words!r} is shorter than a request of {longest:,} tokens in and out; change one of the two"
            )
        _claim_longest(page, claims, statement)
        return
    claim_length(claims, "input", statement.quantity, words)
    claims.reading(f"{words!r} read as the length of the input")


def _claim_longest(page: Page, claims: Claims, statement: Statement) -> None:
    """Claim the longest request beside the usual one; lengths that spread have their longest already."""
    words, most = statement.words, int(statement.quantity.value)
    tokens_in, tokens_out = (claims.values.get(name) for name in ("input_tokens", "output_tokens"))
    if not lex.MOST_CONTEXT.search(page.clause_text(statement.quantity.start, statement.quantity.end)):
        claims.reading(f"{words!r} was not read as the length of the input, which is stated elsewhere")
    elif tokens_in is None or tokens_out is None or any(map(claims.has, _SPREAD)):
        claims.leave_unread(
            f"{words!r} counts only beside one length of prompts and one of answers; say how long the longest are"
        )
    elif most > tokens_in + tokens_out:
        longest = RequestLengths(pairs=((tokens_in, tokens_out),), longest=(most - tokens_out, tokens_out))
        claims.claim("lengths", longest, words)
        claims.reading(f"{words!r} read as the longest request, prompt and answer, that servers have to take")
