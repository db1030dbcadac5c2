"""Numbers of people: how many are served at once, how many there are, and shares of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from . import load_lexicon as lex
from .claims import Claims
from .gated import Gated
from .load_context import LOADS, Statement
from .number_words import ENGLISH_NUMBER
from .page import SENTENCE_END, Page
from .quantities import Quantity, find_quantities, read_whole

_OF_PEOPLE = Gated(
    r"\s?(?:of\s(?:them|those|these|which|whom)|of\s(?:the|our|all|those|these)\s[a-z\d, ]{2,30}|are|is|use|will\sbe|"
    r"concurrent(?:ly)?|simultaneous(?:ly)?|active|online|at\sonce|in\sparallel|ha(?:s|ve|ving)|(?:run|send|wait|ask|generat|typ|chatt?)(?:s|es?|n?ing)|in\sflight)(?![a-z])|\s?(?:的|真正|同时|正?在(?:生成|等|用|线)|有(?:请求|问题|任务))",
)
_OF_THEM = Gated(
    r"\s?of\s(?:(?:them|those|these|which|whom|us)(?![a-z])|(?:(?:our|the|all|those|these|its|their)\s){1,2}(?:about\s)?\d)",
)
# Before a number of which others are a part ("40 of our 600", "40 users out of 600").
_OF_WHOLE = Gated(
    r"(?:\d\sof\s(?:(?:our|the|all|those|these|its|their)\s){1,2}|(?<![a-z])out\sof\s(?:(?:our|the|all|those|these|its|their)\s){0,2})(?:about\s)?$",
)
_OF_STATE = Gated(r"generating|producing|writing|emitting|receiving")
_STATE_BEFORE = Gated(r"(?<![a-z])(?:is|are|be|being|actually|really|currently|still|only|busy|ever)\s$")
_ONLINE = Gated(r"(?:在线|同时|活跃)[^,;。\d]{0,6}$|(?<![a-z])(?:online|active|logged\son|on\scall)\s[a-z\s]{0,12}$")
_BESIDE, _MOST_APART = 40, 120  # characters
_BATCH = Gated(r"(?<![a-z])b(?:atch|sz?(?![a-z]))|max_num|批")
_EACH_GROUP = Gated(
    r"(?<![a-z])(?:each|every\sone|apiece|per\s(?:tenant|team|department|customer|client|app|application|product|site|office|region|bot|squad|unit))(?![a-z])|每[个家]?|各",
)
_GROUPS = Gated(
    rf"(?<![A-Za-z0-9.,])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,3}})\s?[个家]?\s?"
    r"(?:(?:internal|different|other|separate|business|product|engineering|independent)\s)?"
    r"(?:(?:tenants|teams|departments|customers|clients|apps|applications|products|sites|offices|regions|business\sunits|bots|squads|units)(?![a-z])"
    r"|租户|团队|部门|客户|业务线?|应用|产品|地区|小组)",
)


def of_all_groups(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Loads stated for each of several tenants, teams or sites, times their number: "3 tenants, each 20 at once"."""
    groups = list(page.search(_GROUPS))
    count = read_whole(groups[0]["n"].lower()) if len(groups) == 1 else None
    if not count or count < 2:
        return statements
    [group] = groups
    loads: list[Statement] = []
    for load in statements:
        behind = page.original[group.end() : load.quantity.end + _BESIDE]
        ends = SENTENCE_END.search(page.original, group.end(), max(group.end(), load.quantity.start))
        apart = load.quantity.start < group.end() or (ends is not None and len(behind) > _MOST_APART)
        if load.role not in LOADS or apart or not _EACH_GROUP.search(behind):
            loads.append(load)
            continue
        page.take(*group.span())
        loads.append(times(load, count))
        claims.reading(
            f"{load.words!r} of each of {group.group().strip()!r} read as {loads[-1].quantity.value:g} in all"
        )
    return loads


def times(load: Statement, factor: float) -> Statement:
    """The load multiplied by `factor`."""
    quantity = load.quantity
    return replace(
        load,
        quantity=replace(
            quantity, value=round(quantity.value * factor, 9), decimal_value=round(quantity.decimal_value * factor, 9)
        ),
    )


_WAITING = Gated(r"(?:真正|同时|同一时刻)?在?(?:等|用|问|生成|提问|跑|处理)[^,;。]{0,6}的(?:也?就?只?有?|人)?")
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
    if word.lastgroup != "output" or not _OF_STATE.match(word.group()):
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


def counts_things(page: Page, count: Quantity) -> bool:
    """Whether a number counts people or things that send requests: "120 students", "学生 12 万"."""
    if count.unit == "requests":
        return count.value > 1 and count.upper is None
    is_named = _THINGS.match(page.text, count.end) or _THINGS_BEFORE.search(page.text, 0, count.start)
    return count.unit == "count" and count.value > 1 and count.is_whole and count.upper is None and bool(is_named)


def with_shares_of_people(
    page: Page, claims: Claims, statements: list[Statement], *, is_of_each: bool = False
) -> list[Statement]:
    """Numbers of people, reduced to the share that is served together: "5% of the 2,000".

    `is_of_each`: what each of them sends was stated, so that any share of them counts. A share that only uses it within
    an hour or a day does not tell how many are served at once.
    """
    people = [load for load in statements if load.role == "concurrency"]
    shares = [part for part in find_quantities(page.text) if part.unit == "share" and _is_of_people(page, part)]
    words = [page.clause_text(part.start, part.end) for part in shares]
    together = [
        part
        for part, text in zip(shares, words, strict=True)
        if is_of_each or lex.TOGETHER.search(text) or lex.ACTIVE.search(text)
    ]
    over = [
        part for part, text in zip(shares, words, strict=True) if part not in together and lex.OVER_TIME.search(text)
    ]
    share = next(iter(together or over), None)
    if len(people) > 1 or len(together or over) != 1 or share is None:
        return statements
    if not people:  # "600 advisers, of whom 5% ..."
        counted = [total for total in find_quantities(page.text[: share.start]) if counts_things(page, total)]
        if (of := _OF_A_WHOLE.match(page.text, share.end)) is not None:  # "a third of our 600 editors"
            counted = [total for total in find_quantities(page.text) if total.start == of.end()]
        people = [Statement("concurrency", total, total.words) for total in counted[-1:] if total.value > 1]
        statements = [*statements, *people]
    if not people:
        return statements
    whole = people[0]
    page.take(share.start, share.end)
    if not together:
        page.take(whole.quantity.start, whole.quantity.end)
        subject = f"{share.words!r} of {whole.quantity.words!r} in such a time"
        claims.leave_unread(f"{subject}: how many of them are served at once was not said")
        return [load for load in statements if load is not whole]
    count = max(1.0, round(whole.quantity.value * share.value))
    claims.reading(f"{share.words!r} of {whole.quantity.words!r} read as {count:g} served together")
    part = replace(whole.quantity, value=count, decimal_value=count)
    text = page.clause_text(share.start, share.end)
    return [replace(load, quantity=part, words=text) if load is whole else load for load in statements]


def _is_of_people(page: Page, share: Quantity) -> bool:
    """Whether a share is one of people: they are named behind it, or its clause says that so many are online."""
    left, _ = page.clause(share.start, share.end)
    is_online = any(words.search(page.original, left, share.start) for words in (_ONLINE, _WAITING))
    return _OF_PEOPLE.match(page.text, share.end) is not None or is_online


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
