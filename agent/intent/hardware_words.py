"""How many accelerators, on how many nodes: every way of saying "2x8 H200" in English and Chinese.

The names of accelerators are already marks on the page. It reads counts, open counts ("no limit on cards") and link
bandwidths, and refuses to complete them: what was not said stays unsaid.
"""

from __future__ import annotations

import re

from .claims import Claims
from .page import BOX, CARD, Page
from .quantities import find_quantities, read_number

_N = r"(?:-?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,6})?(?:k(?![a-z0-9]))?)"
_WORD_N = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|twenty-four|thirty-two|sixty-four|a\ssingle|"
    r"single|a\spair\sof|a\scouple\sof|a\sdozen|[一二两三四五六七八九十百双单]{1,5})"
)
_NUM = rf"(?:(?<![A-Za-z0-9_.,]){_N}|(?<![A-Za-z0-9]){_WORD_N})"
_NUM_AFTER_X = rf"(?:{_N}|{_WORD_N})"
_CARD = rf"(?:{CARD}+(?:'?s(?![a-z]))?)"
_BOX = rf"(?:{BOX}+(?:'?s(?![a-z]))?)"
_NODE = (
    r"(?:(?:compute\s|gpu\s|physical\s)?(?:nodes?|machines?|servers?|box(?:es)?|hosts?|instances?|dgx|hgx)(?![a-z])|"
    r"台\s?(?:机器|服务器|主机|机|节点)?|个?\s?节点|个?\s?服务器|机(?![架柜])器?)"
)
_GPU = (
    r"(?:gpus?(?![a-z])|cards?(?![a-z])|accelerators?(?![a-z])|chips?(?![a-z])|"
    r"(?:张|块|颗|片)\s?(?:显卡|加速卡|卡|gpus?(?![a-z]))?|个\s?(?:gpus?(?![a-z])|卡)|卡)"
)
_VENDOR = r"(?:(?:nvidia|amd|intel|google)\s)?"
_PER = r"(?:per|in\seach|in\severy|on\seach|on\severy|in\sone|/|each)"
_ONE_NODE = r"(?:node|machine|server|box|host|instance)(?!s)"
_NOT_TOKENS = r"(?!\s?-?(?:tokens?|toks?|ms|sec|s\b|%|k\b|layers?|heads?|experts?|users?|requests?|[\d.]))"
_X = r"\s?[x*]\s?"

