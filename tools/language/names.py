"""The names in a request: which model, which accelerator.

Names become marks on the page, so that their digits count nothing. The catalogues find and resolve names; here a name
that is said not to be meant is dropped, several different ones are refused, and so is an unknown one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ..catalog import hardware, model_mentions, models
from ..catalog.accelerators import Accelerator
from ..catalog.dtypes import DType
from ..catalog.names import parse_name
from ..errors import InputError
from ..plan.constraints import AcceleratorsConstraint
from .alternatives import CORRECTED, Named, Settled, settle
from .claims import Claims
from .gated import Gated
from .number_words import ENGLISH_NUMBER
from .page import BOX, CARD, MODEL, OTHER, RACK, Page
from .quantities import read_whole
from .standing import standing


@dataclass(frozen=True, slots=True)
class NodeSizes:
    """Accelerators of the node ("DGX H100") or rack ("NVL72") that was named, and of a usual node; `None`: unknown."""

    box: int | None = None
    usual: int | None = None
    rack: int | None = None


# A claim that is no field: the count of a name that was taken back, until all counts are read.
COUNT_TAKEN_BACK = "count_taken_back"
_SLIP = re.compile(
    r"(?<![a-z])(?:sorry|my\sbad|oops|typo|i\smean(?:t)?|wrong|mistake|mix)|[写说打记搞弄]错|口误", re.IGNORECASE
)
_GB = r"(?:gi?b?|gigs?|gigabytes?)(?![a-z]|\s(?:nics?|ethernet|infiniband|ib|roce|net|link|uplink|switch|fabric))"
_MEMORY_AFTER = re.compile(
    rf"\s?[(\[]\s?(?:the\s)?(?:(?P<times>\d{{1,2}})\s?x\s?)?(?P<size>\d{{2,3}})[\s\-]?{_GB}\s?"
    r"(?:hbm\w{0,2}|vram|memory|version|variant|model|ones?|each|版本?|显存)?\s?(?:[)\]]|(?=[,;、]))|"
    rf"(?:s(?![a-z]))?(?:\s(?:cards?|gpus?)(?![a-z]))?,?\s(?:with|at|of|having)\s(?P<size2>\d{{2,3}})[\s\-]?{_GB}"
    r"(?:\s(?:of\s)?(?:hbm\w{0,2}|vram|memory|ram))?(?:\s(?:each|apiece|per\s(?:card|gpu)))?|"
    rf"(?:s(?![a-z]))?,\s(?:the\s)?(?P<size3>\d{{2,3}})[\s\-]?{_GB}\s(?:(?P<bus>pcie|sxm)\s(?=version|variant|model|ones?|cards?))?(?:each|apiece|version|variant|model|ones?|cards?|vram|hbm\w{{0,2}}|of\s(?:memory|vram|hbm))|"
    r"-(?P<size4>\d{2,3})(?![\dA-Za-z.])(?:[\s\-](?P<bus4>pcie|sxm)(?![a-z]))?",
    re.IGNORECASE,
)
_MEMORY_BEFORE = re.compile(rf"(?<![A-Za-z0-9.])(?P<size>\d{{2,3}})[\s\-]?{_GB}\s?$", re.IGNORECASE)
# What people call a model by when nothing else is named: the release alone, or the one size that only it has.
_NICKNAMES: dict[str, str] = {
    "DeepSeek-R1": r"R1(?:\s(?:671b|0528))?",
    "DeepSeek-V3": r"V3\s(?:671b|0324)|671b\sV3",
    "Kimi-K2": r"K2",
    "Llama-3.1-405B": r"(?:the\s)405b",
    "Llama-4-Maverick": r"Maverick",
    "gpt-oss-120b": r"oss[\s\-]?120b|120b\soss",
    "gpt-oss-20b": r"oss[\s\-]?20b|20b\soss",
}
_NICKNAME = Gated(
    "|".join(rf"(?<![A-Za-z0-9.\-])(?P<n{i}>{words})(?![A-Za-z0-9.])" for i, words in enumerate(_NICKNAMES.values())),
)
_FORMER = re.compile(
    r"(?:(?:mov(?:ed?|ing)|chang(?:ed?|ing)|migrat\w{2,4}|coming|upgrad\w{2,4}|switch\w{0,4})\s(?:away\s)?from|tried|used\sto\s(?:use|run|have)(?:\son)?|"
    r"previous(?:ly)?(?:\s(?:on|used|had|ran))?|formerly|(?:better|faster|cheaper|slower|quality)\sthan|compar(?:ed|able|ing)\s(?:to|with)|"
    r"(?:close|similar|equal)\sto|unlike|(?:以前|之前|原来|原先)(?:都|一直)?(?:使?用|是)?(?:的是|的)?|相比|不如|"
    r"(?<![a-z])not|rather\sthan|instead\sof|而?不是|而非)"
    r"(?:\s(?:the|our|an?|using|on|with|to|old))?\s?(?:\d{1,5}\s?[x张块台]?\s?)?$",
    re.IGNORECASE,
)
_COUNT_BEFORE = re.compile(
    r"(?<![A-Za-z0-9.])(?:\d{1,5}|[一二两三四五六七八九十]{1,3}(?=[台张块]))\s?(?:[x*]|张|块|台|卡)?\s?$", re.IGNORECASE
)
# A checkpoint that was trained to chat, of which the catalogue has the one before.
_TUNED = re.compile(r"(?<![a-z])(?:instruct|chat|it)(?![a-z])", re.IGNORECASE)
_SIZE = re.compile(r"(?<![A-Za-z0-9.\-])\d{1,4}(?:\.\d)?B(?:-A\d{1,3}(?:\.\d)?B)?(?![A-Za-z0-9])", re.IGNORECASE)
_ARTICLES = {"a": 1, "an": 1, "a single": 1, "single": 1}
_NUMBERED = re.compile(
    rf"(?<![A-Za-z0-9.])(?P<n>\d{{1,4}}|a\ssingle|single|an?|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,3}})\s?(?:x\s?|[张块台]\s?|of\s(?:the|our)\s)?$",
    re.IGNORECASE,
)
# "racks A07 to A10" are places, whatever card is called so.
_PLACE_BEFORE = re.compile(
    r"(?:(?<![a-z])(?:racks?|rows?|rooms?|aisles?|bays?|gates?|floors?)\s|(?:机柜|机房|机架|房间)\s?)"
    r"(?:[A-Z]?\d{1,3}\s?(?:to|through|and|-|到|至|,)\s?)?$",
    re.IGNORECASE,
)
_RACK = re.compile(r"nvl\s?(\d{2,3})(?!\d|\s?gi?b)", re.IGNORECASE)
_RACK_AFTER = re.compile(r"\s?(?:racks?(?![a-z])|机柜|整柜)", re.IGNORECASE)
_TRAY_AFTER = re.compile(r"\s?(?:(?:compute\s)?trays?(?![a-z])|(?:计算)?托盘)", re.IGNORECASE)
# A word that looks like a model of some size ("Foo-13B") although no catalogue knows its family.
_MODEL_LIKE = re.compile(
    r"(?<![A-Za-z0-9./\-])(?:[A-Za-z][\w.\-]{0,60}[\-_])?"
    r"[A-Za-z][\w.]{0,30}[\-_ ]?\d{1,4}(?:\.\d{1,3})?[bB](?![A-Za-z0-9])"
)
_NAME_LIKE = re.compile(
    r"(?<![A-Za-z0-9./\-])(?P<word>[A-Za-z]{4,12})(?:[\-_ ]?[vkr]?\d[\w.]{0,12}){1,3}", re.IGNORECASE
)
_FAMILIES = ("deepseek", "llama", "qwen", "mixtral", "mistral", "gemma", "kimi", "minimax", "nemotron", "hunyuan")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """How the model was written, and the number format that a suffix of its name states ("-FP8")."""

    words: str = ""
    weights: DType | None = None


def read_model(page: Page, claims: Claims) -> NamedModel:
    """Take the model's name off the page. A second, vaguer mention ("our llama") speaks of the same model.

    Raises:
        RequestError: several different models, or one that the catalogue does not know.
    """
    mentions: list[model_mentions.Mention] = []
    given_up: set[str] = set()  # names of no model of the catalogue that others take the place of
    for mention in map(_without_bracket, model_mentions.mentions(page.text)):
        is_meant = not page.is_negated(mention.start, mention.end) and not is_former(page, mention.start)
        page.take(mention.start, mention.end, mark=MODEL)
        if is_meant:
            mentions.append(mention)
        elif mention.entry is None:
            given_up.add(mention.words.lower())
    mentions = [one for one in mentions if one.entry is not None or one.words.lower() not in given_up]
    named = NamedModel()
    chosen = [mention for mention in mentions if not any(_is_vaguer(mention, other) for other in mentions)]
    names = [Named(one.start, one.end, one.entry.name) for one in chosen if one.entry is not None]
    settled = settle(page.original, names)
    if settled.kind != "one":
        first, last = (page.original[name.start : name.end].strip() for name in (settled.meant[0], settled.meant[-1]))
        raise claims.refusal(f"several models: {first!r} and {last!r}; plan one at a time")
    meant = {name.start for name in settled.meant}
    known = [mention for mention in chosen if mention.start in meant]
    for mention in known:
        if mention.entry is not None:
            _claim_model(claims, mention.entry, mention.words.strip())
        named = NamedModel(mention.words.strip(), mention.weights or named.weights)
    for name in settled.superseded:
        _set_aside(page, claims, name, named.words)
    for mention in chosen:
        if mention.error is None:
            continue
        if not known and (entry := _with_size(page, mention)) is not None:
            _claim_model(claims, *entry)
            return NamedModel(entry[1], mention.weights)
        is_aside = standing(page.original, mention.start, mention.end, is_name=True) > 0
        is_family = not any(letter.isdigit() for letter in mention.words)  # "gemma lost the eval"
        is_own = claims.describes_model and not known
        if not is_own and (not known or (models.has_family(mention.words) and not is_aside and not is_family)):
            raise claims.refusal(mention.error)
        claims.reading(f"{mention.words!r} is no model of the catalogue and was read as a comparison")
    return named if claims.has("model") else _read_nickname(page, claims)


def _set_aside(page: Page, claims: Claims, name: Named, planned: str) -> None:
    """Mark a model that is named beside the one that is planned, and say why it is not."""
    words = page.take(name.start, name.end, mark=OTHER)
    if standing(page.original, name.start, name.end, is_name=True) > 0:
        claims.reading(f"{planned!r} is planned for, not {words!r}, which is said of something else")
    else:
        claims.reading(f"{words!r} is named as what {planned!r} takes the place of")


def _with_size(page: Page, mention: model_mentions.Mention) -> tuple[models.ModelEntry, str] | None:
    """The model of a family that is named alone, by the one size that stands elsewhere ("qwen3 moe … the 30B-A3B")."""
    sizes = [one for one in page.search(_SIZE) if not page.is_negated(*one.span())]
    found: dict[str, re.Match[str]] = {}
    for size in sizes:
        with suppress(InputError):
            found.setdefault(models.find_model(f"{mention.words} {size.group()}").name, size)
    if len(found) != 1:
        return None
    [(name, size)] = found.items()
    words = f"{mention.words} {page.take(*size.span(), mark=MODEL)}"
    return models.find_model(name), words


def _without_bracket(mention: model_mentions.Mention) -> model_mentions.Mention:
    """A name alone, where only the size in brackets behind it is no part of one: "GLM-4.5 (355B-A32B)"."""
    name, bracket, size = mention.words.partition("(")
    if not bracket or mention.error is None or re.match(r"\d{2,4}B-A\d{1,3}B", size, re.IGNORECASE) is None:
        return mention
    found = [one for one in model_mentions.mentions(name.rstrip()) if one.entry and one.words == name.rstrip()]
    return replace(found[0], start=mention.start, end=mention.end) if found else mention


def _is_vaguer(mention: model_mentions.Mention, other: model_mentions.Mention) -> bool:
    """Whether a mention says less of the same thing: "llama 70b" beside "Llama 3.1 70B"."""
    if mention.entry is not None and other.entry is not None and other.entry.base == mention.entry.name:
        return True  # "Qwen3-4B" beside its checkpoint "Qwen3-4B-FP8"
    said, more = parse_name(mention.words).core, parse_name(other.words).core
    is_whole = mention.entry is not None and said == parse_name(mention.entry.short_name).core
    return other.entry is not None and said < more and not is_whole


def is_former(page: Page, start: int) -> bool:
    """Whether a name is what was there before, or what something is compared with ("moving from 8 A100s to ...")."""
    return _FORMER.search(page.original[max(0, start - 60) : start]) is not None


def _read_nickname(page: Page, claims: Claims) -> NamedModel:
    match = _NICKNAME.search(page.text)
    if match is None:
        return NamedModel()
    name = list(_NICKNAMES)[int(str(match.lastgroup)[1:])]
    words = page.take(*match.span(), mark=MODEL)
    _claim_model(claims, models.find_model(name), words)
    return NamedModel(words)


def _claim_model(claims: Claims, entry: models.ModelEntry, words: str) -> None:
    """Claim the model, and say so where its name is not what was written."""
    claims.claim("model", entry.name, words)
    mended = [note for note in claims.readings for family in _FAMILIES if note.endswith(f" read as {family!r}")]
    if mended or not models.is_name_of(words, entry):
        claims.assume("model", "; ".join((*mended, models.read_as(words, entry))))
    elif (note := models.same_architecture(words, entry)) is not None:
        claims.assume("model", note)
    tuned = _TUNED.search(words)
    if tuned is not None and _TUNED.search(entry.name) is None:
        claims.reading(
            f"{words!r} is planned as {entry.name}, which has its shape: MODEL of an exported script is yours to name"
        )


def refuse_unknown_model(page: Page, claims: Claims) -> None:
    """Where no model was found or described: refuse a word that looks like one by its size ("Foo-13B"), by its name.

    Raises:
        RequestError: there is such a word; the message has the nearest known names.
    """
    if claims.describes_model:
        return
    if not claims.has("model") and (match := _MODEL_LIKE.search(page.text)):
        raise claims.refusal(_unknown_model(match.group()))
    if not claims.has("model") and (slip := _slip_of_family(page)) is not None:
        raise claims.refusal(_unknown_model(slip[0].replace(slip[1], slip[2], 1), slip[0]))


def own_name(page: Page) -> str | None:
    """The first word that looks like a model by its size, where the model is described and not in a catalogue."""
    match = _MODEL_LIKE.search(page.text)
    return None if match is None else match.group()


def _slip_of_family(page: Page) -> tuple[str, str, str] | None:
    """A name whose first word is nearly a family ("DeepSek-V3"): the name, that word and the family."""
    for match in _NAME_LIKE.finditer(page.text):
        close = get_close_matches(match["word"].lower(), _FAMILIES, n=1, cutoff=0.8)
        if close:
            return match.group(), match["word"], close[0]
    return None


def _unknown_model(words: str, written: str | None = None) -> str:
    """Why a name is refused; `written` is the name as it stands where `words` is it with a slip mended."""
    try:
        if written is not None:
            return f"unknown model {written!r}; did you mean {models.find_model(words).short_name}?"
        return f"{words!r} was not recognised as a model; write its name as {models.find_model(words).name}"
    except InputError as error:
        return str(error) if written is None else str(error).replace(repr(words), repr(written), 1)


def _with_memory(
    page: Page, claims: Claims, mention: hardware.AcceleratorMention, accelerator: Accelerator
) -> tuple[int, int, Accelerator]:
    """The mention with a memory size that stands apart from the name: "A100 (40GB)", "40 GB A100s"."""
    after = _MEMORY_AFTER.match(page.text, mention.end)
    before = None if after else _MEMORY_BEFORE.search(page.text[max(0, mention.start - 14) : mention.start])
    found = after or before
    if found is None:
        return mention.start, mention.end, accelerator
    size = next(value for key, value in found.groupdict().items() if value and key.startswith("size"))
    bus = f" {after['bus'] or after['bus4']}" if after and (after["bus"] or after["bus4"]) else ""
    start = mention.start - (len(before.group()) if before else 0)
    end = after.end() if after else mention.end
    if after and after["times"] and not mention.gpus_per_node:
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


def read_accelerator(page: Page, claims: Claims) -> NodeSizes:
    """Take the accelerators' names off the page.

    Raises:
        RequestError: several different accelerators (a plan is for one kind), or an unknown one.
    """
    sizes = NodeSizes()
    named: list[Named] = []
    for mention in hardware.mentions(page.text):
        if mention.accelerator is None and CORRECTED.match(page.original[mention.end :].lstrip(" .,;-")):
            _keep_count(page, claims, mention.start)
            _take_counted(page, mention.start, mention.end)
            claims.reading(f"{mention.words!r} is taken back and was not read")
            continue
        if mention.accelerator is None:
            raise claims.refusal(str(mention.error))
        if page.is_negated(mention.start, mention.end) or is_former(page, mention.start):
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
        _claim_accelerator(page, claims, settle(page.original, named))
    return sizes


def _count_before(page: Page, name: Named) -> re.Match[str] | None:
    """The number right before a card's name."""
    before = max(0, name.start - 24)
    found = _NUMBERED.search(page.text, before, name.start)
    return found if found is not None and page.text[name.start] == CARD else None


