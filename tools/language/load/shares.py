"""Loads that are stated per part: per counted person, per card, per node.

"Each of the 200 clerks sends 3 requests a minute" is 10 requests/s; "10 streams per card" on 8 cards are 80.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.number_words import AT_MOST, ENGLISH_NUMBER
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities, read_number
from .context import LOADS, Statement
from .people import counts_things, times

_PER_PERSON = Gated(
    r"(?<![a-z])(?:an?|each|every|one)\s(?:active|busy|working|logged-in)\s(?:one|user|person|developer|dev|agent|seat|member|employee|student|customer)(?![a-z])|"
    r"(?<![a-z])(?:who(?:so)?ever(?:\s(?!asks|sends)[a-z]{2,10}){1,4}|someone|somebody|anyone|anybody|everyone|everybody|each|every\s(?:one|user|agent|person|employee|customer|developer|operator)|an?\s(?:user|agent|person|developer|operator|colleague)|"
    r"per\s(?:head|person|agent|user|seat)|while\s(?:on|in)\s(?:an?|the|their)\s(?:call|chat|session|conversation))(?![a-z])|"
    r"(?:在线|活跃|登录|当班|值班|使用|在用|在岗)的?(?:人|用户|员工|坐席|老人|同学|学生)(?:每人)?(?:平均|大约|一般|每)|每(?:个|名|位)?(?:人|用户|坐席|座席|员工|客服|坐席员|同事|学生|同学)|每[名位]|人均|(?:坐席|座席|用户|员工|客服|人员|同事)(?:每人)?平均",
)
_GROUP = (
    "tenant|team|department|customer|client|app|application|product|site|office|region|bot|squad|unit|hospital|school|shop|store|"
    "branch|state|district|plant|depot|harbou?r|clinic|court|campus|brand|market|hotel|station|terminal|studio|ward|farm|bank"
)
# "120 robots, 每台每 4 秒", "3 tenants, 20 each": of what was counted before, which need not be machines to plan with.
_PER_THING = Gated(
    rf"(?<![a-z])(?:each|apiece|every(?=\s[a-z])|per\s(?:{_GROUP}))(?![a-z]|\s(?:s|sec|second|min|minute|h|hr|hour|day|week|month)(?![a-z]))|各|每(?:[台辆架只部艘套条家]|个)(?:[\u4e00-\u9fff]{{1,4}}?)?(?=\s?(?:每|平均|大约|\d))"
)
_GROUPS = Gated(
    rf"(?<![A-Za-z0-9.,])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,3}})\s?[个家]?\s?"
    rf"(?:[a-z]{{3,12}}\s)?(?:(?:{_GROUP})(?:e?s)(?![a-z])|租户|团队|部门|客户|业务线?|应用|产品|地区|小组)"
)
# "11 states, up to 2,700 questions an hour per state", "三县,每县 12 路": of each of what is counted elsewhere.
_PER_NOUN = Gated(
    r"(?<![a-z])(?:per|each|every)\s(?P<noun>(?!user|person|head|second|minute|hour|day|week|month|year|night|card|gpu|node|server|machine|host|box|replica|request|token|one|of)[a-z]{3,14})(?![a-z])|"
    r"每一?[个所家座间]?(?P<cn>(?![个位名人秒分小天日周月年张台块卡机节用路条次份段])[\u4e00-\u9fff]{1,2}?)(?=\s?\d|每|最多|平均|约|大约|有|高峰|峰值|同时)"
)
_COUNT = rf"(?<![\w.,])(?P<n>\d{{1,6}}|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,3}})"
# "三县合计 36 路": a figure of all, beside which that of each adds nothing.
_TOTAL = Gated(r"(?<![a-z])(?:in\s(?:total|all)|altogether|all\stold|overall)(?![a-z])|合计|总计|共计|总共|一共")
# "5 people, one request each at the same time"
_EACH_BEHIND = Gated(
    r"\s?(?:(?:requests?|prompts?|quer(?:y|ies)|chats?|sessions?)\s)?(?:each|apiece|(?:per|a)\s(?:head|person|user|seat))(?![a-z])"
)
_NO_PEOPLE = Gated(r"request|quer|stream|seq|session|conversation|connection|chat|请求|会话|并发|路|序列")
_MOST_PER_PERSON = 8  # requests that one person has at once
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
_MOST_BEFORE_EACH = 160


def load_per_person(page: Page, statements: Sequence[Statement]) -> Statement | None:
    """The only load that is stated per person, or `None`: "each of them asks twice a minute"."""
    rates = [s for s in statements if s.role == "rate"]
    user_rates = [Statement("rate", q, q.words) for q in find_quantities(page.text) if q.unit == "requests/s/user"]
    candidates = [*(s for s in rates if _is_of_one(page, s)), *user_rates]
    if not rates and not user_rates:
        people = [s for s in statements if _counts_people(s)]
        candidates = [s for s in statements if s.role == "concurrency" and s not in people and _is_per_person(page, s)]
        candidates = [s for s in candidates if people or _is_of_each_before(page, s)]
        candidates = candidates or [s for s in statements if s.role == "concurrency" and _is_of_one(page, s)]
    is_one = len(candidates) == 1 and len(rates) + len(user_rates) <= 1
    return candidates[0] if is_one and candidates[0].quantity.upper is None else None


def _is_of_one(page: Page, load: Statement) -> bool:
    """Whether a rate is that of a person or of each thing counted before it, or a number at once that of each group."""
    if _groups_of(page, load) is not None:
        return True
    words = _up_to(page, load)
    things = _counted_before(page, load) if _PER_THING.search(words) else []
    if load.role == "concurrency":
        return any(_GROUPS.match(page.original, thing.quantity.start) for thing in things)
    return bool(things) or _PER_PERSON.search(words) is not None


def of_all_people(page: Page, claims: Claims, statements: list[Statement], each: Statement | None) -> list[Statement]:
    """The load of each person as that of all counted people, in place of both; unchanged where none are counted."""
    if each is None:
        return statements
    people = [s for s in statements if s.role == "concurrency" and not _NO_PEOPLE.search(s.quantity.words)]
    others = [s for s in statements if s.role == "concurrency" and s not in people]
    near = _counted_before(page, each) if len({s.quantity.value for s in people}) != 1 else []
    for other in people if near else ():
        if other.quantity.value != near[0].quantity.value:
            claims.reading(f"{near[0].words!r} is planned for, not {other.words!r}")
            page.take(other.quantity.start, other.quantity.end)
            statements = [s for s in statements if s is not other]
    people = [s for s in people if s in statements] or near
    if not people and is_of_each(page, each):
        page.take(each.quantity.start, each.quantity.end)
        claims.leave_unread(f"{each.words!r} is the load of each: how many there are was not said")
        return statements
    is_several = is_of_each(page, each) and people[0] not in statements
    if len({s.quantity.value for s in people}) != 1 or (others and not is_several) or people[0].quantity.upper:
        return [*statements, each] if each.quantity.unit != "requests/s/user" else statements
    whole = times(each, people[0].quantity.value)
    unit = " requests/s" if each.role == "rate" else " at once"
    claims.reading(f"{each.words!r} of each of {people[0].words!r} read as {whole.quantity.value:.4g}{unit}")
    for load in (*people, each):
        page.take(load.quantity.start, load.quantity.end)
    words = f"{people[0].words}, {each.words}"
    return [*(s for s in statements if s not in people), replace(whole, words=words)]


def of_all_hardware(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Loads per card or node as loads in all; such a load is left unread where the cards or nodes are not counted.

    So is the most that each may have, beside the load itself: how a load is spread is no constraint here.
    """
    parts = [_part_of(page, s) if s.role in LOADS else None for s in statements]
    totals = [s for s, part in zip(statements, parts, strict=True) if part is None]
    whole = {s.role for s in totals}
    for load, part in zip(statements, parts, strict=True):
        if part is None:
            continue
        is_gpu = bool(part["gpu"] or part["gpu2"])
        count = claims.gpus if is_gpu else claims.values.get("nodes")
        most = _MOST_BEFORE.search(page.original, max(0, load.quantity.start - _NEAR), load.quantity.start)
        page.take(load.quantity.start, load.quantity.end)
        if most is not None and load.role in whole:
            words = page.original[most.start() : max(load.quantity.end, part.end())]
            claims.leave_unread(f"{words!r}: the most that each of them may have is no constraint here")
        elif count is None:
            claims.leave_unread(
                f"{load.words!r} of each {'GPU' if is_gpu else 'node'}: how many there are was not said"
            )
        else:
            totals.append(times(load, count))
            claims.reading(
                f"{load.words!r} of each {'GPU' if is_gpu else 'node'} read as {load.quantity.value * count:g} in all"
            )
    return totals


