"""The serving engine that a request names, or that it wants none; its version, and the price of a GPU hour."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..engines.names import ENGINES, FRONT, FRONTS, KNOWN, known_engine
from ..plan.constraints import BudgetConstraint, chosen_kinds
from .alternatives import Named, is_left_open, settle
from .claims import Claims
from .constraint_words import add_constraints
from .gated import Gated
from .page import BOX, CARD, SENTENCE_END, Page
from .quantities import Quantity, find_quantities
from .reserved_lexicon import NODE, cues
from .said import NO_ENGINE
from .statement_rank import is_former, standing

_SPELLINGS = sorted((FRONT, *(name for engine in ENGINES.values() for name in engine.spellings)), key=len, reverse=True)
_SPELLED = "|".join(r"[\s-]?".join(spelling) for spelling in _SPELLINGS)
_ENGINE = Gated(rf"(?<![A-Za-z0-9])(?:nvidia\s)?(?:{_SPELLED})(?![A-Za-z])")
# An unknown engine, by its name or behind "engine:".
_UNKNOWN = Gated(
    r"(?<![a-z])(?:tgi|text[\s-]generation[\s-]inference|llama\.?cpp|ollama|lightllm|mlc[\s-]llm|exllama\w{0,3}|deepspeed"
    r"|triton\sinference\sserver|ray\sserve"
    r"|(?<!search\s)engine\s?[:=]\s?(?!(?:not|none|no|any|open|tbd|undecided|unknown|to)(?![a-z]))[a-z][\w.-]{1,40})(?![a-z])",
)
# An engine that nobody there has used yet; the same of all engines that were named.
_NEW_BEFORE = Gated(
    r"(?<![a-z])(?:no\sexperience\s(?:with|in|of)|(?:never|haven't|hasn't|have\snot|not\syet)\s(?:\w+ly\s)?(?:used|run|ran|tried|worked\swith|touched|deployed))"
    r"(?:\s(?:either|any\sof|both))?\s$",
)
_NEW_AFTER = Gated(
    r"\s?(?:我们|咱们?)?(?:都|均|也)?还?没(?:有?经验|用过|试过|接触过)|\s(?:is|are)\s(?:both\s|all\s|equally\s)?new\sto\s(?:us|me)(?![a-z])",
)
_ALL_NEW = Gated(r"\s?(?:我们|咱们?)?[都均]|\sare\s")
# Between two engines that are both ruled out.
_NOR = Gated(r"\s?,?\s?(?:or|nor|and|和|与|跟|或者?|及)\s?")
# A plan that no engine has to start; "none is chosen yet" is no such wish.
_ON_PAPER = Gated(
    r"(?<![a-z])(?:(?P<no>(?:no|without(?:\san(?:y)?|\sa)?)\s(?:serving\s|inference\s)?engine)(?![a-z])"
    r"(?!\s(?:is|was|has|yet|named|given|chosen|specified|stated|preference|overhead|limits?|version))"
    r"|(?:serving\s)?engine\s?[:=]?\s?none(?![a-z])|(?<!tflops\s)(?<!agents\s)(?<!people\s)(?<!staff\s)(?<!employees\s)(?<!users\s)on\spaper(?![a-z]))"
    r"|(?:不用|不限定|不考虑)(?:推理)?引擎|纸面(?:方案|规划|上)",
)
# Two numbers at least ("0.11.0", "1.2.0rc1", "0.5.8.post1"): one alone ("vLLM 16 users") counts something else.
_RELEASE = (
    r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.x(?![a-z]))?(?:[.\-]?(?:rc|post|dev|alpha|beta|a|b)\.?\d{1,4})?(?:\+\w{1,20})?"
)
_SIGN = r"(?:[=~>]=|=|@|:|>)"
_VERSION_AFTER = Gated(
    rf"\s?[(\[]?\s?(?:(?P<sign>{_SIGN})\s?)?(?:(?:装|用|跑)的?(?:还)?是\s?)?"
    rf"(?P<said>(?:engine\s|server\s)?(?:versions?|ver\.?|releases?|版本号?)\s?[:=]?\s?)?v?(?P<version>{_RELEASE})"
    r"(?![A-Za-z0-9_%])(?!\.\d)(?!\s(?:of\s)?(?:the\s|gpu\s|kv\s|prefix\s)*(?:mem(?:ory)?|v?ram|util|cache|hit)(?![a-z]))"
    r"(?!\s?的?(?:显存|内存|命中))\s?[)\]]?(?:\s?版本?)?",
)
# "SGLang nightly": a build without a number.
_UNNUMBERED = Gated(
    r"\s?[(\[]?(?:nightly|latest|main|head)(?:\s(?:builds?|wheels?|images?|branch|version|release))?(?![\w-])[)\]]?"
)
_VERSION_BEFORE = Gated(rf"(?<![A-Za-z0-9.])(?:(?:version|release)\s|v\s?)(?P<version>{_RELEASE})\s(?:of\s)?$")
# The time that a price is for, behind it or before it.
_TIME = r"(?P<{0}>hour|hr|h|day|week|month|mo|year|yr)"
_TIME_AFTER = Gated(
    r"^\s?(?:/|per|an?|each|every)?\s?(?:(?P<gpu>gpu|card|accelerator|device|卡|[\ue001]+s?)[\s\-]?|(?:node|server|machine|instance|box|vm)[\s\-]?)?(?:/|per|an|a)?\s?"
    rf"{_TIME.format('time')}(?![a-z])|^\s?(?:/|每)?\s?(?P<gpu2>卡)?\s?(?P<time2>小?时|钟头|天|周|月|年)",
)
_TIME_BEFORE = Gated(
    r"每?(?:卡时|小时|卡每小时|卡)[^\d,;。\n]{0,4}?(?:最多|不(?:能|可|得|要)?超过|上限|约|大约|控制在)?\s?$|(?:gpu[\s\-]?hour|per\shour)\W{0,3}$|hourly[^\d.;\n]{0,50}$|"
    r"(?<![a-z])(?P<time>dai|week|month|year|annual)ly[^\d.;\n]{0,50}$|"
    rf"(?<![a-z])per\s{_TIME.format('time2')}\W{{0,3}}$|每(?P<time3>[天周月年])[^\d.;。\n]{{0,20}}$",
)
# By the first letters of each; a month is a twelfth of a year.
_HOURS_OF = {"h": 1, "小": 1, "时": 1, "钟": 1, "d": 24, "天": 24, "w": 168, "周": 168, "m": 730, "月": 730,
             "y": 8760, "a": 8760, "年": 8760}  # fmt: skip
_PRICE_KEY = Gated(r"(?:usd|dollars?|\$|price|cost)[\s/]{1,2}(?:per\s|of\sa\s|a\s)?gpu[\s\-]?hour\s?[:=]\s?$")
# A budget per hour for all, and a price per card.
_BUDGET = cues(
    r"budget|cap(?:ped)?|ceiling|at\smost|max(?:imum|imal)?|go\s(?:over|above|beyond)|no\smore\sthan|not\s(?:a\scent\s)?(?:above|over|more|exceed)|exceed|under|below|up\sto|limit(?:ed)?|"
    r"to\s(?:burn|spend|use|invest|play\swith)|on\s(?:gpus|cards|hardware|compute|servers)|altogether|in\s(?:all|total)|total|all[\s\-]in|for\s(?:the\slot|everything|all)|overall|spend",
    "预算|最多|不(?:能|可|得|要)?超过|以内|上限|一共|总共|合计|整套|控制在",
)
_EACH_CARD = cues(
    r"each|apiece|per\s(?:gpu|card|h\d{2,3}|a\d{2,3})|a\s(?:gpu|card)|gpu[\s\-]?hours?", "单卡|每[张块]?卡|卡时|一张"
)
_CARD_BEFORE = re.compile(r"(?:单|每张?|一张)卡(?:约|大约)?\s?$")
# What a price belongs to: "4 x p5.48xlarge at $55/hour each", "8 H100 at $2.5/h each".
_PRICED_THING = Gated(rf"(?P<card>{CARD}+|(?<![a-z])(?:gpus?|cards?)(?![a-z])|卡)|{BOX}+|(?<![a-z])(?:{NODE})(?![a-z])")
_MOST_TO_PRICED = 60  # characters
_PER_NODE_AFTER = Gated(r"^.{0,30}?(?:per|each|/|a)\s?(?:node|machine|server|box|instance)|^.{0,12}?每台")


def read_engine(page: Page, claims: Claims) -> None:
    """Read the serving engine that the plan is meant for, with its version if that stands beside it."""
    names, denied, versions = _named_engines(page)
    settled = settle(page.original, names)
    is_choice = settled.kind == "choice"
    meant = _preferred(page, names) if is_choice else settled.meant
    for name in meant:
        words = page.original[name.start : name.end].strip()
        claims.claim("engine", name.value, words)
        if (version := versions[name.start]) is not None:
            claims.claim("engine_version", version.lower(), words)
    for match in page.search(_ON_PAPER):
        is_meant = match["no"] is not None or not page.is_negated(*match.span())
        words = page.take(*match.span())
        if is_meant:
            claims.claim("engine", NO_ENGINE, words)
    _read_open_engine(page, claims, settled.meant if is_choice and not meant else (), denied)
    for match in page.search(_UNKNOWN) if "engine" not in claims.values else ():
        if not page.is_negated(*match.span()):
            words = page.take(*match.span()).strip()
            claims.leave_unread(f"{words!r}: not an engine that is known ({', '.join(KNOWN)})")


def _named_engines(page: Page) -> tuple[list[Named], list[Named], dict[int, str | None]]:
    """The engines that may be meant, those that are ruled out or that nobody has used yet, and the versions."""
    names: list[Named] = []
    denied: list[Named] = []
    versions: dict[int, str | None] = {}
    for match in page.search(_ENGINE):
        start, end, version = _with_version(page, match)
        goes_on = bool(denied) and _NOR.fullmatch(page.original[denied[-1].end : start]) is not None
        is_new = _NEW_BEFORE.search(page.original[max(0, start - 60) : start]) or _NEW_AFTER.match(page.original, end)
        if is_new and _ALL_NEW.match(page.original, end):
            denied, names = [*denied, *names], []
        is_denied = goes_on or is_new or page.is_negated(*match.span())
        if is_denied or not is_former(page.original, start):
            (denied if is_denied else names).append(Named(start, end, known_engine(match.group()) or FRONT))
            versions[start] = version
        page.take(start, end)
    if any(name.value not in FRONTS for name in names):
        names = [name for name in names if name.value not in FRONTS]
    return names, denied, versions


def _preferred(page: Page, names: Sequence[Named]) -> list[Named]:
    """The engine of a choice that its clause prefers: "vLLM or SGLang are both installed, preferably SGLang"."""
    preferred = [name for name in names if standing(page.original, name.start, name.end) < 0]
    return preferred[:1] if len({name.value for name in preferred}) == 1 else []


def _read_open_engine(page: Page, claims: Claims, choice: Sequence[Named], denied: Sequence[Named]) -> None:
    """Note that any of several engines will do, or that all named engines are ruled out."""
    if claims.has("engine") or not (choice or denied):
        return
    is_open = bool(choice) or is_left_open(page.original, denied[0].start, denied[-1].end)
    words = " or ".join(page.original[name.start : name.end].strip() for name in choice or denied)
    if is_open:
        claims.reading(f"{words!r} leaves the engine open; name one to have the plan kept to what it starts")
    else:
        claims.leave_unread(f"{words!r} is ruled out and no other engine is named; name the one that is to serve")


def _with_version(page: Page, engine: re.Match[str]) -> tuple[int, int, str | None]:
    """The span of an engine with its version, and the version."""
    start, end = engine.span()
    after = _VERSION_AFTER.match(page.text, end)
    if after and (after["version"].count(".") > 1 or _is_bare(page.text[after.start("version") : after.end() + 60])):
        return start, after.end(), after["version"]
    if before := _VERSION_BEFORE.search(page.text[max(0, start - 40) : start]):
        return start - len(before.group()), end, before["version"]
    unnumbered = _UNNUMBERED.match(page.text, end)
    return start, unnumbered.end() if unnumbered else end, None


def _is_bare(text: str) -> bool:
    """Whether a text begins with a number that neither a unit nor a "k" follows: "0.9", "0.9rc1"."""
    figure = next(iter(find_quantities(text)), None)
    return figure is None or figure.start > 0 or (figure.unit == "count" and not figure.words[-1].isalpha())


def read_price(page: Page, claims: Claims) -> None:
    """Read the price of a GPU hour in USD and the budget per hour for all; other prices stay on the page."""
    prices: dict[tuple[float, str], str] = {}
    quantities = find_quantities(page.text)
    for quantity in quantities:
        keyed = quantity.unit == "count" and _PRICE_KEY.search(page.text[: quantity.start][-40:]) is not None
        if quantity.unit != "usd" and not keyed:
            continue
        time = _TIME_AFTER.match(page.text[quantity.end : quantity.end + 40])
        before = _TIME_BEFORE.search(page.text[max(0, quantity.start - 60) : quantity.start])
        if time is None and before is None and not keyed:
            continue
        end = quantity.end + (time.end() if time else 0)
        of_card = time is not None and bool(time["gpu"] or time["gpu2"])
        of_node = not of_card and _is_of_node(page, quantity, end)
        hours = _hours_of(time) or _hours_of(before) or 1
        clause = _words_around(page, quantity, [price for price in quantities if price.unit == "usd"])
        is_budget = _BUDGET.search(clause) is not None and not _EACH_CARD.search(clause) and not of_card
        if is_budget and _PER_NODE_AFTER.match(page.text[quantity.end : end + 30]):
            continue
        if hours > 1 and not (is_budget or of_card or of_node or _EACH_CARD.search(clause)):
            continue  # "the two cards cost us $50 a day"
        card = _CARD_BEFORE.search(page.text[max(0, quantity.start - 8) : quantity.start])
        words = page.take(quantity.start - (len(card.group()) if card else 0), end)
        usd = round(quantity.decimal_value / hours, 4)
        if hours > 1:
            claims.reading(f"{words!r} read as ${usd:g} an hour, of {hours} hours without a break")
        if is_budget:
            add_constraints(claims, [BudgetConstraint(kind="usd_per_hour", value=usd, words=clause.strip()[:500])])
        else:
            prices[usd, "usd_per_node_hour" if of_node else "usd_per_gpu_hour"] = words
    is_one = len(prices) == 1 and len(chosen_kinds(claims.values.get("constraints", ()))) < 2
    for (value, name), words in prices.items():
        if is_one:
            claims.claim(name, value, words)
        else:
            claims.leave_unread(f"{words!r}: of several kinds the catalogue's prices count, not those that are stated")


def _is_of_node(page: Page, price: Quantity, end: int) -> bool:
    """Whether a price, whose words go on to `end`, is of a whole node: it says so, or stands behind a node."""
    if _PER_NODE_AFTER.match(page.text[price.end : end + 30]):
        return True
    named = list(_PRICED_THING.finditer(page.text, max(0, price.start - _MOST_TO_PRICED), price.start))
    return (
        bool(named) and named[-1]["card"] is None and not SENTENCE_END.search(page.text, named[-1].end(), price.start)
    )


def _words_around(page: Page, price: Quantity, prices: Sequence[Quantity]) -> str:
    """The clause of a price, as far as the prices beside it."""
    left, right = page.clause(price.start, price.end)
    left = max([left, *(other.end for other in prices if other.end <= price.start)])
    right = min([right, *(other.start for other in prices if other.start >= price.end)])
    return page.original[left:right]


def _hours_of(time: re.Match[str] | None) -> int | None:
    """The hours of the time that a price is for, where it is named."""
    named = (
        next((words for name, words in time.groupdict().items() if "time" in name and words), None) if time else None
    )
    return None if named is None else _HOURS_OF[named[0].lower()]
