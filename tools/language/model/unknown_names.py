"""Names that no catalogue has: nothing is planned for another card or model than the named one.

A request with such a card is refused once all else was read, one without a model says which words look like one; in a
brief, which may describe a card, such a name names that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...catalog.hardware import find_accelerator, of_group
from ...catalog.models import find_model
from ...errors import ShardwrightError, UnknownNameError
from ...plan.constraints import chosen_kinds
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import CARD, MODEL, Page

_COUNTED_PART = Gated(
    r"(?<![A-Za-z0-9.])\d{1,6}\s?(?:[x*]\s?|张\s?|块\s?|卡\s?)?(?P<name>[A-Z][A-Z]{0,11}-?\d{2,5}[A-Z]{0,4})(?![A-Z0-9])",
)
# What looks like the name of a part, in the clause with its count: "8张摩尔线程 MTT S4000".
_PART = Gated(r"(?<![A-Za-z0-9./\-])(?P<name>[A-Z]{1,5}[ -]?[A-Z]?\d{2,5}[A-Z]{0,4})(?![A-Za-z0-9])", flags=0)
_NUMBER = rf"(?<![\w.,])(?:\d{{1,5}}|(?i:{ENGLISH_NUMBER}))"
_WORD = (
    r"(?!(?i:per|of|an?|each|every|in|on|the|and|or|to|for|with|at|from|by|is|are|more|other|further|fewer|extra)"
    r"(?![a-z]))\w[\w.\-]{0,30}"
)
_OF_DESCRIBED = Gated(
    rf"(?:{_NUMBER}\s?(?:[x*张块卡]\s?)?|[每台]\s?\d{{1,3}}\s?[张块卡]\s?)(?P<name>[A-Z]{{1,6}}-?[A-Z]?\d{{1,5}}[A-Z]{{0,4}})(?![A-Za-z0-9])",
    flags=0,
)
_NOUN = r"(?i:cards?|gpus?|npus?|accelerators?|chips?)(?![A-Za-z])"
# That cards are NVIDIA's is no more than is assumed where none is named.
_NO_VENDOR = r"(?!(?i:nvidia)(?![a-z]))"
# "8 Foobar X200 cards", "two nebula gpus".
_NAMED = Gated(
    rf"{_NUMBER}(?:\s?[x*]\s?|\s)(?:(?i:nvidia)\s)?(?P<name>(?!\d){_NO_VENDOR}{_WORD}(?:\s{_WORD}){{0,2}}?)\s{_NOUN}",
    flags=0,
)
# "8 cards named Zeta-1", "GPUs called Orion 2".
_SAID_TO_BE_NAMED = Gated(
    rf"{_NOUN}\s(?:named|called)\s[\"“']?(?P<name>[A-Z][\w\-]{{1,30}}(?:\s[A-Z0-9][\w\-]{{0,20}}){{0,2}})", flags=0
)
# "Blackwell cards", "8 AMD GPUs".
_OF_GROUP = Gated(rf"(?<![\w\-]){_NO_VENDOR}(?P<name>[A-Za-z][\w\-]{{1,30}})\s{_NOUN}", flags=0)
# "on 8 Nebula X1", "8x Nebula": without a noun only words written as a name.
_WRITTEN_AS_NAME = Gated(
    rf"(?:(?:(?<=on\s)|(?<=On\s)|(?<=across\s)|(?<=using\s)){_NUMBER}\s|(?<![\w.,])\d{{1,5}}\s?[x*]\s?)"
    r"(?P<name>(?!(?i:gpus?|cards?|nodes?|servers?)(?![a-z]))[A-Z][\w\-]{1,30}(?:\s[A-Z0-9][\w\-]{0,20}){0,2})"
    r"(?=\s?(?:[,.;:()\n]|$)|\s(?:for|with|and|in|at|to)\s)",
    flags=0,
)
# "gpt-oss-20b on a MacBook M3 Max": what a model is to run on, whatever it is; not what may be beneath any card.
_PLATFORM = (
    r"(?i:k8s|kubernetes|openshift|eks|gke|aks|aws|amazon|gcp|google\sc|azure|oracle|oci|linux|ubuntu|debian|rhel|windows|"
    r"wsl|docker|podman|slurm|ray|dynamo|llm-d|triton|prem|bare|cloud|spot|site|top|jan|feb|mar|apr|may|jun|jul|aug|sep|"
    r"oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)"
)
_BENEATH = Gated(
    rf"{MODEL}\s(?:on|onto)\s(?P<article>(?:an?|my|our|the|one|his|her|your)\s)?(?:single\s)?"
    rf"(?P<name>(?!{_PLATFORM})[A-Z][\w\-]{{2,30}}(?:\s[A-Z0-9][\w\-]{{0,20}}){{0,3}})(?!\s?[:=])",
    flags=0,
)
_IS_NAME = re.compile(r"[A-Z\d]")
# Machines of a cloud by their type: their accelerators are no part of the name.
INSTANCE = Gated(
    r"(?<![A-Za-z0-9])(?:[a-z]{1,3}\d[a-z]{0,4}\.(?:metal|\d{0,3}x?large)|[a-z]\d-(?:high|mega|ultra|edge)gpu-\d{1,2}g|"
    r"Standard_N[A-Za-z0-9_]{2,40})(?![A-Za-z0-9])",
)
_SIZED_NAME = re.compile(
    r"(?<![\w/.-])[A-Z][A-Za-z]{2,20}(?:[\s-][A-Z0-9][\w.+]{0,12}){0,3}[\s-]\(?\d{1,4}(?:\.\d)?B(?![a-z])\)?"
)
# An id of the Hub without a size: "BAAI/bge-large-en-v1.5", and not "prefill/decode" or "1500/250".
_REPOSITORY = Gated(
    r"(?<![\w./:-])(?P<name>[A-Za-z][\w.-]{1,60}/(?=[A-Za-z.]{0,60}[-\d])[A-Za-z][\w.-]{0,90}\w)(?![\w/])"
)
_ORDER = Gated(r"^(?:serve|run|host|deploy|plan|use|try|put|size|model|want|need|we|can)\s")


def own_cards(text: str) -> Iterator[tuple[int, int, str]]:
    """Counted cards whose name no catalogue has: the start of the name, the end of the noun, and the name."""
    for match in (*_NAMED.finditer(text), *_WRITTEN_AS_NAME.finditer(text), *_SAID_TO_BE_NAMED.finditer(text)):
        if _IS_NAME.search(match["name"]):
            yield match.start("name"), match.end(), match["name"]


def counted_parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Counted names of parts, as `own_cards` yields them, in a text that describes a card: "eight ZX-10"."""
    return ((match.start("name"), match.end(), match["name"]) for match in _OF_DESCRIBED.finditer(text))


