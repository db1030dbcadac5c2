"""The load of a request: token lengths, requests in flight, arrival rate, cached prefix, share of memory.

`patterns/matching.py` pairs numbers with the words for their roles. Numbers without a role stay on the page and are
reported as unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from ..conflicts.claims import Claims
from ..lexicons import load as lex
from ..patterns.gated import Gated
from ..patterns.matching import Pairing, Role, gap_cost, pair
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .claims import FAR, PHASES, claim_context, claim_lone_length, claim_statement, is_prompt
from .context import LOADS, MOST_AT_ONCE, Statement, counts_calls, counts_work, is_about_reading, is_listed, is_logged
from .length_percentiles import PERCENTILE
from .people import is_part, is_state, is_whole, served_part
from .rates import read_rates
from .rivals import is_marked, settled

_OF_EACH = Gated(
    r"(?<![a-z])(?:each|every(?:one|body)?|apiece|all\sof\sthem|per\s(?:user|person|head))(?![a-z])|每|各",
)
# "Each doc 1,400 tokens, label 180": the length of what is read, whatever word stands behind it.
_OF_EACH_ITEM = Gated(
    r"(?<![a-z])(?:each|every)\s(?P<noun>[a-z\-]{3,16})(?:\s(?:is|has|of|with|holds|about|around|some|roughly|~)){0,2}\s?$"
)
# A part of a time of day: "from 9:00 to 10:30".
_CLOCK_AFTER = re.compile(r":[0-5]\d(?![\d.])")
_CLOCK_BEFORE = re.compile(r"(?<![\d.])[012]?\d:$")
_PAIR_JOIN = re.compile(r"\s?(?:/|->|=>|→|:|\+|\|)\s?")
_SHARES = frozenset({"memory", "hit_rate"})
_UNITS = ("count", "tokens", "requests", "share")
_MARKS = dict.fromkeys(("input", "output", "tokens_of", "context"), (lex.PEAK, lex.USUAL, lex.LOWEST)) | {
    "concurrency": (lex.PEAK,),
    "rate": (lex.PEAK, lex.USUAL, lex.WHEN),
}
_LONGEST_GAP = 320  # characters between a figure and another of the same quantity
_NEAR = 2.0  # a smaller gap between two words of one meaning: they speak of the same figure
_LEAST_TOKENS_OF_PHASE = 128
_LEAST_TOKENS_OF_PROMPT = 8
_FOR_ONE = Gated(r"(?<![a-z])(?:for|to)\s(?:the|an?)\s$")  # "which is fastest for the single user"
# "One request is 3k in": what any of them is, not how many there are at once.
_OF_ANY_ONE = Gated(r"single|(?:one|1)\s(?:request|prompt|query|call|message)$")
_FEWEST_OF_JOB = 1_000_000  # "2M prompts" counts them
_CALLS = Gated(r"request|quer|请求")
_LEAST_INPUT_OF_PAIR = 32  # "2/8" is hardly a pair of lengths, "128/1" is

# "240 个坐席" counts what the noun names, not the tokens of a word beside it.
_COUNTS_THINGS = Gated(r"\s?[个名位家台所辆]\s?(?!中文|英文|汉|字|词|左右|上下|以|输入|输出)[\u4e00-\u9fff]")

# "between 500 and 8000 tokens (p50 1200, p99 7500)": what stands between a length and its next percentile.
_POINT = Gated(rf"(?: ?(?:tokens|toks?|tok))?[\s,;(/|:]{{1,4}}(?:{PERCENTILE.pattern})[\s:=≈~]{{0,3}}")


class _Load(Struct, frozen=True):
    """The numbers of a page, the roles that they were paired with, and the slash pairs ("4k/1k")."""

    quantities: tuple[Quantity, ...]
    pairings: tuple[Pairing[Quantity], ...]
    slashes: dict[Quantity, Quantity]

    def paired(self, quantity: Quantity) -> tuple[Pairing[Quantity], ...]:
        """The roles of one number: none, one, or two that share it."""
        return tuple(pairing for pairing in self.pairings if pairing.value is quantity)


def read_load(page: Page, claims: Claims) -> None:
    """Read lengths, concurrency, rates and shares; a bare "4k/1k" is input and output."""
    page.take_all(lex.CALENDAR, lex.ONE_OUT)
    per_user: list[str] = []
    for match in page.search(lex.ONE_AT_A_TIME):
        if lex.ONE_AT_A_TIME.match(page.original, match.start()) is None:
            page.take(*match.span())  # "single-stream speed", of which another reader took the second word
            continue
        if _OF_EACH.search(page.clause_text(*match.span())):
            claims.reading(f"{page.take(*match.span())!r} is said of each user: as many requests at once as users")
        elif _FOR_ONE.search(page.text[: match.start()]):
            per_user.append(page.take(*match.span()))
        else:
            claims.claim("concurrency", 1, page.take(*match.span()))
    for match in page.search(lex.VAGUE):
        claims.leave_unread(f"{page.take(*match.span())!r} is no number that can be planned for; say how many at once")
    for match in page.search(lex.NO_PREFIX_CACHE):
        claims.claim("prefix_cache_hit_rate", 0.0, page.take(*match.span()))
    for match in page.search(lex.EXPERT_IMBALANCE):
        factor = next(filter(None, match.groups()))
        claims.claim("expert_imbalance", float(factor), page.take(*match.span()))
    for match in page.search(lex.BINS):
        claims.leave_unread(
            f"{page.take(*match.span())!r} is a spread of lengths; say the mean, or give a file of them"
        )
    statements = read_rates(page, claims)
    load = _pair_up(page)
    for quantity in load.quantities:
        statements.extend(
            _statements(page, load, quantity)
            or _agreed_on(page, load, statements, quantity)
            or _continued(page, statements, quantity)
        )
    statements = settled(page, claims, statements)
    contexts = [statement for statement in statements if statement.role == "context"]
    for statement in statements:
        page.take(statement.quantity.start, statement.quantity.end)
        if statement not in contexts:
            claim_statement(page, claims, statement)
    for words in per_user:
        if claims.has("concurrency"):
            claims.reading(f"{words!r} is said of each user, beside {claims.words['concurrency']!r}")
        else:
            claims.claim("concurrency", 1, words)
    if len(contexts) == 1 and is_prompt(page, claims, contexts[0]):
        claim_context(page, claims, contexts.pop())
    claim_lone_length(page, claims)
    for context in contexts:
        claim_context(page, claims, context)


def _pair_up(page: Page) -> _Load:
    words = list(page.search(lex.ROLE))  # "at any one moment": no number of its own
    figures = [q for q in find_quantities(page.text) if not any(w.start() < q.start and q.end < w.end() for w in words)]
    figures = [q for q in figures if not (lex.FACTOR.match(page.text, q.end) or lex.DURATION.match(page.text, q.end))]
    figures = [q for q in figures if not _is_clock(page.text, q)]
    quantities = tuple(q for q in figures if q.unit in _UNITS and not counts_work(page, q) and not is_logged(page, q))
    slashes = {
        first: second
        for first, second in pairwise(quantities)
        if first.unit in ("count", "tokens")
        and second.unit in ("count", "tokens")
        and first.value >= _LEAST_INPUT_OF_PAIR
        and _PAIR_JOIN.fullmatch(page.text[first.end : second.start])
        and not is_listed(page, first, second)
    }
    in_pair = {*slashes, *slashes.values()}

    def accepts(role: str, quantity: Quantity) -> bool:
        is_length = not (
            counts_calls(page, quantity)
            or is_part(page, quantity)
            or is_whole(page, quantity)
            or _COUNTS_THINGS.match(page.text, quantity.end)
        )
        if role == "output" and quantity.unit == "tokens" and _is_of_item(page, quantity):
            return False
        fits = is_length if role in lex.LENGTHS else quantity not in in_pair and not is_whole(page, quantity)
        return fits and _accepts(role, quantity)

    # Shares first and apart: "50% of the prompt tokens are cached" has a length's word in between.
    things = [m.span() for q in figures if q.unit == "count" and (m := lex.WORK.match(page.text, q.end))]
    roles = [
        Role(str(match.lastgroup), *match.span(), follows=lex.FOLLOWS.match(page.text, match.start()) is not None)
        for match in page.search(lex.ROLE)
        if not (is_about_reading(page, match) or is_state(page, match))
        and not any(a <= match.start() and match.end() <= b for a, b in things)
    ]
    # "a 1k article draft": of two nouns, the last counts.
    compound = {
        a for a, b in pairwise(roles) if a.name != b.name and b.name == "output" and page.text[a.end : b.start] == " "
    }
    roles = [role for role in roles if role not in compound or role.follows]
    # "produces a 1k summary": two words for one figure.
    twice = {a for a, b in pairwise(roles) if a.name == b.name and _share_figure(page, quantities, a, b)}
    roles = _joined_roles(page, quantities, [role for role in roles if role not in twice])
    shares = pair(
        page.text,
        [role for role in roles if role.name in _SHARES],
        [quantity for quantity in quantities if quantity.unit == "share"],
        accepts,
    )
    used = {pairing.role for pairing in shares}
    numbers = pair(
        page.text,
        [role for role in roles if role not in used],
        [quantity for quantity in quantities if quantity.unit != "share"],
        accepts,
    )
    return _Load(quantities, (*shares, *(p for p in numbers if not _turns_pair(page, slashes, p))), slashes)


def _is_of_item(page: Page, quantity: Quantity) -> bool:
    """Whether a length is that of each of the things that are read: "each doc 1,400 tokens"."""
    item = _OF_EACH_ITEM.search(page.text[max(0, quantity.start - 40) : quantity.start])
    role = lex.ROLE.match(item["noun"]) if item is not None else None
    return item is not None and (role is None or role.lastgroup != "output")


def _turns_pair(page: Page, slashes: Mapping[Quantity, Quantity], pairing: Pairing[Quantity]) -> bool:
    """Whether a word beyond a comma would turn the two lengths of a pair around ("2k/300, input from 3 teams")."""
    quantity, role = pairing.value, pairing.role
    turned = "output" if quantity in slashes else "input" if quantity in slashes.values() else ""
    between = page.text[min(role.end, quantity.end) : max(role.start, quantity.start)]
    return role.name == turned and any(mark in between for mark in ",;.\n")


def _is_clock(text: str, quantity: Quantity) -> bool:
    """Whether a number is a part of a time of day ("from 9:00 to 10:30")."""
    before = text[max(0, quantity.start - 4) : quantity.start]
    return _CLOCK_AFTER.match(text, quantity.end) is not None or _CLOCK_BEFORE.search(before) is not None


def _joined_roles(page: Page, quantities: Sequence[Quantity], roles: Sequence[Role]) -> list[Role]:
    """Words for the same thing with no figure between them are one word: "answers come out at 200"."""
    joined: list[Role] = []
    for role in roles:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.name == role.name
            and gap_cost(page.text[last.end : role.start]) < _NEAR
            and not any(last.end <= q.start < role.start for q in quantities)
        ):
            joined[-1] = replace(role, start=last.start, follows=last.follows)
        else:
            joined.append(role)
    return joined


def _share_figure(page: Page, quantities: Sequence[Quantity], first: Role, then: Role) -> bool:
    inside = [q for q in quantities if first.end <= q.start and q.end <= then.start]
    return len(inside) == 1 and gap_cost(page.text[first.end : inside[0].start]) + then.start - inside[0].end < _NEAR


def _accepts(role: str, quantity: Quantity) -> bool:
    if role in _SHARES:
        return quantity.unit == "share" or (quantity.unit == "count" and 0 <= quantity.decimal_value <= 100)
    if role == "tokens_of":
        return quantity.unit == "tokens"
    if role == "input" and quantity.unit == "count" and 0 < quantity.value < _LEAST_TOKENS_OF_PROMPT:
        return False  # "the first 3 questions"
    if role in lex.LENGTHS and quantity.unit == "count" and not any(letter.isdigit() for letter in quantity.words):
        return quantity.value >= _LEAST_TOKENS_OF_PROMPT  # "of which one is out"
    if role in lex.LENGTHS:
        return quantity.unit == "tokens" or (quantity.unit == "count" and quantity.value < _FEWEST_OF_JOB)
    if role in PHASES:  # "prefill 4096, decode 512": small numbers beside a phase are degrees or counts of GPUs
        return quantity.unit == "tokens" or (quantity.unit == "count" and quantity.value >= _LEAST_TOKENS_OF_PHASE)
    if role in ("ttft", "tpot", "throughput"):
        return quantity.unit == "count"
    is_share = role == "concurrency" and 0.0 < quantity.decimal_value < 1.0
    return quantity.unit in ("count", "requests") and not is_share


def _statements(page: Page, load: _Load, quantity: Quantity) -> list[Statement]:
    """What a number states: by its own role, by its slash pair, or by the range before it ("typically 4096")."""
    pairings = load.paired(quantity)
    if pairings:
        return [Statement(p.role.name, quantity, page.original[slice(*p.span)].strip()) for p in pairings]
    if (part := served_part(page, quantity)) is not None:
        return [part]
    role = _role_in_pair(load, quantity)
    if (
        role is None
        and quantity.unit == "requests"
        and (quantity.value <= MOST_AT_ONCE or not _CALLS.search(quantity.words))
        and not is_whole(page, quantity)
        and not _OF_ANY_ONE.match(quantity.words)
    ):
        role = "concurrency"
    return [] if role is None else [Statement(role, quantity, quantity.words)]


def _agreed_on(page: Page, load: _Load, statements: Sequence[Statement], quantity: Quantity) -> list[Statement]:
    """Read a bare figure that was agreed on, and the bare ones before it, as further figures of the last stated load.

    "50 concurrent on average, marketing promises 500, and we settled on 150."
    """
    before = page.text[max(0, quantity.start - 60) : quantity.start]
    last = max((s for s in statements if s.quantity.end <= quantity.start), key=lambda s: s.quantity.end, default=None)
    is_chosen = lex.AGREED.search(before) or lex.SIZED_FOR.search(before)
    if last is None or last.role not in LOADS or quantity.unit != "count" or not is_chosen:
        return []
    if not lex.ENDS_FIGURE.match(page.text, quantity.end):
        return []
    bare = [q for q in load.quantities if last.quantity.end <= q.start < quantity.start]
    scale = last.quantity.factor if last.role == "rate" else 1.0
    return [
        Statement(last.role, replace(q, value=q.decimal_value * scale, decimal_value=q.decimal_value * scale), q.words)
        for q in [*(q for q in bare if q.unit == "count" and not load.paired(q)), quantity]
    ]


def _continued(page: Page, statements: Sequence[Statement], quantity: Quantity) -> list[Statement]:
    """A figure without a role that is called usual, lowest or highest states the same quantity as the one before it.

    "512 to 8k, typically 4k"; "1200 tokens (up to 6000)"; "40 people, at most 60".
    """
    marks = _MARKS.get(statements[-1].role, ()) if statements else ()
    if quantity.unit not in ("count", "tokens") or not marks:
        return []
    last = statements[-1]
    if last.role in LOADS and quantity.unit == "tokens":
        return []
    if last.role == "rate" and last.quantity.unit != "count":
        return []  # of a rate with a unit of its own others are read beside it
    end = last.quantity.end
    if last.role in LOADS:  # "25 concurrent, peaks of 70"
        end = max(end, page.original.find(last.words, max(0, last.quantity.start - len(last.words))) + len(last.words))
    further = Statement(last.role, quantity, quantity.words)
    if last.role in lex.LENGTHS and _POINT.fullmatch(page.original, last.quantity.end, quantity.start):
        return [further]
    gap = page.text[end : quantity.start]
    if len(gap) > _LONGEST_GAP:
        return []
    light = lex.OF_TIME.sub(" ", gap) if last.role in LOADS else gap
    if lex.ROLE.search(gap) or gap_cost(lex.OF_SPREAD.sub(" ", light)) >= FAR:
        return []
    return [further] if any(is_marked(page, further, mark) for mark in marks) else []


def _role_in_pair(load: _Load, quantity: Quantity) -> str | None:
    """In "4k/1k" the first number is the input, unless a role beside the other number says the reverse."""
    second = load.slashes.get(quantity)
    if second is not None:
        return "output" if any(p.role.name == "input" for p in load.paired(second)) else "input"
    first = next((left for left, right in load.slashes.items() if right is quantity), None)
    if first is not None:
        return "input" if any(p.role.name == "output" for p in load.paired(first)) else "output"
    return None
