"""Limits on latency and speed: TTFT, TPOT, end to end and tokens per second, with the statistic of each.

A speed of one user ("30 tokens/s per user") is a TPOT; a speed of the whole deployment is a throughput. A latency
without a word for its kind ("latency 2 s") is reported as unread.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from ..conflicts.claims import Claims
from ..lexicons import limits as lex
from ..patterns.gated import Gated, Pattern
from ..patterns.matching import Pairing, Role, gap_cost, pair
from ..patterns.page import STATISTIC, Page
from ..patterns.quantities import Quantity, find_quantities
from ..said import Statistic

_BARE = 0.4  # "latency budget: 600 ms to first token": words that say which latency count as nearer
_AS_WELL = Gated(r"\s(?:too|as\swell|likewise)(?![a-z])")  # "80 ms per token, average too"
# Around "average" in a clause of its own: it speaks of what stands before.
_NO_SUBJECT = Gated(
    r"[\s:]*(?:(?:measured|stated|taken|counted|evaluated|given|as|by|at|on|in|the|an?)[\s:]+){0,4}(?:统计|口径|[按取以计为是][\s:]?){0,4}[\s:]*"
)


class _Limit(Struct, frozen=True):
    field: str
    value_ms: float
    start: int
    end: int


_Stated = tuple[Statistic | None, _Limit]


def read_limits(page: Page, claims: Claims) -> None:
    """Read latency limits with their statistics, and speeds; what remains of the numbers stays on the page."""
    statistics = _take_statistics(page, claims)
    limits = _read_times(page, claims) + _read_speeds(page, claims)
    _claim_with_statistics(page, claims, sorted(limits, key=lambda limit: limit.start), statistics)


def _take_statistics(page: Page, claims: Claims) -> list[tuple[Statistic, int, int]]:
    statistics: list[tuple[Statistic, int, int]] = []
    for match in page.search(lex.STATISTIC_WORDS):
        figure = match["p"] or match["nth"] or match["cn"] or match["share"] or match["share2"]
        is_average = match["mean"] or match["mean2"]
        start = _begins(page, *match.span()) if is_average else match.start()
        if is_average and not _near_limit(page, start, match.end()):
            continue
        statistic: Statistic = "mean" if is_average else "p50"
        if figure is not None:
            statistic = lex.STATISTICS.get(figure, "p99")
            if figure not in lex.STATISTICS:
                claims.reading(f"{match.group().strip()!r} read as p99, the strictest statistic that a plan can hold")
        statistics.append((statistic, start, match.end()))
        page.take(*match.span(), mark=STATISTIC)
    return statistics


def _begins(page: Page, start: int, end: int) -> int:
    """Where "average" begins: with the end of the clause before where it has one of its own ("TPOT 50 ms, mean")."""
    left, right = page.clause(start, end)
    is_alone = left > 1 and page.text[left - 1] in "(,"
    return left - 1 if is_alone and _NO_SUBJECT.fullmatch(page.text[left:start] + page.text[end:right]) else start


def _near_limit(page: Page, start: int, end: int) -> bool:
    """Whether "average" speaks of a latency ("average TTFT", "TTFT 2 s on average") and not of a length."""
    if _AS_WELL.match(page.text, end):
        return True
    left, right = page.clause(start, end)
    following = lex.ROLE.search(page.text, end, right)
    if following is not None and gap_cost(page.text[end : following.start()]) < 0.6:
        return True
    if lex.LENGTH_FOLLOWS.match(page.text, end):
        return False
    speeds = [q for q in find_quantities(page.text[left:start]) if q.unit.startswith("tokens/s")]
    if speeds and (speeds[-1].unit == "tokens/s/user" or lex.ONE_USER.search(page.original, left, right)):
        return True  # "20 tokens/s per reader on average"
    return any(match.lastgroup in lex.FIELDS for match in lex.ROLE.finditer(page.text, left, start))


def _roles(page: Page) -> list[Role]:
    """The latency words of the page; a bare "latency" beside "TTFT" is part of it."""
    roles: list[Role] = []
    for match in page.search(lex.ROLE):
        role = Role(str(match.lastgroup), *match.span(), cost=_BARE if match.lastgroup == "latency" else 0.0)
        if role.name == "latency" and roles and gap_cost(page.text[roles[-1].end : role.start]) < 0.6:
            continue
        if roles and roles[-1].name == "latency" and gap_cost(page.text[roles[-1].end : role.start]) < 0.6:
            roles.pop()
        roles.append(role)
    return roles


def _read_times(page: Page, claims: Claims) -> list[_Limit]:
    quantities = [q for q in find_quantities(page.text) if q.unit in ("ms", "ms/token", "count")]
    times = [q for q in quantities if q.unit != "count" or _shares_unit(page, q, quantities)]
    roles = _roles(page)
    limits: list[_Limit] = []
    last: Pairing[Quantity] | None = None
    paired = pair(page.text, roles, times, lambda role, q: q.unit != "ms/token" or role in ("tpot", "latency"))
    text = page.text
    for role in {pairing.role for pairing in paired}:
        page.take(role.start, role.end)
    pairings: dict[Quantity, Pairing[Quantity]] = {}
    for pairing in paired:
        if pairing.value in pairings and pairing.role.name in lex.FIELDS:  # one figure for two limits
            limits.append(_limit(page, claims, pairing.role.name, pairing.value, *pairing.span))
        pairings.setdefault(pairing.value, pairing)
    for quantity in times:
        pairing = pairings.get(quantity)
        if pairing is None and quantity.unit == "ms" and last is not None and _continues(text, last, quantity):
            pairing = Pairing(last.role, quantity)
        if pairing is None:
            if quantity.unit == "ms/token":
                limits.append(_limit(page, claims, "tpot", quantity, quantity.start, quantity.end))
            continue
        name = "tpot" if quantity.unit == "ms/token" else pairing.role.name
        start, end = pairing.span if pairings.get(quantity) is pairing else (quantity.start, quantity.end)
        if name in lex.FIELDS and lex.FROM_BELOW.search(page.original[max(0, quantity.start - 40) : quantity.start]):
            words = page.clause_text(quantity.start, quantity.end)
            claims.leave_unread(f"{words[:200]!r} bounds a latency from below, which no plan keeps")
            page.take(quantity.start, quantity.end)
        elif name in lex.FIELDS:
            limits.append(_limit(page, claims, name, quantity, start, end))
        else:
            words = page.original[start:end].strip()
            claims.leave_unread(
                f"{words!r}: say of what: the first token (TTFT), each token (TPOT) or the whole answer"
            )
            page.take(quantity.start, quantity.end)
        last = pairing
    return limits


def _limit(page: Page, claims: Claims, name: str, quantity: Quantity, start: int, end: int) -> _Limit:
    value = _value_ms(claims, quantity)
    page.take(quantity.start, quantity.end)
    return _Limit(lex.FIELDS[name], value, start, end)


def _value_ms(claims: Claims, quantity: Quantity) -> float:
    if quantity.upper is not None:
        claims.reading(f"{quantity.words!r} read as a limit of {quantity.upper:g} ms, its upper end")
        return quantity.upper
    return quantity.decimal_value


def _shares_unit(page: Page, quantity: Quantity, quantities: list[Quantity]) -> bool:
    """ "2000/50 ms": a bare number joined by a slash to one with a unit of time."""
    following = next((q for q in quantities if q.start >= quantity.end), None)
    return (
        following is not None
        and following.unit == "ms"
        and following.spelled.lower() in ("ms", "毫秒")
        and page.text[quantity.end : following.start].strip() == "/"
    )


def _continues(text: str, last: Pairing[Quantity], quantity: Quantity) -> bool:
    """ "TTFT p50 1 s, p99 2 s": a further figure of the same limit, told by its statistic."""
    gap = text[last.span[1] : quantity.start]
    return STATISTIC in gap and gap_cost(gap) < 2.0


def _read_speeds(page: Page, claims: Claims) -> list[_Limit]:
    """Tokens per second: of one user (a TPOT), of one GPU, or of the whole."""
    limits: list[_Limit] = []
    for quantity in find_quantities(page.text):
        if not (quantity.unit.startswith("tokens/s") or _is_speed(page, quantity)):
            continue
        before = page.original[page.clause(quantity.start, quantity.end)[0] : quantity.start]
        if quantity.unit == "tokens/s/gpu" or (quantity.unit == "tokens/s" and lex.ONE_GPU.search(before)):
            claims.claim("tokens_per_second_per_gpu", quantity.decimal_value, page.take(quantity.start, quantity.end))
            continue
        if quantity.unit == "tokens/s/user" or _is_of_one_user(page, claims, quantity):
            if quantity.value <= 0:
                raise claims.refusal(f"impossible speed: {quantity.words!r}; tokens/s per user must be above 0")
            limits.append(_Limit("tpot_ms_max", 1000.0 / quantity.decimal_value, quantity.start, quantity.end))
            claims.reading(f"{quantity.words!r} read as a TPOT of {1000.0 / quantity.decimal_value:.4g} ms")
        else:
            claims.claim("min_tokens_per_second", quantity.decimal_value, quantity.words)
        page.take(quantity.start, quantity.end)
    return limits


_TOKENS_COME = Gated(r"(?<![a-z])(?:tokens?|words?)\s(?:[a-z]+\s){1,4}$|(?:吐|出)字\S{0,6}$|字\s?[吐出]\S{0,6}$")
_NAMES_REQUESTS = Gated(r"rp[sm]|qp[sm]|req|r/s|quer|call|prompt|chat|请求")


def _is_speed(page: Page, quantity: Quantity) -> bool:
    """Whether a bare rate is one of tokens, by the words before it: "tokens should come at 30 a second"."""
    is_bare = quantity.unit == "requests/s" and _NAMES_REQUESTS.search(quantity.words) is None
    return is_bare and _TOKENS_COME.search(page.original[: quantity.start]) is not None


_FAR_FROM_ONLY = 9.0  # from the only limit a statistic may stand further away
# No GPU decodes one sequence faster than some thousand tokens a second.
_MOST_OF_ONE_USER = 5000
# Below so many tokens/s for each of the requests a bound on the whole deployment bounds nothing.
_LEAST_OF_ANY = 100  # tokens/s
_LEAST_OF_EACH = 5.0
_SLOWEST = 0.1  # tokens/s: one in ten seconds
# People read along with a stream of up to some hundred tokens/s: a larger bound is meant for the whole.
_MOST_READ_ALONG = 250.0
_OF_WHOLE = "{!r} read as the throughput of the whole deployment, not of one user"


def settle_speed(claims: Claims) -> None:
    """Take a speed for that of one user where the load makes far more in all, and no words say that it is of all."""
    speed, words = claims.values.get("min_tokens_per_second"), claims.words.get("min_tokens_per_second", "")
    if speed is None or speed > _MOST_READ_ALONG or claims.has("tpot_ms_max"):
        return
    if speed < _SLOWEST:
        claims.drop("min_tokens_per_second")
        claims.leave_unread(f"{words!r} is no speed that a server could miss")
        return
    values, note = claims.values, _OF_WHOLE.format(words)
    is_open = note in claims.readings
    tokens_per_s = values.get("request_rate", 0.0) * values.get("output_tokens", 0)
    load = max(tokens_per_s / 2, values.get("concurrency", 0) * _LEAST_OF_EACH)
    # Where no load is stated, even one user makes as much: over all users it would limit nothing.
    least = load or _LEAST_OF_ANY
    if speed < (1.0 if is_open else 0.2) * least:
        claims.readings = [reading for reading in claims.readings if reading != note]
        claims.drop("min_tokens_per_second")
        claims.claim("tpot_ms_max", 1000.0 / speed, words)
        why = "the load makes far more in all" if load else "a deployment makes more in all"
        claims.reading(f"{words!r} read as a TPOT of {1000.0 / speed:.4g} ms: {why}")


def _is_of_one_user(page: Page, claims: Claims, quantity: Quantity) -> bool:
    if quantity.decimal_value > _MOST_OF_ONE_USER:
        return False
    left, right = page.clause(quantity.start, quantity.end)
    before, after = page.original[max(0, left - 12) : quantity.start], page.original[quantity.end : right]
    user = _distance(lex.ONE_USER, before, after)
    whole = _distance(lex.WHOLE, before, after)
    if user is None and whole is None:
        claims.reading(_OF_WHOLE.format(quantity.words))
    return user is not None and (whole is None or user <= whole)


def _distance(pattern: Pattern, before: str, after: str) -> int | None:
    """Characters to the nearest match on either side."""
    distances = [len(before) - match.end() for match in pattern.finditer(before)]
    distances += [match.start() for match in pattern.finditer(after)]
    return min(distances, default=None)


def _claim_with_statistics(
    page: Page, claims: Claims, limits: list[_Limit], statistics: list[tuple[Statistic, int, int]]
) -> None:
    chosen: dict[int, Statistic] = {}
    near: dict[int, float] = {}
    for statistic, start, end in statistics:
        shared = lex.FOR_ALL.search(page.original[max(0, start - 25) : start]) or lex.PLURAL_AFTER.match(
            page.original[end:]
        )
        if shared:
            for i in range(len(limits)):
                chosen.setdefault(i, statistic)
            continue
        costs = [(_gap(page, limit, start, end), i) for i, limit in enumerate(limits)]
        cost, nearest = min(costs, default=(6.0, -1))
        most = _FAR_FROM_ONLY if len(limits) == 1 else 6.0
        if cost < min(most, near.get(nearest, most)):
            chosen[nearest], near[nearest] = statistic, cost
    for i, (limit, after) in enumerate(pairwise(limits)):
        is_pair = {limit.field, after.field} == {"ttft_ms_max", "tpot_ms_max"}
        if (
            is_pair
            and i + 1 in chosen
            and i not in chosen
            and lex.AND.fullmatch(page.original[limit.end : after.start])
        ):
            chosen[i] = chosen[i + 1]  # "TTFT 1 s and TPOT 40 ms at p95"
    for field in lex.FIELDS.values():
        stated: list[_Stated] = [(chosen.get(i), limit) for i, limit in enumerate(limits) if limit.field == field]
        if len({statistic for statistic, _ in stated}) > 1:
            stated = _strictest(page, claims, stated)
        for statistic, limit in stated:
            words = page.original[limit.start : limit.end].strip()
            claims.claim(field, limit.value_ms, words)
            if statistic is not None:
                claims.claim(field.replace("_ms_max", "_statistic"), statistic, words)


def _strictest(page: Page, claims: Claims, stated: list[_Stated]) -> list[_Stated]:
    """A plan holds one statistic of a limit: the outermost. A limit repeated without a statistic is a restatement."""
    outer = max(stated, key=lambda entry: (lex.STRICTER.index(entry[0] or "mean"), entry[0] is not None))
    for statistic, limit in stated:
        if limit.value_ms != outer[1].value_ms:
            words = page.original[limit.start : limit.end].strip()
            claims.leave_unread(
                f"{words!r} ({statistic or 'no statistic'}): a plan holds one limit, {outer[0]} is kept"
            )
    return [entry for entry in stated if entry[0] == outer[0]]


def _gap(page: Page, limit: _Limit, start: int, end: int) -> float:
    if end <= limit.start:
        return gap_cost(page.text[end : limit.start])
    if start >= limit.end:
        return gap_cost(page.text[limit.end : start]) + 0.05
    return 0.0
