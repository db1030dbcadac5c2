"""The accelerator that a request names, with its memory, its node or rack, or the kinds to choose from.

Names become marks on the page, as those of models do (`model/names.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...catalog import hardware
from ...catalog.accelerators import Accelerator
from ...errors import InputError
from ...plan.constraints import AcceleratorsConstraint
from ..conflicts.alternatives import CORRECTED, settle
from ..conflicts.claims import Claims
from ..conflicts.condition_outcome import Named, Settled
from ..conflicts.statement_rank import about, is_former, standing
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import BOX, CARD, RACK, Page
from ..patterns.quantities import find_quantities, read_whole


class NodeSizes(Struct, frozen=True):
    """Accelerators of the node ("DGX H100") or rack ("NVL72") that was named, and of a usual node; `None`: unknown."""

    box: int | None = None
    usual: int | None = None
    rack: int | None = None


# A claim that is no field: the count of a name that was taken back, until all counts are read.
COUNT_TAKEN_BACK = "count_taken_back"
_SLIP = Gated(r"(?<![a-z])(?:sorry|my\sbad|oops|typo|i\smean(?:t)?|wrong|mistake|mix)|[写说打记搞弄]错|口误")
_GB = r"(?:gi?b?|gigs?|gigabytes?)(?![a-z]|\s(?:nics?|ethernet|infiniband|ib|roce|net|link|uplink|switch|fabric))"
_MEMORY_AFTER = Gated(
    rf"\s?[(\[]\s?(?:the\s)?(?:(?P<times>\d{{1,2}})\s?x\s?)?(?P<size>\d{{2,3}})[\s\-]?{_GB}\s?"
    r"(?:hbm\w{0,2}|vram|memory|version|variant|model|ones?|each|版本?|显存)?\s?(?:[)\]]|(?=[,;、]))|"
    rf"(?:s(?![a-z]))?(?:\s(?:cards?|gpus?)(?![a-z]))?,?\s(?:with|at|of|having)\s(?P<size2>\d{{2,3}})[\s\-]?{_GB}"
    r"(?:\s(?:of\s)?(?:hbm\w{0,2}|vram|memory|ram))?(?:\s(?:each|apiece|per\s(?:card|gpu)))?|"
    rf"(?:s(?![a-z]))?,\s(?:the\s)?(?P<size3>\d{{2,3}})[\s\-]?{_GB}\s(?:(?P<bus>pcie|sxm)\s(?=version|variant|model|ones?|cards?))?(?:each|apiece|version|variant|model|ones?|cards?|vram|hbm\w{{0,2}}|of\s(?:memory|vram|hbm))|"
    rf"\s(?P<times5>\d{{1,2}})\s?x\s?(?P<size5>\d{{2,3}})[\s\-]?{_GB}|"
    r"-(?P<size4>\d{2,3})(?![\dA-Za-z.])(?:[\s\-](?P<bus4>pcie|sxm)(?![a-z]))?",
)
_MEMORY_BEFORE = Gated(rf"(?<![A-Za-z0-9.])(?P<size>\d{{2,3}})[\s\-]?{_GB}(?:\s?显存)?\s?的?\s?$")
_SAME_COUNT = Gated(
    r"(?:台数|数量|张数|卡数|机器数)(?:都|也)?(?:不变|一样|照旧|没变)|(?<![a-z])(?:(?:the\s)?same\s(?:number|count)|(?:number|count)s?\s(?:is|are|stays?)\s(?:the\ssame|unchanged))(?![a-z])"
)
# "(they're the 80 GB ones)", "The A100s are the 40GB version": memory of the card that was named.
_MEMORY_LATER = Gated(
    r"(?:(?<![a-z])(?:they|these|those|it|all|both)|(?:the\s|our\s)?\ue001+s?)(?:'re|'s|\sare|\sis)\s(?:all\s|both\s)?(?:the\s|an?\s)?"
    rf"(?P<size>\d{{2,3}})[\s\-]?{_GB}(?:\s(?P<bus>pcie|sxm))?(?:\s(?:ones?|versions?|variants?|models?|cards?|type))?(?=\s?(?:[,.;:)!\n]|$))|"
    r"(?:都|全|卡)是\s?(?P<size2>\d{2,3})\s?g(?:i?b)?(?:显存)?(?:的|版本?)?(?=\s?(?:[,.;:)!\n。]|$))",
)
# "4 台 910B, 每卡 64GB", "two nodes of 8 A100, 80 GB per card": also its memory, in a clause of its own.
_MEMORY_OF_EACH = Gated(
    r"(?:(?<=[,;(:])|(?<=[,;(:、]\s))(?:(?:每张?卡|单卡|单张)\s?(?:显存)?\s?(?:是|为|有)?\s?"
    rf"(?P<size>\d{{2,3}})\s?g(?:i?b)?(?:\s?(?:显存|hbm\w{{0,2}}))?|(?P<size2>\d{{2,3}})[\s\-]?{_GB}(?:\s(?:of\s)?(?:hbm\w{{0,2}}|vram|memory))?\s(?:per|each|a|on\seach)\s(?:card|gpu|accelerator))"
    r"(?=\s?(?:[,.;:)!\n。、]|$))",
)
_OTHER_MEMORY = Gated(
    r"(?<![a-z])(?:host|offload\w{0,4}|ram|leav\w{1,3}|keep|free|reserv\w{1,3}|kv)(?![a-z])|内存|卸载|预?留|空闲"
)
_COUNT_BEFORE = Gated(
    r"(?<![A-Za-z0-9.])(?:\d{1,5}|[一二两三四五六七八九十]{1,3}(?=[台张块]))\s?(?:[x*]|张|块|台|卡)?\s?$"
)
_ARTICLES = {"a": 1, "an": 1, "a single": 1, "single": 1}
_NUMBERED = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>\d{{1,4}}|a\ssingle|single|an?|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,3}})\s?(?:x\s?|[张块台]\s?|of\s(?:the|our)\s)?$",
)
# "two servers with 8x ", "and one with 8x ": nodes of a kind, each with so many.
_NODES_BEFORE = Gated(
    rf"(?<![A-Za-z0-9.])(?P<k>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:(?:servers?|nodes?|machines?|box(?:es)?|hosts?)\s)?(?:with|of|holding)\s(?P<n>\d{{1,2}}|{ENGLISH_NUMBER})\s?x?\s?$",
)
# "racks A07 to A10" are places, not cards.
_PLACE_BEFORE = Gated(
    r"(?:(?<![a-z])(?:racks?|rows?|rooms?|aisles?|bays?|gates?|floors?)\s|(?:机柜|机房|机架|房间)\s?)"
    r"(?:[A-Z]?\d{1,3}\s?(?:to|through|and|-|到|至|,)\s?)?$",
)
_RACK = Gated(r"nvl\s?(\d{2,3})(?!\d|\s?gi?b)")
_RACK_AFTER = Gated(r"\s?(?:racks?(?![a-z])|机柜|整柜)")
_TRAY_AFTER = Gated(r"\s?(?:(?:compute\s)?trays?(?![a-z])|(?:计算)?托盘)")


def _with_memory(
    page: Page, claims: Claims, mention: hardware.AcceleratorMention, accelerator: Accelerator
) -> tuple[int, int, Accelerator]:
    """The mention with a memory size that stands apart from the name: "A100 (40GB)", "40 GB A100s"."""
    after = _MEMORY_AFTER.match(page.text, mention.end)
    before = None if after else _MEMORY_BEFORE.search(page.text[max(0, mention.start - 14) : mention.start])
    match = after or before
    if match is None:
        return mention.start, mention.end, accelerator
    size = next(value for key, value in match.groupdict().items() if value and key.startswith("size"))
    bus = f" {after['bus'] or after['bus4']}" if after and (after["bus"] or after["bus4"]) else ""
    start = mention.start - (len(before.group()) if before else 0)
    end = after.end() if after else mention.end
    if after and (after["times"] or after["times5"]) and not mention.gpus_per_node:
        end = mention.end  # "A100 (8x 40GB)": the count is still to be read
    try:
        return start, end, hardware.find_accelerator(f"{hardware.singular(mention.words)}{bus} {size}GB")
    except InputError as error:
        if after and after["size4"]:  # "V100-16 nodes": a number without a unit is a size only where the family has it
            return mention.start, mention.end, accelerator
        raise claims.refusal(str(error)) from None


def _rack(page: Page, mention: hardware.AcceleratorMention, accelerator: Accelerator) -> re.Match[str] | None:
    """The size of the rack that a mention names ("GB200 NVL72", "GB200 racks"); trays of a rack are its nodes."""
    if _TRAY_AFTER.match(page.text, mention.end):
        return None
    by_name = _RACK.search(mention.words)
    return by_name or (
        _RACK.search(accelerator.form_factor or "") if _RACK_AFTER.match(page.text, mention.end) else None
    )


def _holds_as_well(page: Page, mention: hardware.AcceleratorMention, other: hardware.AcceleratorMention) -> bool:
    """Whether a card counts no less than another: in "the old T4s go, we get MI308X" the T4s do not."""
    ranks = [standing(page.original, each.start, each.end, is_name=True) for each in (mention, other)]
    return ranks[0] <= ranks[1]


def read_accelerator(page: Page, claims: Claims) -> NodeSizes:
    """Take the accelerators' names off the page.

    Raises:
        RequestError: several different accelerators (a plan is for one kind), or an unknown one.
    """
    sizes = NodeSizes()
    named: list[Named] = []
    mentions = hardware.mentions(page.text)
    known = [m for m in mentions if m.accelerator is not None]
    former = [m for m, past in zip(known, claims.told_once([(m.start, m.end) for m in known]), strict=True) if past]
    for mention in mentions:
        if mention.accelerator is None and CORRECTED.match(page.original[mention.end :].lstrip(" .,;-")):
            _keep_count(page, claims, mention.start)
            _take_counted(page, mention.start, mention.end)
            claims.reading(f"{mention.words!r} is taken back and was not read")
            continue
        if mention.accelerator is None and any(_holds_as_well(page, card, mention) for card in known):
            page.take(mention.start, mention.end)
            claims.leave_unread(f"{mention.words!r} is no accelerator that is known, and another is named")
            continue
        if mention.accelerator is None:
            raise claims.refusal(str(mention.error))
        if mention in former or page.is_negated(mention.start, mention.end) or is_former(page.original, mention.start):
            _take_counted(page, mention.start, mention.end)
            continue
        if _PLACE_BEFORE.search(page.original[max(0, mention.start - 24) : mention.start]):
            continue
        rack = _rack(page, mention, mention.accelerator)
        mark = RACK if rack else BOX if mention.gpus_per_node else CARD
        start, end, accelerator = _with_memory(page, claims, mention, mention.accelerator)
        page.take(start, end, mark=mark)
        named.append(Named(start, end, accelerator.id))
        sizes = NodeSizes(
            box=mention.gpus_per_node or sizes.box,
            usual=accelerator.typical_node_accelerators,
            rack=int(rack[1]) if rack else sizes.rack,
        )
    if named:
        _claim_accelerator(page, claims, settle(page, _with_later_memory(page, claims, named)))
    return sizes


def _with_later_memory(page: Page, claims: Claims, named: list[Named]) -> list[Named]:
    """The names with the memory that is stated apart from the name, where only one card is named."""
    later = next(iter(page.search(_MEMORY_LATER)), None)
    of_each = next(iter(page.search(_MEMORY_OF_EACH)), None) if later is None else None
    if of_each is not None and _OTHER_MEMORY.search(page.original[max(0, of_each.start() - 40) : of_each.start()]):
        of_each = None
    later = later or of_each
    if later is None or len({name.value for name in named}) > 1:
        return named
    words = page.original[named[0].start : named[0].end].strip()
    family = re.sub(r"\s?[(\[]?\s?\d{2,3}[\s\-]?gi?b?.*$", "", hardware.singular(words), flags=re.IGNORECASE)
    try:
        bus = later.groupdict().get("bus") or ""
        card = hardware.find_accelerator(f"{family} {bus} {later['size'] or later['size2']}GB")
    except InputError as error:
        if of_each:  # it may be of something that shares the card
            return named
        raise claims.refusal(str(error)) from None
    page.take(*later.span())
    return [replace(name, value=card.id) for name in named]


def _count_before(page: Page, name: Named) -> re.Match[str] | None:
    """The number right before a card's name."""
    before = max(0, name.start - 24)
    count = _NUMBERED.search(page.text, before, name.start)
    return count if count is not None and page.text[name.start] == CARD else None