_GRID = re.compile(
    rf"(?P<nodes>{_NUM})\s?(?:{_NODE}\s?)?{_X}[(]?(?P<per>{_NUM_AFTER_X})(?![A-Za-wyz0-9]){_NOT_TOKENS}"
    rf"\s?(?:{_X})?[)]?(?:\s?-?{_GPU})?(?:\s?(?:of\s|的)?{_VENDOR}(?:{_CARD}|{_BOX}))?[)]?(?:\s?{_GPU})?",
    re.IGNORECASE,
)
_NODES_OF = re.compile(
    rf"(?P<nodes>{_NUM})[\s\-]?{_VENDOR}(?:(?:{_CARD}|{_BOX})\s?)?(?P<unit>{_NODE})(?:\s?(?:{_CARD}|{_BOX}))?"
    rf"(?P<join>[\s,(:]{{0,2}}(?:(?:of|with|having|containing|holding|each\s(?:with|has|have|having|of|holding|containing)|each|"
    rf"(?:that|which)\s(?:each\s)?have|at|carrying)\s|每(?:台|个)?(?:节点|机器|服务器|机)?(?:有|配|上|装)?|各(?:有|配|带|装)?|"
    rf"(?:分别)?(?:配备|配有|带|配|有|共|总共|一共|共计)|的)?)\s?(?P<total>共|总共|一共|a\stotal\sof\s|in\stotal\s)?"
    rf"(?P<per>{_NUM_AFTER_X})(?![\d.])[\s\-]?(?:x\s?)?(?P<gpu>{_GPU})?(?:\s?(?:of\s|的)?{_VENDOR}(?P<card>{_CARD}))?(?:\s?{_GPU})?"
    rf"(?P<each>\s?(?:each|apiece|{_PER}\s{_ONE_NODE}))?(?P<total_after>\s?(?:in\stotal|total|altogether))?",
    re.IGNORECASE,
)
_SIZED_NODES = re.compile(
    rf"(?:(?P<nodes>{_NUM}|an?)\s?(?:个|台)?\s?)?(?:{_VENDOR}(?:{_CARD})\s)?(?<![\d.])(?P<per>{_NUM_AFTER_X})"
    rf"(?:\s?-\s?|\s?x\s?|\s)?(?P<gpu>(?:gpu|card|way)(?![a-z])|卡)?(?P<glue>[\s\-]?x?[\s\-]?)(?:{_VENDOR}(?P<card>{_CARD})[\s\-]?)?(?P<unit>{_NODE})",
    re.IGNORECASE,
)
_CARD_NODES = re.compile(
    rf"(?P<nodes>{_NUM}|(?<![a-z])(?:an?|the|our|my|this|that))\s?(?:x\s?|\*\s?|台\s?|个\s?)?{_VENDOR}{_CARD}[\s\-]?(?P<unit>{_NODE})",
    re.IGNORECASE,
)
_BOXES = re.compile(
    rf"(?:(?P<nodes>{_NUM}|(?<![a-z])an?)\s?(?:x\s?|\*\s?|台\s?|个\s?|套\s?)?)?{_VENDOR}{_BOX}(?:\s?[x*]\s?(?P<after>{_N}))?(?:\s?(?P<unit>{_NODE}|systems?))?",
    re.IGNORECASE,
)
_PER_NODE = re.compile(
    rf"(?P<per>{_NUM})[\s\-]?(?:x\s?)?(?:{_GPU}\s?)?(?:{_VENDOR}{_CARD}\s?)?(?:{_GPU}\s?)?{_PER}\s?{_ONE_NODE}"
    rf"|每(?:台|个)?\s?(?:节点|机器|服务器|机|台)?\s?(?:上)?(?:有|配|配备|装|放|各)?\s?(?P<per2>{_NUM_AFTER_X})\s?(?:{_GPU})\s?(?:{_CARD})?"
    rf"|(?:each|every)\s{_ONE_NODE}\s(?:has|have|with|of|holds?|contains?|carries)\s(?P<per3>{_NUM_AFTER_X})\s?(?:x\s?)?(?:{_GPU}|{_CARD})?"
    rf"|(?:gpus?|cards?|accelerators?)[\s_\-]?per[\s_\-]?{_ONE_NODE}\s?[:=]?\s?(?:is\s|of\s)?(?P<per4>{_NUM_AFTER_X})"
    rf"|(?<![A-Za-z0-9])(?P<per5>{_N})[\s\-]?(?:x\s?)?(?:{_GPU}|{_CARD})\s?(?:{_GPU}\s?)?(?:each|apiece)(?![a-z])",
    re.IGNORECASE,
)
_COUNT_OF_CARD = re.compile(
    rf"(?P<n>{_NUM}|(?<![a-z])an?(?=\s))(?:[\s\-]|x(?![a-z])|\*|of\s|units?\s|pieces?\s|pcs\s|gpus?\s|cards?\s|accelerators?\s|nvidia\s|amd\s|intel\s|google\s|"
    rf"张|个|块|卡|片|颗|枚|的|显卡|brand[\s\-]new\s|available\s|spare\s){{0,5}}{_CARD}(?!\s?(?:cluster|fleet|pods?|farm|racks?)(?![a-z]))(?:[\s\-]?{_GPU})?",
    re.IGNORECASE,
)
_CARD_OF_COUNT = re.compile(
    rf"{_CARD}\s?(?:{_GPU}\s?)?(?:[x*]\s?(?P<n>{_N})(?![A-Za-z0-9.])|[(]\s?[x*]?\s?(?P<n2>{_NUM_AFTER_X})\s?(?:{_GPU})?\s?[)]|"
    rf"[:=,]?\s?(?P<n3>{_NUM_AFTER_X})\s?{_GPU}(?!\s?{_PER})|,\s?(?P<n4>{_NUM_AFTER_X})\sof\s(?:them|those))",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"(?:no|without\s(?:a|any)|not\sany)\s(?:limits?|caps?|constraints?|restrictions?)\s(?:on|to|for)\s(?:the\s)?(?:number\sof\s|how\smany\s|count\sof\s)?"
    r"(?:\w+\s)?(?:gpus?|cards?|accelerators?|hardware|chips?|[\ue001\ue004]+s?)|"
    r"unlimited\s(?:number\sof\s)?(?:gpus?|cards?|accelerators?|hardware|[\ue001\ue004]+s?)|"
    r"as\smany\s(?:gpus?|cards?|accelerators?|[\ue001\ue004]+s?)?\s?as\s(?:needed|necessary|required|you\s(?:need|want|like)|it\stakes)|"
    r"any\snumber\sof\s(?:gpus?|cards?|accelerators?|[\ue001\ue004]+s?)|"
    r"how\smany\s(?:gpus?|cards?|accelerators?|[\ue001\ue004]+s?)|"
    r"(?:gpus?|cards?|accelerators?|gpu\scount|number\sof\s(?:gpus|cards))\s(?:is\s|are\s)?(?:unlimited|not\slimited|unconstrained|open)|"
    r"(?:fewest|minimum\s(?:number\sof\s)?|minimal\s(?:number\sof\s)?|smallest\snumber\sof\s|least\snumber\sof\s|as\sfew)\s?(?:gpus?|cards?|accelerators?|[\ue001\ue004]+s?)|"
    r"(?:卡数?|显卡|gpus?|GPU\s?数量?|卡的?数量|机器数?|[\ue001]+)\s?(?:数量?)?\s?(?:不限制?|没有限制|无限制?|不受限|任意|随意|不做限制)|"
    r"不限(?:制)?\s?(?:卡|显卡|gpu|机器)(?:的)?(?:数量?)?|(?:需要|要|用)(?:多少|几)(?:张|块|台|个)?\s?(?:卡|gpu|机器|显卡|[\ue001]+)?|"
    r"(?:最少|至少需要|最少需要|最少要)(?:多少|几)?(?:张|块)?(?:卡|gpu|[\ue001]+)|尽(?:量|可能)少(?:的)?\s?(?:卡|gpu|显卡|[\ue001]+)",
    re.IGNORECASE,
)
_PHASE = re.compile(r"prefill|decode|decoding|预填充|解码", re.IGNORECASE)


