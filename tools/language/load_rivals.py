"""Several figures of one thing of the load: which of them is planned for, and which make a range or percentiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from . import load_lexicon as lex
from .choices import chosen, take_choice
from .claims import Claims, label
from .evidence import Grade, grade
from .gated import Pattern
from .length_percentiles import claim_percentiles
from .load_context import LOADS, Statement
from .load_shares import load_of_one, of_all_hardware, of_all_people
from .mix_words import with_mix
from .page import Page, between, breaks_of
from .people_words import multiplied, of_all_groups, with_shares_of_people, without_populations

_BY_THE_HOUR = 1 / 3601  # what is told of a day, a week or a month
_TIME_END = re.compile(r"[;!?\n。]|\.(?=\s|$)|(?<=\d)\s?[,，](?=\s)|\s(?:and|but|while)\s", re.IGNORECASE)
_FIGURE_OR_COMMA = re.compile(r"[,;.。\n(]|\sand(?=\s)|(?<![pP])(?<![pP]\d)\d")


def settled(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Usual and peak figures of one thing do not contradict: the peak counts for load, the usual one for lengths.

    Where one was agreed on it counts before both, and where words say to plan for the usual load, that does.
    """
    each = load_of_one(page, statements)
    kept = of_all_hardware(page, claims, [one for one in statements if one is not each])
    kept = _asked_for(page, claims, _of_now(page, claims, kept))
    kept = _telling(page, claims, _of_users(page, claims, kept))
    kept = with_mix(page, claims, of_all_groups(page, claims, multiplied(page, claims, kept)))
    for role in LOADS:
        _keep_one(page, claims, kept, role, _agreed)
    kept = with_shares_of_people(page, claims, kept, is_of_each=each is not None)
    kept = of_all_people(page, claims, without_populations(page, claims, kept, is_of_each=each is not None), each)
    for role in LOADS:
        _keep_one(page, claims, kept, role, _wanted)
    kept = _lengths_of_contexts(claims, kept)
    for role in ("input", "output"):
        kept = _spread(page, claims, role, kept)
    return kept


