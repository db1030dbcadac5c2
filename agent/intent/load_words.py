"""The load of a request: token lengths, requests in flight, arrival rate, cached prefix, share of memory.

Numbers and the words that say what they are for are paired by `matching.py`. What stays without a role stays on the
page and is reported as unread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .claims import Claims
from .matching import Pairing, Role, gap_cost, pair
from .page import Page
from .quantities import Quantity, find_quantities

_LENGTH = r"(?:[\s_\-](?:sequence|seq|prompt|token|context|text))?s?(?:[\s_\-](?:lengths?|len|sizes?|tokens?|toks?))?(?![a-z])"
_ROLES: tuple[tuple[str, str], ...] = (
    (
        "hit_rate",
        r"(?<![a-z])(?:(?:prefix|prompt|kv)?[\s_\-]?cach(?:e|ing)[\s_\-](?:hits?|reuse)(?:[\s_\-]?(?:rate|ratio))?|hit[\s_\-]?(?:rate|ratio)|"
        r"prefix[\s\-](?:cach(?:e|ed|ing)|reuse|sharing|hits?)(?:[\s_\-](?:rate|ratio))?|shared\sprefix(?:es)?|"
        r"(?:prompts?|inputs?|tokens|prefix(?:es)?)\s(?:is\s|are\s|being\s|already\s|will\sbe\s|comes?\sfrom\s(?:the\s)?){0,2}(?:cached?|shared|reused)|"
        r"(?:is|are)\s(?:already\s)?cached|cached)(?![a-z])|(?:前缀)?缓存(?:的)?命中率?|前缀(?:缓存|复用|命中)率?|命中率",
    ),
    (
        "memory",
        r"(?<![a-z])(?:(?:gpu|device|hbm)?[\s_\-]?(?:v?ram|mem(?:ory)?)[\s_\-](?:utili[sz]ation|usage|fraction|util|use|cap|limit|ratio)(?:[\s_\-]static)?|"
        r"(?:of\s)?(?:the\s|its\s|their\s|each\s|every\s|gpu\s|gpu's\s|device\s|card\s|card's\s|total\s|available\s)*(?:memory|vram|hbm))(?![a-z])"
        r"|(?:的)?(?:显存|内存)(?:的)?(?:利用率|使用率|占用率?|使用比例|使用|比例|上限)?",
    ),
    ("rate", r"(?<![a-z])(?:qps|rps|(?:request|arrival)[\s_\-]rates?|requests?[\s_]per[\s_]second|(?:arriv\w{0,4}\s|coming\sin\s)?(?:per|every|each)\ssecond)(?![a-z])|请求(?:速率|率)|每秒请求数?"),
    (
        "concurrency",
        r"(?<![a-z])(?:(?:prompts?|queries)\s(?:at\s(?:once|a\stime)|in\sparallel|concurrently)|max[_\s\-]?num[_\s\-]?seqs|max[_\s\-]?batch(?:[_\s\-]?size)?|concurrenc(?:y|ies)|concurrent(?:ly)?|"
        r"simultaneous(?:ly)?|in[\s\-]flight|at\s(?:a|the\ssame)\stime|at\sonce|in\sparallel|parallel\srequests|batch(?:es)?(?:[\s_\-]?(?:sizes?|of))?|bsz?|users?|num[_\s]requests)(?![a-z])"
        r"|并发(?:数|量|度|请求数?|用户数?|路数)?|批(?:量)?(?:大小|次|处理大小)?|用户数|同时(?:在线|处理|服务)?",
    ),
    (
        "context",
        r"(?<![a-z])(?:(?:max[\s_\-])?(?:context|ctx)(?:[\s_\-](?:lengths?|len|windows?|sizes?|tokens))?s?|seq(?:uence)?[\s_\-]?len(?:gths?)?|max[\s_\-]?model[\s_\-]?len)(?![a-z])"
        r"|上下文(?:长度|窗口)?|序列长度",
    ),
    (
        "input",
        rf"(?<![a-z])(?:isl|avg_isl|inputs?{_LENGTH}|inputting|prompts?{_LENGTH}|prefill[\s_\-](?:lengths?|tokens?|size)|questions?|documents?|docs|articles?|"
        r"(?<=[\dk])[\s\-]?in(?=\s?(?:[,/;.)+&|:]|$|\band\b|plus\b|then\b|\d[\dk,.]*\s?(?:tokens?\s)?out))|(?<=[\dk]\stokens)\sin(?=\s?(?:[,/;.)+&|]|$|and\b))|"
        r"in(?=\s?[:=]?\s?\d[\dk,.]*\s?(?:tokens?)?\s?[,/;]?\s?(?:and\s)?out)|in(?=\s?[:=]))(?![a-z])"
        r"|输入(?:的)?(?:序列|文本|prompt)?(?:的)?(?:长度|token数?)?|提示词?(?:长度)?|入参长度|文档(?:长度)?",
    ),
    (
        "output",
        rf"(?<![a-z])(?:osl|avg_osl|outputs?{_LENGTH}|outputting|completions?{_LENGTH}|generat(?:e|es|ed|ing|ions?){_LENGTH}|responses?(?!\stime){_LENGTH}|"
        rf"repl(?:y|ies){_LENGTH}|answers?{_LENGTH}|decode[\s_\-](?:lengths?|tokens?)|(?:new|max[\s_\-](?:new[\s_\-])?)tokens|max[\s_\-]?tokens|summar(?:y|ies)|produc(?:e|es|ing)|"
        r"emit(?:s|ting)?|out(?!\s?of(?![a-z])))(?![a-z])|输出(?:的)?(?:序列|文本)?(?:的)?(?:长度|token数?)?|生成(?:的)?(?:长度|内容)?|回复(?:长度)?|回答(?:长度)?|答案|产出",
    ),
    ("tokens_of", r"(?<![a-z])(?:requests?|sequences?|messages?|conversations?|chats?)\s(?:of|are|is|with|have|has|averag\w{1,4})(?![a-z])"),
    ("ttft", r"(?<![a-z])(?:ttft(?:[\s_\-]?ms)?(?:_max)?|time[\s\-]to[\s\-]first[\s\-]token)(?![a-z])"),
    ("tpot", r"(?<![a-z])(?:tpot(?:[\s_\-]?ms)?(?:_max)?|itl(?:[\s_\-]?ms)?|time[\s\-]per[\s\-]output[\s\-]token)(?![a-z])"),
)  # fmt: skip
_ROLE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ROLES), re.IGNORECASE)
_LENGTHS = frozenset({"input", "output", "context"})
_PAIR_JOIN = re.compile(r"\s?(?:/|->|=>|→|:|\+|\|)\s?")
_HEADROOM = re.compile(
    r"(?<![a-z])(?:leav(?:e|ing)|reserv(?:e|ing)|spare|headroom|free|unused|set\saside)(?![a-z])|预留|保留|留出?|空出|余量|空闲",
    re.IGNORECASE,
)
_TYPICAL = re.compile(
    r"(?:typical(?:ly)?|usual(?:ly)?|mostly|most\soften|average|avg|on\saverage|mean|mainly|通常|一般|平均|典型|多数)\D{0,12}$",
    re.IGNORECASE,
)
_NO_CACHE = re.compile(
    r"(?:no|without|disable)\s(?:any\s)?prefix[\s\-]cach(?:e|ing)|(?:不用|没有|无|关闭)前缀缓存", re.IGNORECASE
)
_WITHOUT_CLOCK = re.compile(r"24\s?/\s?7|(?<!\d)365(?!\d)")


@dataclass(frozen=True, slots=True)
class _Load:
    """The paired numbers of a page, with the places of slash pairs ("4k/1k")."""

    pairings: tuple[Pairing[Quantity], ...]
    quantities: tuple[Quantity, ...]
    slashes: dict[Quantity, Quantity]


def read_load(page: Page, claims: Claims) -> None:
    """Read lengths, concurrency, rates and shares; a bare "4k/1k" is input and output."""
    for match in page.search(_WITHOUT_CLOCK):
        page.take(*match.span())
    for match in page.search(_NO_CACHE):
        claims.claim("prefix_cache_hit_rate", 0.0, page.take(*match.span()))
    for quantity in find_quantities(page.text):
        if quantity.unit == "requests/s":
            claims.claim("request_rate", quantity.decimal_value, page.take(quantity.start, quantity.end))
    load = _pair_up(page)
    paired = {pairing.value: pairing for pairing in load.pairings}
    context: tuple[Quantity, str] | None = None
    for quantity in load.quantities:
        role = _role_of(page, load, paired, quantity)
        if role is None:
            if quantity.unit == "requests":
                _claim_concurrency(claims, quantity, page.take(quantity.start, quantity.end))
            continue
        start, end = paired[quantity].span if quantity in paired else (quantity.start, quantity.end)
        words = page.original[start:end].strip()
        page.take(quantity.start, quantity.end)
        if role == "context":
            context = (quantity, words)
        else:
            _claim(page, claims, role, quantity, words)
    _claim_context(claims, context)


def _pair_up(page: Page) -> _Load:
    quantities = tuple(q for q in find_quantities(page.text) if q.unit in ("count", "tokens", "requests", "share"))
    slashes = {
        first: second
        for first, second in zip(quantities, quantities[1:], strict=False)
        if first.unit in ("count", "tokens")
        and second.unit in ("count", "tokens")
        and first.value >= 32
        and _PAIR_JOIN.fullmatch(page.text[first.end : second.start])
    }
    in_pair = {*slashes, *slashes.values()}

    def accepts(role: str, quantity: Quantity) -> bool:
        if quantity in in_pair and role not in _LENGTHS:
            return False
        return _accepts(role, quantity)

    roles = [Role(str(match.lastgroup), *match.span()) for match in page.search(_ROLE)]
    return _Load(pair(page.text, roles, quantities, accepts), quantities, slashes)


def _accepts(role: str, quantity: Quantity) -> bool:
    if role in ("memory", "hit_rate"):
        return quantity.unit == "share" or (quantity.unit == "count" and 0 <= quantity.decimal_value <= 100)
    if role == "tokens_of":
        return quantity.unit == "tokens"
    if role in _LENGTHS:
        return quantity.unit in ("count", "tokens")
    if role in ("ttft", "tpot"):
        return quantity.unit == "count"
    return quantity.unit in ("count", "requests")


def _role_of(page: Page, load: _Load, paired: dict[Quantity, Pairing[Quantity]], quantity: Quantity) -> str | None:
    """The role of a quantity: its own, that of its slash pair, or that of the range before it ("typically 4096")."""
    if quantity in paired:
        return paired[quantity].role.name
    before = {second: first for first, second in load.slashes.items()}
    if quantity in load.slashes:
        return (
            "input"
            if load.slashes[quantity] not in paired or paired[load.slashes[quantity]].role.name != "input"
            else "output"
        )
    if quantity in before:
        other = paired.get(before[quantity])
        return "input" if other is not None and other.role.name == "output" else "output"
    earlier = [p for p in load.pairings if p.value.end <= quantity.start and p.value.upper is not None]
    if earlier and quantity.unit in ("count", "tokens"):
        gap = page.text[earlier[-1].value.end : quantity.start]
        if _TYPICAL.search(gap) and gap_cost(_TYPICAL.sub(" ", gap)) < 4.0:
            return earlier[-1].role.name
    return None


def _claim(page: Page, claims: Claims, role: str, quantity: Quantity, words: str) -> None:
    if role == "tokens_of":
        role = "input"
    if role in ("input", "output"):
        _claim_length(claims, role, quantity, words)
    elif role == "concurrency":
        _claim_concurrency(claims, quantity, words)
    elif role == "rate":
        claims.claim("request_rate", quantity.decimal_value, words)
    elif role in ("ttft", "tpot"):
        claims.claim(f"{role}_ms_max", quantity.decimal_value, words)
        claims.reading(f"{words!r} states no unit and was read as ms")
    elif role == "hit_rate":
        claims.claim("prefix_cache_hit_rate", _share(quantity), words)
    else:
        share = _share(quantity)
        if _HEADROOM.search(page.clause_text(quantity.start, quantity.end)):
            share = round(1 - share, 12)
            claims.reading(f"{words!r} read as memory left free: {share:g} of it may be used")
        claims.claim("memory_utilization", share, words)


def _share(quantity: Quantity) -> float:
    """A share of 1; a bare number above 1 is a percentage."""
    value = quantity.decimal_value
    return value / 100 if quantity.unit == "count" and value > 1 else round(value, 12)


def _claim_length(claims: Claims, role: str, quantity: Quantity, words: str) -> None:
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


def _claim_context(claims: Claims, context: tuple[Quantity, str] | None) -> None:
    """A context is the prompt where no prompt was stated; else it is the longest sequence, which needs no field."""
    if context is None:
        return
    quantity, words = context
    if claims.has("input_tokens") or claims.has("input_tokens_range"):
        claims.reading(f"{words!r} read as the longest sequence that must be possible; the lengths were stated apart")
        return
    _claim_length(claims, "input", quantity, words)
    claims.reading(f"{words!r} read as the length of the input")
