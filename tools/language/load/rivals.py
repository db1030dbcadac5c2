"""Which of several figures for one quantity of the load is planned for, and which make a range or percentiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..conflicts.claims import Claims
from ..conflicts.evidence import Grade, grade
from ..conflicts.figures import label
from ..conflicts.statement_rank import standing
from ..conflicts.turns import latest
from ..lexicons import load as lex
from ..patterns.gated import Pattern
from ..patterns.page import Page, between, breaks_of
from .changes import multiplied, of_planned_state, parts_of_whole
from .context import LOADS, Statement
from .length_percentiles import chosen, claim_percentiles, take_choice
from .mix import with_mix
from .people import with_shares_of_people, without_populations
from .shares import load_per_person, of_all_hardware, of_all_people, without_parts

_BY_THE_HOUR = 1 / 3601  # amounts of a day, a week or a month have smaller factors
_TIME_END = re.compile(r"[;!?\n。]|\.(?=\s|$)|(?<=\d)\s?[,，](?=\s)|\s(?:and|but|while)\s", re.IGNORECASE)
_BRACKET = re.compile(r"\s?\([^()\n]{1,24}\)")
_BEFORE = 48
# "18 req/s at peak (6 to 8 pm)", "晚 8 点到 11 点高峰": an hour of the day is no load.
_HOUR = re.compile(r"\s?(?:点|时(?!段)|o'clock|[ap]\.?m(?![a-z]))")
_FIGURE_OR_COMMA = re.compile(r"[,;.。\n(]|\s(?:and|but|while|whereas)(?=\s)|(?<![pP])(?<![pP]\d)\d")


def settled(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements to plan for: of usual and peak figures, the peak counts for load, the usual one for lengths.

    A figure that was agreed on counts before both, and the usual load does where words say to plan for it.
    """
    statements = [s for s in statements if not _HOUR.match(page.text, s.quantity.end)]
    statements = without_parts(page, claims, statements)
    each = load_per_person(page, statements)
    figures = of_all_hardware(page, claims, [s for s in statements if s is not each])
    figures = _without_overtaken(page, claims, _without_past(page, claims, figures))
    figures = _without_unasked(page, claims, figures)
    figures = _without_thin(page, claims, _without_tests(page, claims, figures))
    figures = with_mix(page, claims, multiplied(page, claims, parts_of_whole(page, claims, figures)))
    for role in LOADS:
        _keep_chosen(page, claims, figures, role, _agreed)
    figures = with_shares_of_people(page, claims, figures, is_of_each=each is not None)
    figures = of_all_people(page, claims, without_populations(page, claims, figures, is_of_each=each is not None), each)
    for role in LOADS:
        _keep_chosen(page, claims, figures, role, of_planned_state)
        _keep_chosen(page, claims, figures, role, _wanted)
    figures = _lengths_of_contexts(claims, figures)
    for role in ("input", "output"):
        figures = _spread(page, claims, role, figures)
    return figures