def _claim_nodes_of_kinds(page: Page, claims: Claims, names: Sequence[Named]) -> tuple[int, ...] | None:
    """The GPUs of each kind, where nodes of each are counted: "two servers with 8x A100 and one with 8x L40S"."""
    counted: dict[str, re.Match[str] | None] = {}
    for name in names:
        counted[name.value] = counted.get(name.value) or _NODES_BEFORE.search(
            page.text, max(0, name.start - 48), name.start
        )
    nodes = [match for match in counted.values() if match is not None]
    each = {read_whole(match["n"].lower()) for match in nodes}
    if len(nodes) < len(counted) or len(each) != 1 or (size := each.pop()) is None:
        return None
    numbers = tuple((read_whole(match["k"].lower()) or 1) * size for match in nodes)
    for match in nodes:
        page.take(*match.span())
    claims.claim("gpus_per_node", size, nodes[0].group().strip())
    return numbers


def _count_word(page: Page, start: int) -> str:
    """The number right before a name, with the blanks between; "" without one."""
    count = _COUNT_BEFORE.search(page.text[max(0, start - 12) : start])
    return "" if count is None else count.group()


def _keep_count(page: Page, claims: Claims, start: int) -> None:
    """Keep the first count of a withdrawn name for the name that is meant."""
    words = _count_word(page, start)
    digits = re.search(r"\d{1,5}", words)
    if digits is not None and not claims.has(COUNT_TAKEN_BACK):
        claims.claim(COUNT_TAKEN_BACK, int(digits.group()), words.strip())


