"""The model that a request names.

Names become marks on the page, so that their digits are not read as figures. The catalogue finds and resolves names;
here denied names are dropped, and unknown or several different names are refused.
"""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ...catalog import model_mentions, models
from ...catalog.dtypes import DType
from ...catalog.entry import ModelEntry
from ...catalog.names import parse_name
from ...errors import InputError
from ..conflicts.alternatives import CORRECTED, settle
from ..conflicts.claims import Claims
from ..conflicts.condition_outcome import Named
from ..conflicts.statement_rank import is_former, standing
from ..patterns.gated import Gated
from ..patterns.page import MODEL, OTHER, Page

# What people call a model when they name nothing else: the release alone, or the size that only it has.
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
    "|".join(
        rf"(?<![A-Za-z0-9.\-])(?P<n{i}>{words})(?![A-Za-z0-9.]|\sof(?![a-z]))"
        for i, words in enumerate(_NICKNAMES.values())
    ),
)
# A release of DeepSeek's alone, where it is what is served: "put V3.1 on 16 H20", "V3.1放H20上跑". Of a quote or an
# engine it is a version.
_RELEASE = Gated(
    r"(?:^|[.;:,!?。\n(]\s?|(?P<lead>(?<![a-z])(?:serv(?:e|ing)|run(?:ning)?|put|host(?:ing)?|deploy(?:ing)?|us(?:e|ing)|plan(?:ning)?|siz(?:e|ing)|try|want|need|for|with|model\s?[:=])\s(?:the\s|our\s)?|"
    r"(?:部署|[跑用上把给换是]|模型[:是用]?)\s?))(?P<name>v3(?:\.[12])?)"
    r"(?=\s(?:on|with|at|over|across|in\s(?:fp8|bf16|int4|vllm|sglang)|fp8|bf16|please)(?![a-z])|\s?[放在部署跑上用]|\s?\(?(?:the\s)?671b|(?P<end>\s?[,;()!?]|\.?(?:\s?$|\s(?![a-z])|\n)))",
)
# A checkpoint trained to chat, where the catalogue has its base.
_TUNED = Gated(r"(?<![a-z])(?:instruct|chat|it)(?![a-z])")
_SIZE = Gated(r"(?<![A-Za-z0-9.\-])(?:\d{1,2}x)?\d{1,4}(?:\.\d)?B(?:-A\d{1,3}(?:\.\d)?B)?(?![A-Za-z0-9])")
# A word that looks like a model of some size ("Foo-13B", "acme foo 2 13b") although no catalogue knows its family.
_MODEL_LIKE = Gated(
    r"(?<![A-Za-z0-9./\-])(?:[A-Za-z][\w.\-]{0,60}[\-_])?"
    r"(?!(?:use|run|serve|host|deploy|the|of|on|with|for|and|or|to|two|our|a|an)\s)[A-Za-z][\w.]{0,30}"
    r"(?:[\-_ ][vV]?\d{1,2}(?:\.\d)?){0,2}[\-_ ]?(?:\d{1,3}[xX])?\d{1,4}(?:\.\d{1,3})?[bB](?![A-Za-z0-9])"
    r"(?:-[A-Za-z][A-Za-z\-]{0,30})?",
    flags=0,
)
_NAME_LIKE = Gated(r"(?<![A-Za-z0-9./\-])(?P<word>[A-Za-z]{4,12})(?:[\-_ ]?[vkr]?\d[\w.]{0,12}){1,3}")
_FAMILIES = ("deepseek", "llama", "qwen", "mixtral", "mistral", "gemma", "kimi", "minimax", "nemotron", "hunyuan")
_BRACKETED_SIZE = re.compile(
    r"(?:(?:the|our) )?(?P<total>\d{1,4}(?:\.\d{1,2})?)(?P<unit>[BT])-A\d{1,3}(?:\.\d)?B", re.IGNORECASE
)
_NEAR = 12  # characters between a name and the words that take it back
_LONGEST_CORRECTION = 24


class NamedModel(Struct, frozen=True):
    """How the model was written, and the number format that a suffix of its name states ("-FP8")."""

    words: str = ""
    weights: DType | None = None


