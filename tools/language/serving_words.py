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
from .names import is_former
from .page import Page
from .quantities import find_quantities
from .reserved_lexicon import cues
from .said import NO_ENGINE
from .units import unit_at

_SPELLINGS = sorted((FRONT, *(one for engine in ENGINES.values() for one in engine.spellings)), key=len, reverse=True)
_SPELLED = "|".join(r"[\s-]?".join(spelling) for spelling in _SPELLINGS)
_ENGINE = re.compile(rf"(?<![A-Za-z0-9])(?:nvidia\s)?(?:{_SPELLED})(?![A-Za-z])", re.IGNORECASE)
# An engine of which nothing is known, by its name or behind "engine:".
_UNKNOWN = re.compile(
    r"(?<![a-z])(?:tgi|text[\s-]generation[\s-]inference|llama\.?cpp|ollama|lightllm|mlc[\s-]llm|exllama\w{0,3}|deepspeed"
    r"|triton\sinference\sserver|ray\sserve"
    r"|(?<!search\s)engine\s?[:=]\s?(?!(?:not|none|no|any|open|tbd|undecided|unknown|to)(?![a-z]))[a-z][\w.-]{1,40})(?![a-z])",
    re.IGNORECASE,
)
# An engine that nobody there has used yet, and where that is said of all that were named.
_NEW_BEFORE = re.compile(
    r"(?<![a-z])(?:no\sexperience\s(?:with|in|of)|(?:never|haven't|hasn't|have\snot|not\syet)\s(?:\w+ly\s)?(?:used|run|ran|tried|worked\swith|touched|deployed))"
    r"(?:\s(?:either|any\sof|both))?\s$",
    re.IGNORECASE,
)
_NEW_AFTER = re.compile(
    r"\s?(?:我们|咱们?)?(?:都|均|也)?还?没(?:有?经验|用过|试过|接触过)|\s(?:is|are)\s(?:both\s|all\s|equally\s)?new\sto\s(?:us|me)(?![a-z])",
    re.IGNORECASE,
)
_ALL_NEW = re.compile(r"\s?(?:我们|咱们?)?[都均]|\sare\s", re.IGNORECASE)
# Between two engines of which neither is wanted.
_NOR = re.compile(r"\s?,?\s?(?:or|nor|and|和|与|跟|或者?|及)\s?", re.IGNORECASE)
# A plan that no engine has to start; that none is chosen yet is no such wish.
_ON_PAPER = re.compile(
    r"(?<![a-z])(?:(?P<no>(?:no|without(?:\san(?:y)?|\sa)?)\s(?:serving\s|inference\s)?engine)(?![a-z])"
    r"(?!\s(?:is|was|has|yet|named|given|chosen|specified|stated|preference|overhead|limits?|version))"
    r"|(?:serving\s)?engine\s?[:=]?\s?none(?![a-z])|(?<!tflops\s)on\spaper(?![a-z]))"
    r"|(?:不用|不限定|不考虑)(?:推理)?引擎|纸面(?:方案|规划|上)",
    re.IGNORECASE,
)
# Two numbers at least ("0.11.0", "1.2.0rc1", "0.5.8.post1"): one alone ("vLLM 16 users") counts something else.
_RELEASE = (
    r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.x(?![a-z]))?(?:[.\-]?(?:rc|post|dev|alpha|beta|a|b)\.?\d{1,4})?(?:\+\w{1,20})?"
)
_SIGN = r"(?:[=~>]=|=|@|:|>)"
_VERSION_AFTER = Gated(
    rf"\s?[(\[]?\s?(?:(?P<sign>{_SIGN})\s?)?"
    rf"(?P<said>(?:engine\s|server\s)?(?:versions?|ver\.?|releases?|版本号?)\s?[:=]?\s?)?v?(?P<version>{_RELEASE})"
    r"(?![A-Za-z0-9_%])(?!\.\d)(?!\s(?:of\s)?(?:the\s|gpu\s|kv\s|prefix\s)*(?:mem(?:ory)?|v?ram|util|cache|hit)(?![a-z]))"
    r"(?!\s?的?(?:显存|内存|命中))\s?[)\]]?(?:\s?版本?)?",
)
_VERSION_BEFORE = re.compile(
    rf"(?<![A-Za-z0-9.])(?:(?:version|release)\s|v\s?)(?P<version>{_RELEASE})\s(?:of\s)?$", re.IGNORECASE
)
_HOUR = re.compile(
    r"^\s?(?:/|per|an?|each|every)?\s?(?:(?P<gpu>gpu|card|accelerator|device|卡)[\s\-]?)?(?:/|per|an|a)?\s?(?:hour|hr|h)(?![a-z])|^\s?(?:/|每)?\s?(?P<gpu2>卡)?\s?(?:小?时|钟头)",
    re.IGNORECASE,
)
_PRICE_KEY = re.compile(
    r"(?:usd|dollars?|\$|price|cost)[\s/]{1,2}(?:per\s|of\sa\s|a\s)?gpu[\s\-]?hour\s?[:=]\s?$", re.IGNORECASE
)
# What all may cost an hour, and what one card does.
_BUDGET = cues(
    r"budget|cap(?:ped)?|ceiling|at\smost|max(?:imum|imal)?|go\s(?:over|above|beyond)|no\smore\sthan|not\s(?:a\scent\s)?(?:above|over|more|exceed)|exceed|under|below|up\sto|limit(?:ed)?|"
    r"altogether|in\s(?:all|total)|total|all[\s\-]in|for\s(?:the\slot|everything|all)|overall|spend",
    "预算|最多|不超过|以内|上限|一共|总共|合计",
)
_EACH_CARD = cues(
    r"each|apiece|per\s(?:gpu|card|h\d{2,3}|a\d{2,3})|a\s(?:gpu|card)|gpu[\s\-]?hours?", "单卡|每[张块]?卡|卡时|一张"
)
_CARD_BEFORE = re.compile(r"(?:单|每张?|一张)卡(?:约|大约)?\s?$")
_PER_NODE_AFTER = re.compile(
    r"^.{0,30}?(?:per|each|/|a)\s?(?:node|machine|server|box|instance)|^.{0,12}?每台", re.IGNORECASE
)