def refuse_unknown_card(page: Page, claims: Claims) -> None:
    """Refuse an unknown card that is counted or to run the model, where none is known; list unknown instance types."""
    if claims.has("accelerator") or chosen_kinds(claims.values.get("constraints", ())):
        return
    beneath: list[re.Match[str]] = []
    for match in _BENEATH.finditer(page.text):
        if match["article"] or not match["name"].isalpha():
            beneath.append(match)
        else:  # "on LongBench"
            claims.leave_unread(f"{match['name']!r} in {page.clause_text(*match.span())[:80]!r} was not understood")
    for match in (*_unread_names(page), *beneath, *_parts(page, claims)):
        try:
            known = find_accelerator(match["name"]).id
        except UnknownNameError as error:
            mend = "" if error.nearest else "; name one that `shardwright hardware` lists"
            raise claims.refusal(f"{error}{mend}") from None
        raise claims.refusal(f"{match['name']!r} was not recognised as an accelerator; write {known}")
    for match in INSTANCE.finditer(page.original):
        claims.leave_unread(f"{match.group()!r}: instance types are not known here; name the accelerator and how many")


def _unread_names(page: Page) -> Iterator[re.Match[str]]:
    """Names of groups of cards, and names whose number no reader took."""
    yield from (
        match
        for match in _OF_GROUP.finditer(page.original)
        if page.text[match.start()] != CARD and of_group(match["name"])
    )
    for pattern in (_NAMED, _WRITTEN_AS_NAME):
        for match in pattern.finditer(page.original):
            at = match.start()  # the number, which lookbehinds precede
            if page.text[at] == page.original[at]:
                yield match


def _parts(page: Page, claims: Claims) -> Iterator[re.Match[str]]:
    """Counted words that look like a part's name: "8 Z100"."""
    parts = page.search(_COUNTED_PART)
    counted = next((claims.words[name] for name in ("gpus", "gpus_per_node") if claims.has(name)), "")
    if parts or not counted:
        return iter(parts)
    left, right = page.clause(start := max(0, page.original.find(counted)), start + len(counted))
    return _PART.finditer(page.text, left, right)


def why_no_model(text: str) -> str:
    """Why nothing is planned for a request that names no known model: which words look like one, if any do."""
    if (repository := _REPOSITORY.search(text)) is not None:
        return _of_repository(repository["name"])
    if (sized := _SIZED_NAME.search(text)) is not None:
        name = _ORDER.sub("", sized.group()).strip()
        return f"unknown model {name!r}; name another, or give its config.json"
    return "the request names no model; name one (`shardwright models` lists them)"


def _of_repository(name: str) -> str:
    try:
        find_model(name)
    except ShardwrightError as error:
        return str(error)
    return f"{name} is known, but not read as the model: name it by --model {name}"