def _telling(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without figures that hardly are of their role, beside others that are: "draft 4", "answer 290".

    Those of a pair ("700/12") or of a unit ("120 people") have no word beside them that could be meant otherwise.
    """
    kept = list(statements)
    for role, name in (("input", "input_tokens"), ("output", "output_tokens"), ("concurrency", "concurrency")):
        rivals = [one for one in kept if one.role == role]
        thin = [one for one in rivals if one.words != one.quantity.words and _is_thin(name, one)]
        for one in thin if len(thin) < len(rivals) else ():
            _drop(page, kept, one)
            claims.leave_unread(f"{one.words!r} was not read as the {label(name)}, which other words say more plainly")
    return kept


def _drop(page: Page, statements: list[Statement], one: Statement) -> None:
    statements.remove(one)
    page.take(one.quantity.start, one.quantity.end)


def _is_thin(name: str, one: Statement) -> bool:
    return grade(name, one.quantity.value, one.words) is Grade.THIN


def _lengths_of_contexts(claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Several figures of a context are those of the prompt, where no other is said: "contexts up to 60k, avg 35k"."""
    contexts = [one for one in statements if one.role == "context"]
    if len({one.quantity.value for one in contexts}) < 2 or any(one.role == "input" for one in statements):
        return statements
    claims.reading(f"{', '.join(one.words for one in contexts)!r} read as lengths of the input")
    return [replace(one, role="input") if one in contexts else one for one in statements]


def _keep_one(
    page: Page,
    claims: Claims,
    statements: list[Statement],
    role: str,
    choose: Callable[[Page, Sequence[Statement]], Sequence[Statement]],
) -> None:
    """Drop all of several figures of one thing but the one that is chosen; where none is, all of them stay."""
    rivals = [one for one in statements if one.role == role and one.quantity.upper is None]
    if len({one.quantity.value for one in rivals}) < 2:
        return
    wanted = choose(page, rivals)
    if len({one.quantity.value for one in wanted}) != 1:
        return
    for other in (one for one in rivals if one not in wanted):
        _drop(page, statements, other)
        claims.reading(f"{wanted[0].words!r} is planned for, not {other.words!r}")


def _agreed(page: Page, rivals: Sequence[Statement]) -> list[Statement]:
    """The last of the figures that people agreed on, or that stands alone behind "size for"."""
    before = [(one, page.original[max(0, one.quantity.start - 60) : one.quantity.start]) for one in rivals]
    agreed = [one for one, words in before if lex.AGREED.search(words)]
    return agreed[-1:] or [one for one, words in before if one.quantity.unit == "count" and lex.SIZED_FOR.search(words)]


def _wanted(page: Page, rivals: Sequence[Statement]) -> list[Statement]:
    """The figure of a load that is planned for: the peak, unless words choose the usual one; else the largest."""
    peaks, usual, times = (
        [one for one in rivals if is_marked(page, one, mark)] for mark in (lex.PEAK, lex.USUAL, lex.WHEN)
    )
    if usual and chosen(page) == "usual":
        take_choice(page)
        return usual
    most = max(rivals, key=lambda one: one.quantity.value)
    if peaks and most not in peaks and any(_is_at_a_time(page, one) for one in peaks):
        return [most]  # "at night at most 5": no peak of what comes by day
    if peaks or usual:
        return peaks or [one for one in rivals if one not in usual]
    is_rates = times and all(one.role == "rate" for one in rivals)
    at_other_times = is_rates and (len(times) == len(rivals) or not all(one.quantity.spelled for one in rivals))
    return [most] if at_other_times else []


def _of_now(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without those of the past, where others say what the load or the length is."""
    kept = list(statements)
    for roles in (LOADS, ("input",), ("output",)):
        rivals = [one for one in kept if one.role in roles]
        spans = [(one.quantity.start, one.quantity.end) for one in rivals]
        for one in [one for one, past in zip(rivals, claims.told_once(spans), strict=True) if past]:
            _drop(page, kept, one)
            claims.reading(f"{one.words!r} tells what held once, and was set aside")
    return kept


def _asked_for(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without amounts of a day of what no model is asked for, beside a number served at once.

    "32 concurrent requests. The farm sells 20 cows a week": as a rate it would take the place of what is in flight.
    """
    if not any(one.role == "concurrency" and one.quantity.value > 1 for one in statements):
        return statements
    kept = list(statements)
    for one in [one for one in statements if one.role == "rate" and one.quantity.factor < _BY_THE_HOUR]:
        if not lex.ASKED_FOR.search(one.quantity.words):
            _drop(page, kept, one)
            claims.leave_unread(f"{one.words!r} was not read as a rate of requests beside a number served at once")
    return kept


def _of_users(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without figures of a test, of bots or of an attack, beside others of the same thing."""
    kept = list(statements)
    for role in (*LOADS, "input", "output"):
        rivals = [one for one in kept if one.role == role]
        if len({one.quantity.value for one in rivals}) < 2:
            continue
        words = [page.clause_text(one.quantity.start, one.quantity.end) for one in rivals]
        none = [one for one, said in zip(rivals, words, strict=True) if lex.OF_NO_LOAD.search(said)]
        for one in none if len(none) < len(rivals) else ():
            _drop(page, kept, one)
            claims.reading(f"{one.words!r} is of no user, and was set aside")
    return kept


def _is_at_a_time(page: Page, statement: Statement) -> bool:
    """Whether the clause of a figure says when it holds."""
    left, right = between(
        breaks_of(page.original, _TIME_END), statement.quantity.start, statement.quantity.end, len(page.original)
    )
    return any(not lex.PEAK.search(one.group()) for one in lex.WHEN.finditer(page.original, left, right))


def _spread(page: Page, claims: Claims, role: str, statements: list[Statement]) -> list[Statement]:
    """A usual length beside a lowest or a highest one is a length with a range: "typically 4k, up to 16k"."""
    rivals = [s for s in statements if s.role == role and s.quantity.upper is None]
    if len({statement.quantity.value for statement in rivals}) < 2:
        return statements
    if claim_percentiles(page, claims, role, rivals):
        return [s for s in statements if s not in rivals]
    high = [s for s in rivals if is_marked(page, s, lex.PEAK)]
    low = [s for s in rivals if s not in high and is_marked(page, s, lex.LOWEST)]
    usual = [s for s in rivals if s not in high and s not in low]
    if any(len({s.quantity.value for s in some}) > 1 for some in (high, low, usual)) or not (high or low):
        return statements
    kept = [s for s in statements if s not in rivals]
    words = ", ".join(statement.words for statement in rivals)
    for statement in rivals:
        page.take(statement.quantity.start, statement.quantity.end)
    ends = [some[0].quantity.value for some in (low or usual, high or usual) if some]
    if usual:
        kept.append(usual[0])
    if len(ends) == 2 and ends[0] < ends[1]:
        claims.claim(f"{role}_tokens_range", (ends[0], ends[1]), words)
    else:
        for other in (one for one in rivals if one not in usual[:1]):
            claims.leave_unread(f"{other.words!r} is no end of the lengths of the {role}, and was not understood")
    return kept


def is_marked(page: Page, statement: Statement, marks: Pattern) -> bool:
    """Whether the words around a figure, up to the next figure or comma, say that it is a peak or a usual one."""
    start, end = statement.quantity.start, statement.quantity.end
    before = _FIGURE_OR_COMMA.split(page.original[max(0, start - 24) : start])[-1]
    after = _FIGURE_OR_COMMA.split(page.original[end : end + 24])[0]
    is_next = page.original[end + len(after) : end + len(after) + 1].isdigit()
    found = marks.finditer(f"{before} {statement.quantity.words} {after}")
    # "6k with a tail up to 60k": what stands right before the next figure is said of that.
    return any(not is_next or one.end() < len(one.string) - 2 for one in found)