def read_engine(page: Page, claims: Claims) -> None:
    """Read the serving engine that the plan is meant for, with its version where one stands beside it."""
    names, denied, versions = _named_engines(page)
    settled = settle(page.original, names)
    for name in settled.meant if settled.kind != "choice" else ():
        words = page.original[name.start : name.end].strip()
        claims.claim("engine", name.value, words)
        if (version := versions[name.start]) is not None:
            claims.claim("engine_version", version.lower(), words)
    for match in page.search(_ON_PAPER):
        is_meant = match["no"] is not None or not page.is_negated(*match.span())
        words = page.take(*match.span())
        if is_meant:
            claims.claim("engine", NO_ENGINE, words)
    _read_open_engine(page, claims, settled.meant if settled.kind == "choice" else (), denied)
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
        if is_denied or not is_former(page, start):
            (denied if is_denied else names).append(Named(start, end, known_engine(match.group()) or FRONT))
            versions[start] = version
        page.take(start, end)
    if any(name.value not in FRONTS for name in names):
        names = [name for name in names if name.value not in FRONTS]
    return names, denied, versions


def _read_open_engine(page: Page, claims: Claims, choice: Sequence[Named], denied: Sequence[Named]) -> None:
    """Say that one of several engines will do; of engines that are only ruled out, that none is left."""
    if claims.has("engine") or not (choice or denied):
        return
    is_open = bool(choice) or is_left_open(page.original, denied[0].start, denied[-1].end)
    said = " or ".join(page.original[name.start : name.end].strip() for name in choice or denied)
    if is_open:
        claims.reading(f"{said!r} leaves the engine open; name one to have the plan kept to what it starts")
    else:
        claims.leave_unread(f"{said!r} is ruled out and no other engine is named; name the one that is to serve")


def _with_version(page: Page, engine: re.Match[str]) -> tuple[int, int, str | None]:
    """The span of an engine with its version, and the version; a figure with a unit ("vLLM 0.9 s") is none."""
    start, end = engine.span()
    if after := _VERSION_AFTER.match(page.text, end):
        unit = unit_at(page.text, after.end("version"))[0]
        if unit == "count" or after["said"] or after["sign"]:
            return start, after.end(), after["version"]
    if before := _VERSION_BEFORE.search(page.text[max(0, start - 40) : start]):
        return start - len(before.group()), end, before["version"]
    return start, end, None


def read_price(page: Page, claims: Claims) -> None:
    """Read the price of one GPU hour in USD; prices of anything else stay on the page."""
    prices: dict[float, str] = {}
    for quantity in find_quantities(page.text):
        keyed = quantity.unit == "count" and _PRICE_KEY.search(page.text[: quantity.start][-40:])
        if quantity.unit != "usd" and not keyed:
            continue
        after = page.text[quantity.end : quantity.end + 40]
        hour = _HOUR.match(after)
        before = page.text[max(0, quantity.start - 60) : quantity.start]
        if (
            hour is None
            and not keyed
            and not re.search(
                r"每?(?:卡时|小时|卡每小时|卡)(?:最多|不超过|上限|约|大约)?\s?$|(?:gpu[\s\-]?hour|per\shour)\W{0,3}$|hourly[^\d.;\n]{0,50}$",
                before,
                re.IGNORECASE,
            )
        ):
            continue
        end = quantity.end + (hour.end() if hour else 0)
        if _PER_NODE_AFTER.match(page.text[end : end + 30]) and "gpu" not in after[: hour.end() if hour else 0].lower():
            continue
        left, right = page.clause(quantity.start, end)
        clause = page.original[left:right]
        card = _CARD_BEFORE.search(page.text[max(0, quantity.start - 8) : quantity.start])
        words = page.take(quantity.start - (len(card.group()) if card else 0), end)
        if _BUDGET.search(clause) and not _EACH_CARD.search(clause) and not (hour and (hour["gpu"] or hour["gpu2"])):
            _claim_budget(claims, quantity.decimal_value, clause.strip()[:500])
        else:
            prices[quantity.decimal_value] = words
    is_one = len(prices) == 1 and len(chosen_kinds(claims.values.get("constraints", ()))) < 2
    for value, words in prices.items():
        if is_one:
            claims.claim("usd_per_gpu_hour", value, words)
        else:
            claims.leave_unread(f"{words!r}: of several kinds the catalogue's prices count, not those that are stated")


def _claim_budget(claims: Claims, usd: float, words: str) -> None:
    add_constraints(claims, [BudgetConstraint(kind="usd_per_hour", value=usd, words=words)])