def _part_of(page: Page, load: Statement) -> re.Match[str] | None:
    end = max(load.quantity.end, page.original.find(load.words, load.quantity.start) + len(load.words))
    behind = _PART_BEHIND.match(page.original, load.quantity.end) or _PART_BEHIND.match(page.original, end)
    return behind or _PART_BEFORE.search(page.original, max(0, load.quantity.start - _NEAR), load.quantity.start)


def _counts_people(load: Statement) -> bool:
    return (
        load.role == "concurrency" and load.quantity.unit == "requests" and not _NO_PEOPLE.search(load.quantity.words)
    )


def without_parts(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """The statements without loads of each of several groups, where the load of all of them is stated too."""
    kept = list(statements)
    for role in LOADS:
        rivals = [s for s in statements if s.role == role]
        clauses = [page.clause_text(s.quantity.start, s.quantity.end) for s in rivals]
        totals = [s for s, words in zip(rivals, clauses, strict=True) if _TOTAL.search(words)]
        parts = [s for s, words in zip(rivals, clauses, strict=True) if s not in totals and _PER_NOUN.search(words)]
        for part in parts if len(totals) == 1 else ():
            page.take(part.quantity.start, part.quantity.end)
            claims.reading(f"{totals[0].words!r} is the load of all, {part.words!r} a part of it")
            kept.remove(part)
    return kept


@lru_cache(4)
def _counts_of(text: str, groups: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"{_COUNT}\s?{groups}", text, re.IGNORECASE))