def _take_counted(page: Page, start: int, end: int) -> None:
    """Take a name that is not meant off the page, with its count."""
    page.take(start - len(_count_word(page, start)), end)


def _count_stays(page: Page, former: Named, meant: Named) -> bool:
    """Whether the count of a former name is that of the meant one: another size of the card, or so it is said."""
    is_other_size = former.value.split("-")[0] == meant.value.split("-")[0]
    is_said = _SAME_COUNT.search(page.original, meant.end) is not None
    return (is_other_size or is_said) and former.start < meant.start and _count_before(page, meant) is None


def _claim_accelerator(page: Page, claims: Claims, settled: Settled) -> None:
    """Claim the accelerator that is meant, or the kinds to choose from."""
    words = {name: page.original[name.start : name.end].strip() for name in (*settled.meant, *settled.superseded)}
    first, last = settled.meant[0], settled.meant[-1]
    if settled.kind == "contradict":
        raise claims.refusal(
            f"not planned by this tool: mixed accelerators ({words[first]!r} and {words[last]!r}); keep one kind"
        )
    for name in settled.superseded:
        slip = _SLIP.search(page.original, name.end, max(name.end, first.start))
        if slip and name.value != first.value and _count_before(page, first) is None:
            _keep_count(page, claims, name.start)
        if not _count_stays(page, name, first):
            _take_counted(page, name.start, name.end)
        if name.value == first.value:
            continue
        if standing(page.original, name.start, name.end, is_name=True) <= 0:
            claims.reading(f"{words[name]!r} is named as what {words[first]!r} takes the place of")
            continue
        left, right = about(page.original, name.start, name.end)
        claims.reading(f"{page.original[left:right].strip()!r} is said of {words[name]!r}, and was set aside")
        for count in find_quantities(page.text[left:right]):
            if count.unit in ("gpus", "nodes"):  # "research has two A100 servers with 8 cards each"
                page.take(left + count.start, left + count.end)
    if settled.kind == "one":
        claims.claim("accelerator", first.value, words[first])
        return
    kinds = tuple(dict.fromkeys(name.value for name in settled.meant))
    phrase = " or ".join(dict.fromkeys(words[name] for name in settled.meant))
    if (numbers := _claim_nodes_of_kinds(page, claims, settled.meant)) is not None:
        claims.claim("gpus_of_kinds", numbers, phrase)
        claims.claim("accelerators", AcceleratorsConstraint(kind="accelerators", value=kinds, words=phrase), phrase)
        return
    counts = {name.value: count for name in settled.meant if (count := _count_before(page, name)) is not None}
    if len(counts) == len(kinds) and len({read_whole(count["n"].lower()) for count in counts.values()}) > 1:
        numbers = tuple(_ARTICLES.get(count["n"].lower()) or read_whole(count["n"]) or 1 for count in counts.values())
        phrase = " or ".join(page.original[counts[name.value].start("n") : name.end] for name in settled.meant)
        for count in counts.values():
            page.take(*count.span("n"))
        claims.claim("gpus_of_kinds", numbers, phrase)
    claims.claim("accelerators", AcceleratorsConstraint(kind="accelerators", value=kinds, words=phrase), phrase)