def _count_word(page: Page, start: int) -> str:
    """The number right before a name, with the blanks between; nothing where there is none."""
    count = _COUNT_BEFORE.search(page.text[max(0, start - 12) : start])
    return "" if count is None else count.group()


def _keep_count(page: Page, claims: Claims, start: int) -> None:
    """Keep the count of a name that is taken back for the one that is meant, where nothing else counts it."""
    words = _count_word(page, start)
    digits = re.search(r"\d{1,5}", words)
    if digits is not None and not claims.has(COUNT_TAKEN_BACK):
        claims.claim(COUNT_TAKEN_BACK, int(digits.group()), words.strip())


def _take_counted(page: Page, start: int, end: int) -> None:
    """Take a name that is not meant off the page, with its count."""
    page.take(start - len(_count_word(page, start)), end)


def _claim_accelerator(page: Page, claims: Claims, settled: Settled) -> None:
    """Claim the accelerator that is meant, or the kinds that there are to choose from."""
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
        _take_counted(page, name.start, name.end)
        if name.value != first.value:
            claims.reading(f"{words[name]!r} is named as what {words[first]!r} takes the place of")
    if settled.kind == "one":
        claims.claim("accelerator", first.value, words[first])
        return
    kinds = tuple(dict.fromkeys(name.value for name in settled.meant))
    said = " or ".join(dict.fromkeys(words[name] for name in settled.meant))
    counts = {name.value: count for name in settled.meant if (count := _count_before(page, name)) is not None}
    if len(counts) == len(kinds) and len({read_whole(count["n"].lower()) for count in counts.values()}) > 1:
        numbers = tuple(_ARTICLES.get(count["n"].lower()) or read_whole(count["n"]) or 1 for count in counts.values())
        said = " or ".join(page.original[counts[name.value].start("n") : name.end] for name in settled.meant)
        for count in counts.values():
            page.take(*count.span("n"))
        claims.claim("gpus_of_kinds", numbers, said)
    claims.claim("accelerators", AcceleratorsConstraint(kind="accelerators", value=kinds, words=said), said)