def _without_thin(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without figures that hardly fit their role, where others do: "draft 4", "answer 290".

    Figures of a pair ("700/12") or with a unit ("120 people") have no word beside them that could mean another thing.
    """
    figures = list(statements)
    for role, name in (("input", "input_tokens"), ("output", "output_tokens"), ("concurrency", "concurrency")):
        rivals = [s for s in figures if s.role == role]
        apart = [s for s in rivals if s.words != s.quantity.words]
        thin = [s for s in apart if grade(name, s.quantity.value, s.words) is Grade.THIN]
        for rival in thin if len(thin) < len(rivals) else ():
            _drop(page, figures, rival)
            claims.leave_unread(
                f"{rival.words!r} was not read as the {label(name)}, which other words say more plainly"
            )
    return figures


def _drop(page: Page, statements: list[Statement], dropped: Statement) -> None:
    statements.remove(dropped)
    page.take(dropped.quantity.start, dropped.quantity.end)


def _lengths_of_contexts(claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Take several figures of a context for the prompt's, where it has no others: "contexts up to 60k, avg 35k"."""
    contexts = [s for s in statements if s.role == "context"]
    if len({s.quantity.value for s in contexts}) < 2 or any(s.role == "input" for s in statements):
        return statements
    claims.reading(f"{', '.join(s.words for s in contexts)!r} read as lengths of the input")
    return [replace(s, role="input") if s in contexts else s for s in statements]


def _keep_chosen(
    page: Page,
    claims: Claims,
    statements: list[Statement],
    role: str,
    choose: Callable[[Page, Sequence[Statement]], Sequence[Statement]],
) -> None:
    """Drop all figures of a role but the chosen one; where none is chosen, all of them stay."""
    rivals = [s for s in statements if s.role == role and s.quantity.upper is None]
    if len({s.quantity.value for s in rivals}) < 2:
        return
    wanted = choose(page, rivals)
    if len({s.quantity.value for s in wanted}) != 1:
        return
    for other in (s for s in rivals if s not in wanted):
        _drop(page, statements, other)
        claims.reading(f"{wanted[0].words!r} is planned for, not {other.words!r}")


def _agreed(page: Page, rivals: Sequence[Statement]) -> list[Statement]:
    """The last figure that people agreed on, else the bare figures behind "size for"."""
    before = [(s, page.original[max(0, s.quantity.start - 60) : s.quantity.start]) for s in rivals]
    agreed = [s for s, words in before if lex.AGREED.search(words)]
    return agreed[-1:] or [s for s, words in before if s.quantity.unit == "count" and lex.SIZED_FOR.search(words)]


def _wanted(page: Page, rivals: Sequence[Statement]) -> list[Statement]:
    """The figure of a load that is planned for: the peak, unless words choose the usual one; else the largest."""
    peaks, usual, times = ([s for s in rivals if is_marked(page, s, mark)] for mark in (lex.PEAK, lex.USUAL, lex.WHEN))
    if usual and chosen(page) == "usual":
        take_choice(page)
        return usual
    most = max(rivals, key=lambda s: s.quantity.value)
    if peaks and most not in peaks and any(_is_at_a_time(page, s) for s in peaks):
        return [most]  # "at night at most 5": no peak of what comes by day
    if peaks or usual:
        return peaks or [s for s in rivals if s not in usual]
    if all(is_marked(page, s, lex.AT_OTHER_TIMES) for s in rivals if s.quantity.value < most.quantity.value):
        return [most]  # "20/s in storm hours; 3/s otherwise"
    is_rates = times and all(s.role == "rate" for s in rivals)
    at_other_times = is_rates and (len(times) == len(rivals) or not all(s.quantity.spelled for s in rivals))
    return [most] if at_other_times else []


def _without_past(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without those of the past, where others state the load or the length."""
    figures = list(statements)
    for roles in (LOADS, ("input",), ("output",)):
        rivals = [s for s in figures if s.role in roles]
        spans = [(s.quantity.start, s.quantity.end) for s in rivals]
        for former in [s for s, is_past in zip(rivals, claims.told_once(spans), strict=True) if is_past]:
            _drop(page, figures, former)
            claims.reading(f"{former.words!r} tells what held once, and was set aside")
    return figures


def _without_overtaken(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without loads that a later turn states anew; a usual load that it adds leaves the peak."""
    figures = list(statements)
    for role in LOADS:
        rivals = [s for s in figures if s.role == role]
        last = latest(page.original, [(s.quantity.start, s.quantity.end) for s in rivals])
        now = [s for s, is_last in zip(rivals, last, strict=True) if is_last]
        spans = [(s.quantity.start, s.quantity.end) for s in now]
        is_of_others = any(standing(page.original, *span) > 0 for span in spans)
        is_plain = role == "rate" or any(lex.TOGETHER.search(page.clause_text(*span)) for span in spans)
        if is_of_others or not is_plain or all(is_marked(page, s, lex.USUAL) for s in now):
            continue
        for former in (s for s in rivals if s not in now):
            _drop(page, figures, former)
            claims.reading(f"{now[0].words!r} takes the place of {former.words!r}, which stands before it")
    return figures


def _without_unasked(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without daily amounts of things that no model is asked for, beside a number served at once.

    "32 concurrent requests. The farm sells 20 cows a week": as a rate it would replace the requests in flight.
    """
    if not any(s.role == "concurrency" and s.quantity.value > 1 for s in statements):
        return statements
    figures = list(statements)
    for daily in [s for s in statements if s.role == "rate" and s.quantity.factor < _BY_THE_HOUR]:
        if not lex.ASKED_FOR.search(daily.quantity.words):
            _drop(page, figures, daily)
            claims.leave_unread(f"{daily.words!r} was not read as a rate of requests beside a number served at once")
    return figures


def _without_tests(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without figures of a test, of bots or of an attack, beside others of the same thing."""
    figures = list(statements)
    for role in (*LOADS, "input", "output"):
        rivals = [s for s in figures if s.role == role]
        if len({s.quantity.value for s in rivals}) < 2:
            continue
        clauses = [page.clause_text(s.quantity.start, s.quantity.end) for s in rivals]
        userless = [s for s, clause in zip(rivals, clauses, strict=True) if lex.OF_NO_LOAD.search(clause)]
        for rival in userless if len(userless) < len(rivals) else ():
            _drop(page, figures, rival)
            claims.reading(f"{rival.words!r} is of no user, and was set aside")
    return figures


def _is_at_a_time(page: Page, statement: Statement) -> bool:
    """Whether the clause of a figure says when it holds."""
    left, right = between(
        breaks_of(page.original, _TIME_END), statement.quantity.start, statement.quantity.end, len(page.original)
    )
    return any(not lex.PEAK.search(match.group()) for match in lex.WHEN.finditer(page.original, left, right))


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
    if any(len({s.quantity.value for s in group}) > 1 for group in (high, low, usual)) or not (high or low):
        return statements
    figures = [s for s in statements if s not in rivals]
    words = ", ".join(statement.words for statement in rivals)
    for statement in rivals:
        page.take(statement.quantity.start, statement.quantity.end)
    ends = [group[0].quantity.value for group in (low or usual, high or usual) if group]
    if usual:
        figures.append(usual[0])
    if len(ends) == 2 and ends[0] < ends[1]:
        claims.claim(f"{role}_tokens_range", (ends[0], ends[1]), words)
    else:
        for other in (s for s in rivals if s not in usual[:1]):
            claims.leave_unread(f"{other.words!r} is no end of the lengths of the {role}, and was not understood")
    return figures


def is_marked(page: Page, statement: Statement, marks: Pattern) -> bool:
    """Whether the words around a figure, up to the next figure or comma, say that it is a peak or a usual one."""
    start, end = statement.quantity.start, statement.quantity.end
    nearby = _BRACKET.sub(" ", page.original[max(0, start - _BEFORE) : start])
    before = _FIGURE_OR_COMMA.split(nearby[-24:])[-1]
    after = _FIGURE_OR_COMMA.split(page.original[end : end + 24])[0]
    is_next = page.original[end + len(after) : end + len(after) + 1].isdigit()
    matches = marks.finditer(f"{before} {statement.quantity.words} {after}")
    # "6k with a tail up to 60k": words right before the next figure belong to that.
    return any(not is_next or match.end() < len(match.string) - 2 for match in matches)