def read_model(page: Page, claims: Claims) -> NamedModel:
    """Take the model's name off the page. A second, vaguer mention ("our llama") speaks of the same model.

    Raises:
        RequestError: several different models, or one that the catalogue does not know.
    """
    mentions: list[model_mentions.Mention] = []
    given_up: set[str] = set()  # unknown names that another name replaces
    named = [_without_bracket(mention) for mention in model_mentions.mentions(page.text)]
    for mention, once in zip(named, claims.told_once([(mention.start, mention.end) for mention in named]), strict=True):
        meant = _corrected(page, claims, mention)
        is_meant = meant is not mention or not (
            once or page.is_negated(mention.start, mention.end) or is_former(page.original, mention.start)
        )
        page.take(mention.start, mention.end, mark=MODEL)
        if mention.error is not None and CORRECTED.search(page.original, mention.end, mention.end + _NEAR):
            claims.reading(f"{mention.words!r} is taken back and was not read")
            continue
        if is_meant:
            mentions.append(meant)
        elif mention.entry is None:
            given_up.add(mention.words.lower())
    mentions = [mention for mention in mentions if mention.entry is not None or mention.words.lower() not in given_up]
    mentions = _with_sizes(mentions)
    named = NamedModel()
    chosen = [mention for mention in mentions if not any(_is_vaguer(mention, other) for other in mentions)]
    names = [Named(mention.start, mention.end, mention.entry.name) for mention in chosen if mention.entry is not None]
    settled = settle(page, names)
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
        if not known and (entry := _with_size(page, mention) or _with_word(page, mention)) is not None:
            _claim_model(claims, *entry)
            return NamedModel(entry[1], mention.weights)
        is_aside = standing(page.original, mention.start, mention.end, is_name=True) > 0
        is_family = not any(letter.isdigit() for letter in mention.words)  # "gemma lost the eval"
        is_described = claims.describes_model and not known
        if not is_described and (not known or (models.has_family(mention.words) and not is_aside and not is_family)):
            raise claims.refusal(mention.error)
        claims.reading(f"{mention.words!r} is no model of the catalogue and was read as a comparison")
    return named if claims.has("model") else _read_nickname(page, claims)


def _set_aside(page: Page, claims: Claims, name: Named, planned: str) -> None:
    """Mark a model that is named beside the planned one, and note why it is not planned."""
    words = page.take(name.start, name.end, mark=OTHER)
    if standing(page.original, name.start, name.end, is_name=True) > 0:
        claims.reading(f"{planned!r} is planned for, not {words!r}, which is said of something else")
    else:
        claims.reading(f"{words!r} is named as what {planned!r} takes the place of")


def _with_size(page: Page, mention: model_mentions.Mention) -> tuple[ModelEntry, str] | None:
    """The model of a family named without a size, by the only size elsewhere ("qwen3 moe … the 30B-A3B")."""
    sizes = [match for match in page.search(_SIZE) if not page.is_negated(*match.span())]
    by_name: dict[str, re.Match[str]] = {}
    for size in sizes:
        with suppress(InputError):
            by_name.setdefault(models.find_model(f"{mention.words} {size.group()}").name, size)
    if len(by_name) != 1:
        return None
    [(name, size)] = by_name.items()
    words = f"{mention.words} {page.take(*size.span(), mark=MODEL)}"
    return models.find_model(name), words


_SIZE_IN_NAME = Gated(r"(?<![A-Za-z0-9.])(?:\d{1,2}x)?\d{1,4}(?:\.\d)?B(?:-A\d{1,3}(?:\.\d)?B)?(?![A-Za-z0-9])")
_MOST_CORRECTED = 90  # characters between a name and the size that replaces its own


# The part of a name right behind a correction: "V3 - sorry, V3.1", "GLM-4.5 (I mean the Air)", "Scout, no, Maverick".
_PART = Gated(
    r"(?:\W|(?:it's|it|is|that's|the|we|i|mean|meant|sorry|no|actually|make|rather)(?![a-z])|[应该其实]*是|用){1,12}?([a-z]?\d{1,2}(?:\.\d{1,2})?|(?!(?:the|for|that|this|they|you|are|was|but|and|not|on|in)(?![a-z]))[a-z]{3,12})(?![\w.\-]*\w|\s?(?:gpus?|cards?|nodes?|x)(?![a-z]))"
)
_NEW_RELEASE = re.compile(r"(?<![\w.])[VR]\d\.\d(?![\w.]*\w)")
_VERSION_IN_NAME = re.compile(r"(?<![\d.])[vrkm]?\d{1,2}(?:\.\d{1,2})?(?![\d.]*[b\d])", re.IGNORECASE)
_LAST_WORD = re.compile(r"[A-Za-z]+$")


