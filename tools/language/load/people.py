"""Numbers of people: how many are served at once, how many there are, and shares of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec.structs import replace

from ..conflicts.alternatives import CORRECTED
from ..conflicts.claims import Claims
from ..lexicons import load as lex
from ..patterns.gated import Gated
from ..patterns.page import SENTENCE_END, Page
from ..patterns.quantities import Quantity, find_quantities
from .context import Statement

_OF_PEOPLE = Gated(
    r"\s(?:of\s(?:them|those|these|which|whom|the|our|all)|are|is|will\sbe|use|ha(?:s|ve|ving))(?![a-z])|\s?(?:的|在|有)"
)
_OF_THEM = Gated(
    r"\s?of\s(?:(?:them|those|these|which|whom|us)(?![a-z])|(?:(?:our|the|all|those|these|its|their)\s){1,2}(?:about\s)?\d)",
)
# Before a number of which others are a part ("40 of our 600", "40 users out of 600").
_OF_WHOLE = Gated(
    r"(?:\d\sof\s(?:(?:our|the|all|those|these|its|their)\s){1,2}|(?<![a-z])out\sof\s(?:(?:our|the|all|those|these|its|their)\s){0,2})(?:about\s)?$",
)
_OF_STATE = Gated(r"generating|producing|writing|emitting|receiving")
_IN_WORK = Gated(r"\sbeing\s(?:generated|written|produced|drafted|streamed|processed|made)(?![a-z])")
_STATE_BEFORE = Gated(r"(?<![a-z])(?:is|are|be|being|actually|really|currently|still|only|busy|ever)\s$")
# In the clause of a share: it is none of people, or one of those already served together.
_OF_ELSE = Gated(
    r"(?<![a-z])(?:cach\w*|hit[\s\-]?rates?|hits|hitting|prefix\w*|reus\w*|shared|identical|tokens?|prompts?\sare|memory|vram|hbm|growth|grows?|headroom|margin|reserve|util\w*|cpu|"
    r"uptime|availab\w*|slo|sla|fail\w*|errors?|reject\w*|percentile|quantile|budget|costs?|cheaper|discount|accura\w*|quality|recall|experts?|layers?|param\w*|weights?|loss|"
    r"of\s(?:(?:the|our|all|these|those)\s)?(?:(?:concurrent|simultaneous|active|online)(?!\s(?:ones|people)(?![a-z]))|tickets|invoices|orders|documents|files|questions|messages|countries|regions|cases|requests?|quer(?:y|ies)|calls|prompts|traffic|load|time|hours?|days?))(?![a-z])|"
    r"%\s(?:more|less|fewer|above|below|over|on\stop)(?![a-z])|缓存|命中|前缀|显存|内存|增长|余量|冗余|利用率|可用|失败|错误|流量|请求中|并发中|共享|以[上下内]|的时间|的请求"
)
_SERVED = Gated(
    r"concurren|simultan|parallel|(?<![a-z])(?:at\sonce|in[\s\-]?flight|outstanding)(?![a-z])|并发|同时|在[飞途]"
)
# In the clause of a share: it is one of those counted before.
_OF_THOSE = Gated(
    r"(?<![a-z])of\s(?:them|those|these|which|whom|us)(?![a-z])|(?<![a-z])(?:(?:share|fraction)\s(?:with|who|that)|(?:are|is)\s(?:really|actually|actively))(?![a-z])|其中|真正"
)
# In the clause of a share: it is one of those of the share before it.
_OF_THE_LAST = Gated(
    r"(?<![a-z])of\s(?:(?:those|these|which|whom)|the\s[a-z\-]{4,12}\s(?:ones|people))(?![a-z])|其中|[里中](?:面|平均|大?约|有){0,2}\s?(?=[\d一二两三四五六七八九十半])"
)
# "60% are online, half of them ask": who is there, of whom others are a part.
_ARE_THERE = Gated(
    r"(?<![a-z])(?:online|active|(?:logged|signed)\s(?:in|on)|connected|present|at\s(?:work|(?:their|the)\sdesks?)|on\s(?:shift|duty|site)|in\sthe\s(?:app|tool|office|building))(?![a-z])"
)
# "1,200 chats open in parallel, but one in eight is waiting": a ratio is one of those counted before.
_RATIO = Gated(r"(?<![a-z])(?:in|out\sof)(?![a-z])")
# These may be about people, or about tools, tickets and shops: they count only of people.
_OF_ANYTHING = Gated(r"(?<![a-z])(?:(?<!in\s)parallel|open|live|outstanding|pending)(?![a-z])")
_FRACTION = Gated(r"(?<![a-z])(?:share|fraction|ratio|portion|part)(?![a-z])|比例?|占")
_NOUN = re.compile(r"[\d.,]+\s?[万k]?\s?([^\W\d]+)")  # what a number counts
_MOST_SENTENCES = 2
_BATCH = Gated(r"(?<![a-z])b(?:atch|sz?(?![a-z]))|max_num|批")


def times(load: Statement, factor: float) -> Statement:
    """The load multiplied by `factor`."""
    quantity = load.quantity
    return replace(
        load,
        quantity=replace(
            quantity, value=round(quantity.value * factor, 9), decimal_value=round(quantity.decimal_value * factor, 9)
        ),
    )


_BEING = Gated(r"^(?:(?:that|which|who|are|is|be|being|will|can|all|usually|typically|running)\s){1,4}")


def is_part(page: Page, quantity: Quantity) -> bool:
    """Whether a number is a part of what is counted beside it: "25 of them", "40 of our 600 lawyers"."""
    return quantity.unit == "count" and _OF_THEM.match(page.text, quantity.end) is not None


def is_whole(page: Page, quantity: Quantity) -> bool:
    """Whether a number is the whole of which another is a part: the 600 of "40 of our 600 lawyers"."""
    return _OF_WHOLE.search(page.text[max(0, quantity.start - 40) : quantity.start]) is not None


def served_part(page: Page, quantity: Quantity) -> Statement | None:
    """The requests at once, where the clause says that a part of people or sessions is served; `None` otherwise."""
    if not is_part(page, quantity):
        return None
    words = page.clause_text(quantity.start, quantity.end)
    is_served = lex.TOGETHER.search(words) or lex.ACTIVE.search(words)
    return Statement("concurrency", quantity, words) if is_served else None


def is_state(page: Page, word: re.Match[str]) -> bool:
    """Whether a word for an output says what people or sessions do, and has no length: "50 are generating"."""
    if word.lastgroup != "output":
        return False
    if _IN_WORK.match(page.text, word.end()) or page.text[: word.start()].endswith("being "):
        return True  # "120 had an answer being generated"
    if not _OF_STATE.match(word.group()):
        return False
    _, right = page.clause(*word.span())
    is_said = _STATE_BEFORE.search(page.text[max(0, word.start() - 12) : word.start()])
    return is_said is not None and not find_quantities(page.text[word.end() : right])


# Behind a count: what it counts. Before one: the same ("日活 60 万", "学生 12 万").
_THINGS = Gated(
    r"\s?多?[个名位家辆]\s?[\u4e00-\u9fff]|\s?多?[名位]|\s(?!x(?![a-z])|in(?![a-z])|out(?![a-z])|ms(?![a-z])|times|and(?![a-z])|or(?![a-z])|per(?![a-z])|to(?![a-z])|of(?![a-z])|hours?|minutes?|days?|weeks?|months?|years?|o'clock)[a-z\-]{3,16}"
)
_THINGS_BEFORE = Gated(
    r"(?:日活|月活|用户|学生|员工|坐席|人员|人数|客户|会员|[a-z]{3,16}s\s?[:=]|dau|mau)(?:数|量)?\s?[:=约有共是]{0,2}\s?$"
)
_OF_A_WHOLE = re.compile(r"\sof\s(?:(?:the|our|all|these|those|its|their)\s){1,2}(?:about\s)?(?=\d)", re.IGNORECASE)


def counts_things(text: str, count: Quantity) -> bool:
    """Whether a number counts people or things that send requests: "120 students", "学生 12 万"."""
    if count.unit == "requests":
        return count.value > 1 and count.upper is None
    is_named = _THINGS.match(text, count.end) or _THINGS_BEFORE.search(text, 0, count.start)
    return count.unit == "count" and count.value > 1 and count.is_whole and count.upper is None and bool(is_named)


def with_shares_of_people(
    page: Page, claims: Claims, statements: list[Statement], *, is_of_each: bool = False
) -> list[Statement]:
    """Numbers of people, reduced to the share that is served together: "5% of the 2,000".

    `is_of_each`: what each of them sends was stated, so that any share of them counts. A share that only uses it within
    an hour or a day does not tell how many are served at once.
    """
    statements = [load for load in statements if not _is_of_each_person(page, load)]
    people = [load for load in statements if load.role == "concurrency" and load.quantity.value > 1]
    together, over, others = _shares(page, people, is_of_each=is_of_each)
    shares = together or over
    if not shares or (not together and len(over) > 1):
        return statements
    share = shares[0]
    if not people:  # "600 advisers, of whom 5% ..."
        counted = [total for total in find_quantities(page.text[: share.start]) if _stands_before(page, total, share)]
        if (of := _OF_A_WHOLE.match(page.text, share.end)) is not None:  # "a third of our 600 editors"
            counted = [total for total in find_quantities(page.text) if total.start == of.end()]
        people = [Statement("concurrency", total, total.words) for total in counted[-1:] if total.value > 1]
    latest = _corrected(page, people)
    if latest is None:
        return statements
    for part in shares:
        page.take(part.start, part.end)
    for part in others:
        claims.reading(f"{shares[-1].words!r} is planned for, not {page.take(part.start, part.end)!r}")
    remaining = [load for load in statements if load not in people]
    whole = latest.quantity
    for former in (load.quantity for load in people if load.quantity.start != whole.start):
        claims.reading(f"{latest.words!r} takes the place of {page.take(former.start, former.end)!r}")
    if not together:
        page.take(whole.start, whole.end)
        subject = f"{share.words!r} of {whole.words!r} in such a time"
        claims.leave_unread(f"{subject}: how many of them are served at once was not said")
        return remaining
    count = max(1.0, round(whole.decimal_value * math.prod(part.decimal_value for part in shares)))
    claims.reading(
        f"{' of '.join(repr(part.words) for part in (*shares[::-1], whole))} read as {count:g} served together"
    )
    served = replace(whole, value=count, decimal_value=count)
    return [*remaining, replace(latest, quantity=served, words=page.clause_text(shares[-1].start, shares[-1].end))]


def _shares(
    page: Page, people: list[Statement], *, is_of_each: bool
) -> tuple[list[Quantity], list[Quantity], list[Quantity]]:
    """The share of people that is served together, with those that it is a share of; shares over a time; lesser ones.

    The lesser ones hold at other times than the rest.
    """
    parts = [part for part in find_quantities(page.text) if _is_of_people(page, part)]
    apart = [part for part in parts if lex.AT_OTHER_TIMES.search(page.clause_text(part.start, part.end))]
    most = max((part.decimal_value for part in parts if part not in apart), default=0.0)
    lesser = [part for part in apart if part.decimal_value < most]
    parts = [part for part in parts if part not in lesser]
    together: list[Quantity] = []
    over: list[Quantity] = []
    for part in parts:
        words = page.clause_text(part.start, part.end)
        is_said = _OF_PEOPLE.match(page.text, part.end)
        is_ratio = _RATIO.search(part.words) is not None and lex.ACTIVE.search(words) is not None
        is_of_those = is_ratio or _OF_THOSE.search(words)
        if not is_of_those and any(_is_served(page, load, part) for load in people):
            continue
        is_active = lex.ACTIVE.search(words) and (is_said or not _FRACTION.search(words))
        is_together = lex.TOGETHER.search(words if is_said or is_of_those else _OF_ANYTHING.sub("", words))
        if is_active or is_together or (is_of_each and (is_said or _ARE_THERE.search(words))):
            together.append(part)
        elif is_said and lex.OVER_TIME.search(words):
            over.append(part)
    chain = _chain(page, parts, together) if together else []
    return chain, [] if together else over, lesser


def _chain(page: Page, parts: Sequence[Quantity], together: Sequence[Quantity]) -> list[Quantity]:
    """The last share that is served together, with those that it is a share of: "60% are online, half of those ask".

    None at all where another share is served together too.
    """
    chain = list(together[-1:])
    for former in reversed(parts[: parts.index(chain[0])]):
        clauses = [page.clause_text(part.start, part.end) for part in (former, chain[0])]
        there, then = ({match.group().lower() for match in _ARE_THERE.finditer(clause)} for clause in clauses)
        is_further = there and then <= {"active"} and not there & then
        is_of_former = _OF_THE_LAST.search(clauses[1]) or (is_further and _OF_THOSE.search(clauses[1]))
        of = _OF_A_WHOLE.match(page.text, former.end)
        between = page.text[of.end() if of else former.end : chain[0].start].lstrip("0123456789,.")
        apart = [part for part in SENTENCE_END.split(between) if part.strip()]
        counts = any(counts_things(between, count) for count in find_quantities(between))
        if not is_of_former or len(apart) > _MOST_SENTENCES or counts:
            break
        chain.insert(0, former)
    return chain if all(part in chain for part in together) else []


def _is_of_each_person(page: Page, load: Statement) -> bool:
    """Whether one request is what each of a share of people has: "1% of them have one request running"."""
    start, end = page.clause(load.quantity.start, load.quantity.end)
    shares = (part for part in find_quantities(page.text[start:end]) if part.unit == "share")
    of_people = any(_OF_PEOPLE.match(page.text, start + part.end) for part in shares)
    return load.role == "concurrency" and load.quantity.value == 1 and of_people


def _is_served(page: Page, load: Statement, share: Quantity) -> bool:
    """Whether people are said to be served together in their own clause, of which no share behind them is a part."""
    left, right = page.clause(load.quantity.start, load.quantity.end)
    return _SERVED.search(page.text, left, share.start if left <= share.start < right else right) is not None


def _is_of_people(page: Page, share: Quantity) -> bool:
    """Whether a number may be a share of people: nothing in its clause says of what else."""
    clause = page.clause_text(share.start, share.end)
    is_fraction = share.unit == "count" and 0.0 < share.decimal_value < 1.0 and _FRACTION.search(clause) is not None
    return (share.unit == "share" or is_fraction) and not _OF_ELSE.search(clause)


def _stands_before(page: Page, total: Quantity, share: Quantity) -> bool:
    """Whether a number counts people or things in the sentence of a share, or in the one before."""
    apart = [part for part in SENTENCE_END.split(page.text[total.end : share.start]) if part.strip()]
    return len(apart) <= _MOST_SENTENCES and counts_things(page.text, total)


def _corrected(page: Page, people: list[Statement]) -> Statement | None:
    """The only count of people, or the last one of the same people that corrects the first; `None` without such."""
    if not people:
        return None
    first = people[0].quantity
    noun = _NOUN.match(page.original, first.start)
    for later in reversed(find_quantities(page.text)):
        again = _NOUN.match(page.original, later.start) if later.start > first.end else None
        if noun and again and again[1] == noun[1] and CORRECTED.search(page.original, first.end, later.start):
            return Statement("concurrency", later, later.words)
    return people[0] if len(people) == 1 else None


def without_populations(
    page: Page, claims: Claims, statements: list[Statement], *, is_of_each: bool = False
) -> list[Statement]:
    """The statements without numbers of people beside those served together, or of a population alone.

    `is_of_each`: what each of them sends was stated, so that a population has a load.
    """
    counts = [
        statement
        for statement in statements  # a bare figure is one more of the load before it, and counts no people
        if statement.role == "concurrency"
        and not _BATCH.search(statement.words)
        and not (statement.quantity.unit == "count" and statement.words == statement.quantity.words)
    ]
    together = [count for count in counts if is_part(page, count.quantity)] or [
        count for count in counts if _is_together(page, count)
    ]
    # "1,000 are online together, but 80 are really waiting for an answer".
    together = [count for count in together if lex.ACTIVE.search(count.words)] or together
    remaining = list(statements)
    for other in (count for count in counts if count not in together):
        start, end = other.quantity.start, other.quantity.end
        if together:
            claims.reading(f"{together[0].words!r} is planned for, not {other.words!r}")
        elif not is_of_each and lex.POPULATION.search(page.clause_text(start, end)):
            claims.leave_unread(f"{other.words!r}: how many of them are served at once was not said")
        else:
            continue
        remaining.remove(other)
        page.take(start, end)
    if together:
        _take_totals(page, claims, together[0], [load.quantity.start for load in statements])
    return remaining


def _take_totals(page: Page, claims: Claims, served: Statement, stated: Sequence[int]) -> None:
    """Take totals of people off the page, and words that never all of them are served."""
    for total in find_quantities(page.text):
        before = lex.TOTAL_BEFORE.search(page.text[max(0, total.start - 24) : total.start])
        is_alone = before is not None and lex.ENDS_FIGURE.match(page.text, total.end) is not None
        is_more = (
            total.unit in ("count", "requests") and total.value > served.quantity.value and total.start not in stated
        )
        if is_more and (is_alone or is_whole(page, total) or lex.TOTAL_BEHIND.match(page.text, total.end)):
            page.take(total.start, total.end)
            claims.reading(f"{served.words!r} is planned for, not {total.words!r}")
    page.take_all(lex.NEVER_ALL)


def _is_together(page: Page, statement: Statement) -> bool:
    behind = _BEING.sub("", page.original[statement.quantity.end :].lstrip())
    cue = lex.TOGETHER.search(statement.words) or lex.ACTIVE.search(statement.words) or lex.TOGETHER.match(behind)
    return cue is not None
