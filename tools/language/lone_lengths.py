"""Lengths that no word explains: the only number of tokens is the input, the next one the output."""

from __future__ import annotations

from . import load_lexicon as lex
from .claims import Claims
from .gated import Gated
from .load_claims import claim_length
from .matching import gap_cost
from .page import Page
from .quantities import Quantity, find_quantities

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