def read_hardware(page: Page, claims: Claims, box_size: int | None, usual_size: int | None) -> None:
    """Read counts of nodes and accelerators off the page.

    `box_size` is the number of accelerators in the node that was named by its product name ("DGX H100"), `usual_size`
    that of a usual node of the accelerator; the latter only decides how an ambiguous count is read.
    """
    for match in page.search(_OPEN):
        claims.claim("gpus_open", True, page.take(*match.span()))
    _read_grids(page, claims)
    _read_nodes_of(page, claims, usual_size or 8)
    _read_per_node(page, claims)
    _read_sized_nodes(page, claims)
    _read_boxes(page, claims, box_size)
    for match in page.search(_CARD_NODES):
        claims.claim("nodes", _number(match["nodes"]), page.take(*match.span()))
    _read_counts(page, claims)


def _number(words: str) -> float:
    if words.lower() in ("a", "an", "the", "our", "my", "this", "that"):
        return 1
    value = read_number(words)
    return float("nan") if value is None else value


def _read_grids(page: Page, claims: Claims) -> None:
    for match in page.search(_GRID):
        words = page.take(*match.span())
        claims.claim("nodes", _number(match["nodes"]), words)
        claims.claim("gpus_per_node", _number(match["per"]), words)


def _read_nodes_of(page: Page, claims: Claims, usual_size: int) -> None:
    for match in page.search(_NODES_OF):
        nodes, number = _number(match["nodes"]), _number(match["per"])
        join, unit = match["join"].strip(" ,(:").lower(), match["unit"]
        says_each = bool(match["each"]) or join.startswith(("of", "each", "每", "各", "that each", "which each"))
        touches = join in ("", "的", "with", "having", "containing", "holding", "that have", "which have", "carrying", "at")
        has_noun = bool(match["gpu"] or match["card"])
        if not says_each and not (has_noun and (touches or join in ("配备", "配有", "带", "配", "有", "共", "总共"))):
            continue
        comma = "," in match["join"] or "(" in match["join"] or "(" in page.text[match.start() : match.end()]
        is_total = bool(match["total"] or match["total_after"] or join in ("共", "总共", "一共", "共计"))
        if not says_each and (comma or unit.startswith("机")):  # "2 nodes, 16 GPUs"; "双机16卡" counts all cards
            is_total = True
        if not says_each and not is_total and nodes > 1 and number > usual_size and number % nodes == 0:
            is_total = True
            claims.reading(f"{match.group().strip()!r} read as {number:g} GPUs in all: a usual node holds {usual_size}")
        if is_total and nodes == 1:
            is_total = False
        words = page.take(*match.span())
        claims.claim("nodes", nodes, words)
        claims.claim("gpus" if is_total else "gpus_per_node", number, words)