def _plural(noun: str) -> str:
    return f"{noun[:-1]}(?:ie|y)s" if noun.endswith("y") else f"{noun}e?s"


def _groups_of(page: Page, each: Statement) -> Quantity | None:
    """The number of groups whose noun the clause of a load names as that of each; `None` unless one is stated."""
    per = _PER_NOUN.search(page.clause_text(each.quantity.start, each.quantity.end))
    if per is None:
        return None
    groups = f"[个家所座间]?{per['cn']}" if per["cn"] else rf"(?:[a-z\-]{{3,14}}\s)?{_plural(per['noun'])}(?![a-z])"
    start, end = each.quantity.start, each.quantity.end
    counts = [count for count in _counts_of(page.text, groups) if count.end("n") <= start or end <= count.start("n")]
    values = {read_number(count["n"].lower()) or 1.0 for count in counts}
    if len(values) != 1:
        return None
    value = values.pop()
    return Quantity(value, value, "count", *counts[0].span("n"), counts[0].group().strip())


def _counted_before(page: Page, each: Statement) -> list[Statement]:
    """The only things counted in the words before a load of each of them: "120 students, each asks …"."""
    if (groups := _groups_of(page, each)) is not None:
        return [Statement("concurrency", groups, groups.words)]
    start = each.quantity.start
    sentence, _ = page.sentence(start, start)
    for left in (sentence, max(0, start - _MOST_BEFORE_EACH)):
        things = [thing for thing in _things(page.text) if left <= thing.start and thing.end <= start]
        if len(things) == 1:
            return [Statement("concurrency", thing, thing.words) for thing in things]
    groups = _GROUPS.finditer(page.text, max(0, start - _MOST_BEFORE_EACH), start)  # 三个团队
    counts = [(read_number(group["n"].lower()) or 1.0, group) for group in groups]
    counted = [Quantity(n, n, "count", *group.span(), group.group()) for n, group in counts]
    return [Statement("concurrency", group, group.words) for group in counted if len(counted) == 1]


@lru_cache(4)
def _things(text: str) -> tuple[Quantity, ...]:
    """Every number of things in a text, devices among them."""
    return tuple(q for q in find_quantities(text) if counts_things(text, q) or q.spelled == "devices")


def is_of_each(page: Page, load: Statement) -> bool:
    """Whether the words of a load, or those before it in its clause, say that it is one person's."""
    left, _ = page.clause(load.quantity.start, load.quantity.end)
    return _PER_PERSON.search(page.original, left, load.quantity.end) is not None


def _is_per_person(page: Page, load: Statement) -> bool:
    """Whether a few requests are stated per person: "each dev can have 2 going"."""
    left, _ = page.clause(load.quantity.start, load.quantity.end)
    if _EACH_BEHIND.match(page.original, load.quantity.end):
        return load.quantity.value <= _MOST_PER_PERSON
    is_said = _PER_PERSON.search(page.original, left, load.quantity.start) is not None
    return is_said and 1 < load.quantity.value <= _MOST_PER_PERSON


def _is_of_each_before(page: Page, load: Statement) -> bool:
    """Whether a load is that of each of the things that its sentence counts: "7 curators, one request each"."""
    return _EACH_BEHIND.match(page.original, load.quantity.end) is not None and bool(_counted_before(page, load))


def _up_to(page: Page, load: Statement) -> str:
    """The clause of a rate, behind the start of its sentence where that says when it holds ("while …")."""
    left, right = page.clause(load.quantity.start, load.quantity.end)
    begins, _ = page.sentence(left, left)
    before = page.original[begins:left].strip()
    return f"{before if before.lower().startswith('while ') else ''} {page.original[left:right]}"
