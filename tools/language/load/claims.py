"""Claims figures of a load for the fields of their roles, and lengths that no word explains.

The only number of tokens is the input, the next one the output.
"""

from __future__ import annotations

from ...plan.lengths import RequestLengths
from ..conflicts.claims import Claims
from ..lexicons import load as lex
from ..patterns.gated import Gated
from ..patterns.matching import gap_cost
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .context import Statement

_SPREAD = ("input_tokens_range", "output_tokens_range", "lengths", "prefixes", "trace")
PHASES = {"prefill": "input", "decode": "output"}
_LEAST_BROKEN = 16  # a mean of 512.5 tokens may be; 1.6 are a ratio
FAR = 4.0  # a larger gap between two figures: the second does not go on with the first
# Tokens that are no length of a request: those of a cache, of the longest request, of a day.
_OF_MEMORY = Gated(
    r"(?<![a-z])(?:kv|cache|memory|room|total|context|window|max(?:imum)?|longest|up\sto|limit|budget|per\s(?:day|second|hour)|a\sday)(?![a-z])|"
    r"缓存|显存|总共|上下文|最长|最多|每天|每秒"
)
_OF_CACHE = Gated(r"(?<![a-z])(?:kv|room|memory|space)(?![a-z])|显存|缓存")
# ", the list of findings to 2,200.": a clause with a noun and a number.
_BEHIND = Gated(
    r"[^,;.\n\d]{0,24}(?:\([^()\n]{0,30}\)\s?)?[,;]\s(?:and\s|with\s|while\s)?(?:the|its|an?|our|each)?\s?"
    r"(?!ttft|tpot|first|latency|batch|users?|requests?)[a-z][a-z\-'\s]{2,36}?\s"
    r"(?:(?:comes?|runs?|is|are|has|about|some|around|roughly|to|of|at)\s){0,3}(?P<n>\d[\d,]{1,6})(?=\s?[,.;)\n]|$)"
)


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


def is_prompt(page: Page, claims: Claims, context: Statement) -> bool:
    """Whether a context is the prompt: words call it no bound, and lengths that nothing explains are smaller."""
    if claims.has("input_tokens") or claims.has("input_tokens_range") or context.quantity.unit != "tokens":
        return False
    others = [length for length in _lone_lengths(page) if length.start != context.quantity.start]
    is_longest = bool(others) and all(length.value < context.quantity.value for length in others)
    return is_longest and not _is_most(page, context.quantity)


def _is_most(page: Page, quantity: Quantity) -> bool:
    """Whether the words of a context make it an upper bound."""
    return lex.MOST_CONTEXT.search(page.clause_text(quantity.start, quantity.end)) is not None


def _claim_longest(page: Page, claims: Claims, statement: Statement) -> None:
    """Claim the longest request beside the usual one; lengths that spread have their longest already."""
    words, most = statement.words, int(statement.quantity.value)
    tokens_in, tokens_out = (claims.values.get(name) for name in ("input_tokens", "output_tokens"))
    if not _is_most(page, statement.quantity):
        claims.reading(f"{words!r} was not read as the length of the input, which is stated elsewhere")
    elif tokens_in is None or tokens_out is None or any(map(claims.has, _SPREAD)):
        claims.leave_unread(
            f"{words!r} counts only beside one length of prompts and one of answers; say how long the longest are"
        )
    elif most > tokens_in + tokens_out:
        longest = RequestLengths(pairs=((tokens_in, tokens_out),), longest=(most - tokens_out, tokens_out))
        claims.claim("lengths", longest, words)
        claims.reading(f"{words!r} read as the longest request, prompt and answer, that servers have to take")


def claim_lone_length(page: Page, claims: Claims) -> None:
    """Claim an unexplained number of tokens as the input, where none is stated, and the only other one as the output.

    "A case file has 6,000 tokens; the narrative itself is 900 tokens": an output may have any name. A bare number in
    the clause behind the input's is the output too: "a narrative is 1,300 tokens, the coding 180".
    """
    if not _lacks_output(claims):
        _claim_lone_input(page, claims)
    if not _lacks_output(claims):
        return
    lone = _lone_lengths(page)
    if not lone:
        lone = _behind_the_input(page, claims)
    if len(lone) != 1 or lone[0].upper is not None:
        return
    if not _OF_MEMORY.search(page.clause_text(lone[0].start, lone[0].end)):
        words = page.take(lone[0].start, lone[0].end)
        claim_length(claims, "output", lone[0], words)
        claims.reading(f"{words!r} read as the length of the output")


def _lone_lengths(page: Page) -> list[Quantity]:
    lengths = [q for q in find_quantities(page.text) if q.unit == "tokens"]
    return [q for q in lengths if not _OF_CACHE.search(page.clause_text(q.start, q.end))]


def _lacks_output(claims: Claims) -> bool:
    return claims.has("input_tokens") and not (claims.has("output_tokens") or claims.has("output_tokens_range"))


def _claim_lone_input(page: Page, claims: Claims) -> None:
    quantity = next(iter(_lone_lengths(page)), None)
    if quantity is None or claims.has("input_tokens_range"):
        return
    usual = claims.values.get("input_tokens")
    if usual is None or (quantity.upper is not None and quantity.value <= usual <= quantity.upper):
        words = page.take(quantity.start, quantity.end)
        claim_length(claims, "input", quantity, words)
        claims.reading(f"{words!r} read as the length of the input")
        _claim_mean_behind(page, claims, quantity)


def _behind_the_input(page: Page, claims: Claims) -> list[Quantity]:
    """A bare number in the clause that follows the words of the input, if nothing but a noun stands before it."""
    words = claims.words["input_tokens"]
    at = page.original.find(words)
    match = _BEHIND.match(page.text, at + len(words)) if at >= 0 else None
    if match is None:
        return []
    return [q for q in find_quantities(page.text) if q.unit == "count" and q.start == match.start("n")]


def _claim_mean_behind(page: Page, claims: Claims, span: Quantity) -> None:
    """ "2k to 6k tokens, mean 3k": the usual length behind a range that no word explains."""
    mean = next((q for q in find_quantities(page.text) if q.start >= span.end), None)
    if span.upper is None or mean is None or claims.has("input_tokens") or mean.unit not in ("count", "tokens"):
        return
    gap = page.text[span.end : mean.start]
    if lex.USUAL.search(gap) and gap_cost(lex.OF_SPREAD.sub(" ", gap)) < FAR and span.value <= mean.value <= span.upper:
        claim_length(claims, "input", mean, page.take(mean.start, mean.end))