def _corrected(page: Page, claims: Claims, mention: model_mentions.Mention) -> model_mentions.Mention:
    """The mention with the part of its name that a correction behind it states, its size or another."""
    if mention.entry is None:
        return mention
    end = mention.end + _MOST_CORRECTED
    size = _SIZE.search(page.text, mention.end, end) or _NEW_RELEASE.search(page.text, mention.end, end)
    part = size if size and CORRECTED.search(page.original, mention.end, size.start()) else None
    part = part or _part_behind(page.original, mention.end)
    if part is None:
        return mention
    said, span = part[part.lastindex or 0], part.span(part.lastindex or 0)
    names = (f"{mention.words} {said}", _LAST_WORD.sub(said, mention.words))
    if said[0].isdigit() or said[-1].isdigit():
        old = _VERSION_IN_NAME if said[-1].isdigit() else _SIZE_IN_NAME
        names = (old.sub(said, mention.words, count=1),)
    for name in names if said.lower() not in re.split(r"[\s\-]", mention.words.lower()) else ():
        entry = _model_of(name)
        if entry is not None and entry != mention.entry:
            words = page.take(*span, mark=MODEL)
            claims.reading(f"{words!r} takes the place of what {mention.words!r} says")
            return replace(mention, entry=entry, words=name)
    return mention


@lru_cache(64)
def _model_of(name: str) -> ModelEntry | None:
    with suppress(InputError):
        return models.find_model(name)
    return None


def _part_behind(text: str, end: int) -> re.Match[str] | None:
    """What may be a part of a name, right behind the words that correct the name which ends at `end`."""
    correction = CORRECTED.search(text, end, end + _NEAR + _LONGEST_CORRECTION)
    if correction is None or correction.start() - end > _NEAR:
        return None
    return _PART.match(text, correction.end())


def leave_sizes_unread(page: Page, claims: Claims) -> None:
    """List sizes of models on the page that are not those of the planned model."""
    name = claims.values.get("model")
    if name is None or claims.describes_model:
        return
    with suppress(InputError):
        entry = models.find_model(name)
        sizes = _billions(entry)
        for size in page.search(_SIZE):
            billions = float(re.findall(r"[\d.]+", size.group())[0])
            is_said = size.group().lower() in f"{name} {claims.words.get('model', '')}".lower()
            if (
                not is_said
                and not page.is_negated(*size.span())
                and not any(abs(known - billions) <= max(1.0, 0.1 * known) for known in sizes)
            ):
                claims.leave_unread(f"{size.group()!r} in {page.clause_text(*size.span())[:80]!r} was not understood")


_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{4,12}(?![A-Za-z])")
_MOST_BEHIND = 90  # characters behind a family in which a word may tell which of its models is meant


def _with_word(page: Page, mention: model_mentions.Mention) -> tuple[ModelEntry, str] | None:
    """The model of a family that a word of its name behind it tells: "llama 4, not scout, maverick"."""
    by_name: dict[str, tuple[ModelEntry, str]] = {}
    for word in _WORD.finditer(page.text, mention.end, mention.end + _MOST_BEHIND):
        if word.group().lower() not in (mention.error or "").lower() or page.is_negated(*word.span()):
            continue
        with suppress(InputError):
            entry = models.find_model(f"{mention.words} {word.group()}")
            by_name[entry.name] = (entry, f"{mention.words.strip()} {word.group()}")
    return by_name.popitem()[1] if len(by_name) == 1 else None


def _with_sizes(mentions: list[model_mentions.Mention]) -> list[model_mentions.Mention]:
    """The mentions; a release without a size takes that of the mention before it: "Llama 3.1 70B … it's Llama 3.3"."""
    completed: list[model_mentions.Mention] = []
    for mention in mentions:
        before = next((other for other in reversed(completed) if other.entry is not None), None)
        whole = None if mention.entry is not None or before is None else _completed(mention.words, before.words)
        completed.append(mention if whole is None else replace(mention, entry=models.find_model(whole), error=None))
    return completed


