"""The serving engine that a request names, or that it wants none, and its version."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...engines.names import ENGINES, FRONT, FRONTS, KNOWN, known_engine
from ..conflicts.alternatives import is_left_open, settle
from ..conflicts.claims import Claims
from ..conflicts.condition_outcome import Named
from ..conflicts.statement_rank import is_former, standing
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import find_quantities
from ..said import NO_ENGINE

_SPELLINGS = sorted((FRONT, *(name for engine in ENGINES.values() for name in engine.spellings)), key=len, reverse=True)
_SPELLED = "|".join(r"[\s-]?".join(spelling) for spelling in _SPELLINGS)
# With the rest of the name of its image: "vllm/vllm-openai:v0.9.2".
_ENGINE = Gated(
    rf"(?<![A-Za-z0-9])(?:nvidia\s)?(?:{_SPELLED})(?:[/-](?:vllm|openai|release|server|runtime)(?![a-z])){{0,2}}(?![A-Za-z])"
)
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


def read_engine(page: Page, claims: Claims) -> None:
    """Read the serving engine that the plan is meant for, with its version if that stands beside it."""
    names, denied, versions = _named_engines(page)
    settled = settle(page, names)
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
