"""Loads that are said of a part: of each person that is counted, of each card, of each node.

"Each of the 200 clerks sends 3 requests a minute" is 10 requests/s; "10 streams per card" on 8 cards are 80.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from .claims import Claims
from .gated import Gated
from .load_context import LOADS, Statement
from .number_words import AT_MOST
from .page import SENTENCE_END, Page
from .people_words import times
from .quantities import find_quantities

_OF_ONE = Gated(
    r"(?<![a-z])(?:an?|each|every|one)\s(?:active|busy|working|logged-in)\s(?:one|user|person|developer|dev|agent|seat|member|employee|student|customer)(?![a-z])|"
    r"(?<![a-z])(?:who(?:so)?ever(?:\s(?!asks|sends)[a-z]{2,10}){1,4}|someone|somebody|anyone|anybody|everyone|everybody|each|every\s(?:one|user|agent|person|employee|customer|developer|operator)|an?\s(?:user|agent|person|developer|operator|colleague)|"
    r"per\s(?:head|person|agent|user|seat)|while\s(?:on|in)\s(?:an?|the|their)\s(?:call|chat|session|conversation))(?![a-z])|"
    r"(?:在线|活跃|登录|当班|值班|使用)的?(?:人|用户|员工|坐席|老人|同学|学生)(?:每人)?(?:平均|大约|一般|每)|每(?:个|名|位)?(?:人|用户|坐席|座席|员工|客服|坐席员|同事)|(?:坐席|座席|用户|员工|客服|人员|同事)(?:每人)?平均",
)
_NO_PEOPLE = Gated(r"request|quer|stream|seq|session|conversation|connection|chat|请求|会话|并发|路|序列")
_MOST_OF_ONE = 8  # requests that one person has at once
_PART = (
    r"(?:per|for\seach|on\seach|each|every)\s(?:(?P<gpu>gpu|card|accelerator)|(?P<node>node|server|machine|box|host|vm))(?!s|[a-z]|\s(?:of|with|has))|"
    r"每\s?[张块]?(?P<gpu2>卡|gpu)|每\s?(?:台|个)?(?P<node2>台|机器?|节点|服务器)"
)
_PART_BEHIND = Gated(
    rf"\s?(?:(?:concurrent|parallel|users?|requests?|streams?|sessions?|chats?|in\sflight|at\sonce)\s){{0,2}}(?:{_PART})",
)
_PART_BEFORE = Gated(
    rf"(?:{_PART})\s?(?:(?:handles?|gets?|takes?|serves?|跑|处理|承载|约|大概|按)\s?){{0,2}}$",
)
_MOST_BEFORE = Gated(rf"{AT_MOST}\s?$")
_NEAR = 24  # characters before a load


def load_of_one(page: Page, statements: Sequence[Statement]) -> Statement | None:
    """The one load that is said of each of the people that are counted: "each of them asks twice a minute"."""
    rates = [one for one in statements if one.role == "rate"]
    own = [Statement("rate", one, one.words) for one in find_quantities(page.text) if one.unit == "requests/s/user"]
    said = [*(one for one in rates if _OF_ONE.search(_up_to(page, one))), *own]
    if not rates and not own:
        people = [one for one in statements if _counts_people(one)]
        said = [one for one in statements if one.role == "concurrency" and one not in people and _is_of_one(page, one)]
        said = said if people else []
    is_one = len(said) == 1 and len(rates) + len(own) <= 1
    return said[0] if is_one and said[0].quantity.upper is None else None


def of_all_people(page: Page, claims: Claims, statements: list[Statement], each: Statement | None) -> list[Statement]:
    """The load of one as that of all people that are counted, in place of both; as it stands where none are."""
    if each is None:
        return statements
    people = [one for one in statements if one.role == "concurrency" and not _NO_PEOPLE.search(one.quantity.words)]
    others = [one for one in statements if one.role == "concurrency" and one not in people]
    if len({one.quantity.value for one in people}) != 1 or others or people[0].quantity.upper:
        return [*statements, each] if each.quantity.unit != "requests/s/user" else statements
    whole = times(each, people[0].quantity.value)
    unit = " requests/s" if each.role == "rate" else " at once"
    claims.reading(f"{each.words!r} of each of {people[0].words!r} read as {whole.quantity.value:.4g}{unit}")
    for one in (*people, each):
        page.take(one.quantity.start, one.quantity.end)
    words = f"{people[0].words}, {each.words}"
    return [*(one for one in statements if one not in people), replace(whole, words=words)]


def of_all_hardware(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Loads of each card or node as those of all of them; where they are not counted, such a load is left unread.

    So is the most that each may have, beside the load itself: how a load is spread is no constraint here.
    """
    parts = [_part_of(page, one) if one.role in LOADS else None for one in statements]
    found = [one for one, part in zip(statements, parts, strict=True) if part is None]
    whole = {one.role for one in found}
    for one, part in zip(statements, parts, strict=True):
        if part is None:
            continue
        is_gpu = bool(part["gpu"] or part["gpu2"])
        count = claims.gpus if is_gpu else claims.values.get("nodes")
        most = _MOST_BEFORE.search(page.original, max(0, one.quantity.start - _NEAR), one.quantity.start)
        page.take(one.quantity.start, one.quantity.end)
        if most is not None and one.role in whole:
            words = page.original[most.start() : max(one.quantity.end, part.end())]
            claims.leave_unread(f"{words!r}: the most that each of them may have is no constraint here")
        elif count is None:
            claims.leave_unread(f"{one.words!r} of each {'GPU' if is_gpu else 'node'}: how many there are was not said")
        else:
            found.append(times(one, count))
            claims.reading(
                f"{one.words!r} of each {'GPU' if is_gpu else 'node'} read as {one.quantity.value * count:g} in all"
            )
    return found


def _part_of(page: Page, one: Statement) -> re.Match[str] | None:
    end = max(one.quantity.end, page.original.find(one.words, one.quantity.start) + len(one.words))
    behind = _PART_BEHIND.match(page.original, one.quantity.end) or _PART_BEHIND.match(page.original, end)
    return behind or _PART_BEFORE.search(page.original, max(0, one.quantity.start - _NEAR), one.quantity.start)


def _counts_people(one: Statement) -> bool:
    return one.role == "concurrency" and one.quantity.unit == "requests" and not _NO_PEOPLE.search(one.quantity.words)


def _is_of_one(page: Page, one: Statement) -> bool:
    """Whether a few requests are said of each person: "each dev can have 2 going"."""
    left, _ = page.clause(one.quantity.start, one.quantity.end)
    is_said = _OF_ONE.search(page.original, left, one.quantity.start) is not None
    return is_said and 1 < one.quantity.value <= _MOST_OF_ONE


def _up_to(page: Page, one: Statement) -> str:
    """The clause of a rate, with what its sentence says before it where that begins with when it holds."""
    left, right = page.clause(one.quantity.start, one.quantity.end)
    begins = max((end.end() for end in SENTENCE_END.finditer(page.original, 0, left)), default=0)
    before = page.original[begins:left].strip()
    return f"{before if before.lower().startswith('while ') else ''} {page.original[left:right]}"