def with_size_said_before(older: str, newer: str) -> str:
    """The newer text with what the older says of its model: the size of a release ("it's Llama 3.3"), the whole name in
    place of a family alone.
    """
    sized = [name for name in model_mentions.mentions(older) if name.entry is not None and _SIZE.search(name.words)]
    for mention in reversed([mention for mention in model_mentions.mentions(newer) if mention.entry is None]):
        whole = {whole for name in sized if (whole := _completed(mention.words, name.words)) is not None}
        if len(whole) == 1:
            newer = f"{newer[: mention.start]}{whole.pop()}{newer[mention.end :]}"
    return newer


def _completed(release: str, sized: str) -> str | None:
    """A release with the size that another name of its family has, where there is such a model."""
    size = _SIZE.search(sized)
    if size is None or release[:4].lower() != sized[:4].lower():
        return None
    if not any(letter.isdigit() for letter in release):
        return sized
    with suppress(InputError):
        models.find_model(f"{release} {size.group()}")
        return f"{release} {size.group()}"
    return None


def _without_bracket(mention: model_mentions.Mention) -> model_mentions.Mention:
    """The mention without its own size in brackets, where that is no part of a known name: "GLM-4.5 (the 355B-A32B"."""
    name, _, bracket = mention.words.partition("(")
    size = _BRACKETED_SIZE.match(bracket) if mention.error is not None else None
    if size is None:
        return mention
    billions = float(size["total"]) * (1000 if size["unit"] in "Tt" else 1)
    alone = [other for other in model_mentions.mentions(name.rstrip()) if other.entry and other.words == name.rstrip()]
    is_its = alone and any(abs(known - billions) <= 0.1 * known for known in _billions(alone[0].entry))
    return replace(alone[0], start=mention.start, end=mention.end) if is_its else mention


def _billions(entry: ModelEntry | None) -> list[float]:
    """The numbers of parameters that a model may be called by."""
    counts = () if entry is None else (entry.total_params, entry.active_params, entry.published_params)
    return [count * 1e-9 for count in counts if count]


def _is_vaguer(mention: model_mentions.Mention, other: model_mentions.Mention) -> bool:
    """Whether a mention is a vaguer name of the same model: "llama 70b" beside "Llama 3.1 70B"."""
    if mention.entry is not None and other.entry is not None and other.entry.base == mention.entry.name:
        return True  # "Qwen3-4B" beside its checkpoint "Qwen3-4B-FP8"
    less, more = parse_name(mention.words).core, parse_name(other.words).core
    is_whole = mention.entry is not None and less == parse_name(mention.entry.short_name).core
    return other.entry is not None and less < more and not is_whole


def _read_nickname(page: Page, claims: Claims) -> NamedModel:
    match, release = _NICKNAME.search(page.text), _RELEASE.search(page.text)
    is_served = release is not None and (release["lead"] or (release["name"][0] == "V" and release["end"] is None))
    if match is not None:
        name, span = list(_NICKNAMES)[int(str(match.lastgroup)[1:])], match.span()
    elif release is not None and is_served:
        name, span = f"DeepSeek-{release['name'].upper()}", release.span("name")
    else:
        return NamedModel()
    words, entry = page.take(*span, mark=MODEL), models.find_model(name)
    _claim_model(claims, entry, words)
    if match is None:
        claims.assume("model", models.read_as(words, entry))
    return NamedModel(words)


def _claim_model(claims: Claims, entry: ModelEntry, words: str) -> None:
    """Claim the model, with an assumption where its name is not what was written."""
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
    """Refuse words that look like a model by size ("Foo-13B") or name, where no model was found or described."""
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
    """A name whose first word is a slip of a family's ("DeepSek-V3"): the name, that word and the family."""
    for match in _NAME_LIKE.finditer(page.text):
        close = get_close_matches(match["word"].lower(), _FAMILIES, n=1, cutoff=0.8)
        if close:
            return match.group(), match["word"], close[0]
    return None


def _unknown_model(words: str, written: str | None = None) -> str:
    """Why a name is refused; `written` is the name as it stands, where `words` has a slip mended."""
    try:
        if written is not None:
            return f"unknown model {written!r}; did you mean {models.find_model(words).short_name}?"
        return f"{words!r} was not recognised as a model; write its name as {models.find_model(words).name}"
    except InputError as error:
        return str(error) if written is None else str(error).replace(repr(words), repr(written), 1)