def _read_per_node(page: Page, claims: Claims) -> None:
    for match in page.search(_PER_NODE):
        number = next(value for value in match.groups() if value is not None)
        claims.claim("gpus_per_node", _number(number), page.take(*match.span()))


def _read_sized_nodes(page: Page, claims: Claims) -> None:
    """ "two 8-GPU nodes", "an 8xH100 server": a size bound to the node by a hyphen, an x or a unit."""
    for match in page.search(_SIZED_NODES):
        bound = match["gpu"] or "x" in match["glue"].lower() or "-" in match["glue"] or (match["card"] and match["nodes"])
        between = page.text[match.end("per") : match.start("unit")]
        if not (bound or re.match(r"\s?[x\-]", between, re.IGNORECASE)) or (not match["gpu"] and not match["card"]):
            continue
        words = page.take(*match.span())
        claims.claim("gpus_per_node", _number(match["per"]), words)
        if match["nodes"]:
            claims.claim("nodes", _number(match["nodes"]), words)


def _read_boxes(page: Page, claims: Claims, box_size: int | None) -> None:
    for match in page.search(_BOXES):
        number = match["nodes"] or match["after"]
        words = page.take(*match.span())
        if number is not None:
            claims.claim("nodes", _number(number), words)
        if box_size is not None and not claims.has("gpus_per_node"):
            claims.claim("gpus_per_node", box_size, words)


def _read_counts(page: Page, claims: Claims) -> None:
    """Bare counts of GPUs and nodes. Counts for prefill and for decode on cards of their own add up."""
    counts: list[tuple[float, int, int]] = []
    for pattern in (_COUNT_OF_CARD, _CARD_OF_COUNT):
        for match in page.search(pattern):
            number = next(value for value in match.groups() if value is not None)
            counts.append((_number(number), *match.span()))
            page.take(*match.span())
    for quantity in find_quantities(page.text):
        if quantity.unit == "gpus":
            counts.append((quantity.value, quantity.start, quantity.end))
            page.take(quantity.start, quantity.end)
        elif quantity.unit == "nodes":
            claims.claim("nodes", quantity.value, page.take(quantity.start, quantity.end))
    phases = [frozenset(word.lower()[:4] for word in _PHASE.findall(page.clause_text(s, e))) for _, s, e in counts]
    if len(counts) == 2 and all(len(p) == 1 for p in phases) and phases[0] != phases[1]:
        words = " + ".join(page.original[s:e].strip() for _, s, e in counts)
        claims.claim("gpus", sum(n for n, _, _ in counts), words)
        claims.claim("disaggregated", True, words)
        claims.reading(f"{words!r} read as GPUs of their own for prefill and for decode")
        return
    for number, start, end in counts:
        claims.claim("gpus", number, page.original[start:end].strip())
