"""Stretches of running text that look like the name of a model: where each begins and ends.

Tokens come from `names.py`. Every pattern is bounded and free of nested repetition, so that hostile text is read in
linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from .names import TUNINGS, NameToken, TokenKind, named_format, tokens_of

# Families that are English words too: a mention only if they resolve to an entry, or are surely a name.
_WORD_FAMILIES = frozenset(
    [
        "phi",
        "yi",
        "falcon",
        "grok",
        "step",
        "solar",
        "muse",
        "inkling",
        "ling",
        "ring",
        "command",
        "hy",
        "olmo",
        "hermes",
        "tulu",
        "granite",
        "aya",
        "moonlight",
        "zephyr",
    ]
)
# Variants that may follow after a space; joined by a hyphen any word is part of the name.
_VARIANTS = frozenset(
    [
        "scout", "maverick", "nano", "super", "ultra", "large", "small", "medium", "nemo", "mini", "flash", "air",
        "next", "coder", "pro", "lite", "distill", "vl", "math", "vision", "omni", "open", "glimmer", "plus", "r", "hy",
        "linear", "think", "reasoning", "h",
    ]
)  # fmt: skip
_CONNECTORS = frozenset(["on", "with", "at", "for", "in", "x", "and", "to", "by", "using", "per"])
# Software that is named after a family.
_NOT_A_MODEL = re.compile(r"\.cpp|[-_ ]?index\b|[-_ ]?factory\b|\.rs\b|[-_ ]?stack\b", re.IGNORECASE | re.ASCII)

_GAP = re.compile(r"(?:[ \t]{0,2}[-_:]?[ \t]{0,2}|/)的?[ \t]?")
_CARD = re.compile(r"h\d{2,3}(?![\dA-Za-z.])", re.IGNORECASE)
# Releases and families that were distilled into others.
_DISTILLED = frozenset({"r1", "deepseek"})
# What may stand between a name and its size or release: "Llama 3.1 (70B)", "Llama 3.1 with 70B", "DeepSeek's R1".
_BRIDGE = re.compile(
    r"[ \t]{0,2}[(\[,:（]?[ \t]{0,2}(?:(?:the|its|an?|in|with|at|of)[ \t]){0,3}|(?:[ \t]AI)?'s[ \t]", re.IGNORECASE
)
_BRIDGED_TOKENS = 4
# A size or release in front of the family: "R1 from DeepSeek", "the 405B version of Llama 3.1".
_BEFORE = re.compile(
    r"(?<![A-Za-z0-9./-])(?P<token>\d{1,4}(?:\.\d)?b|[rvk]\d(?:\.\d)?)[ \t]"
    r"(?:(?:parameters?|params?|version|variant|edition|sized?|model)[ \t]){0,2}(?:(?:of|from|by)[ \t](?:the[ \t])?|"
    r"\()$",
    re.IGNORECASE,
)
_ACTIVE_FOLLOWS = re.compile(r"[ \t-]{0,2}activ", re.IGNORECASE)
# Dates that stand apart: "Mistral Large 2407", "DeepSeek V3 0324". Nobody counts from a zero.
_DATE = re.compile(r"2[3-6](?:0[1-9]|1[0-2])|0[1-9][0-3]\d")
_RELEASE = re.compile(r"[vrk]\d[\d.]*|\d+\.\d+")
# A bare number before these is a count, no version ("llama 8 H100").
_COUNTED = re.compile(
    r"[ \t]{0,2}(?:[x×*]|张|台|块|卡|个|路|并发|用户|请求|(?:gpu|card|node|user|request|replica|instance|cop(?:y|ie)|"
    r"server|host|machine|box(?:e)?|client|stream|session|people|token|chip|thread|worker|engineer|developer|agent|chat|"
    r"call)s?\b|concurren|simultan|parallel|[tr]ps\b|qps\b|[mk]?s\b|sec|min|[gt]i?b\b|%|[a-z]{1,3}\d{2,3})",
    re.IGNORECASE,
)
# A variant's word before these qualifies them and belongs to no name ("gemma 3 27b large batch").
_QUALIFIED = re.compile(
    r"[ \t-]{1,2}(?:batch|context|prompt|input|output|cluster|gpu|card|node|server|machine|box|load|traffic|request|"
    r"document|file|window|budget|team|number|amount|scale|deployment|fleet|instance|memory|latency|cache|model)",
    re.IGNORECASE,
)
_MAX_TOKENS = 14
_MOST_VERSION_DIGITS = 2


class NameSpan(Struct, frozen=True):
    """A stretch of text that looks like a model's name, longest reading first."""

    start: int
    ends: tuple[int, ...]
    is_certain: bool


def spans_in(text: str) -> Iterator[NameSpan]:
    """Stretches of `text` that look like model names, left to right, not overlapping.

    `ends` are the ends to try in order: trailing words and counts that stand apart may belong to the sentence.
    """
    tokens = list(tokens_of(text))
    index = taken = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind != "family" and token.text not in _WORD_FAMILIES:
            index += 1
            continue
        last = _last(text, tokens, index)
        if _NOT_A_MODEL.match(text, token.end) and last == index:
            index += 1
            continue
        start = _start(text, tokens, index, last)
        if start < taken:
            start = token.start
        taken = tokens[last].end
        is_certain = token.kind == "family" or _is_surely_a_name(tokens[index : last + 1])
        yield NameSpan(start, tuple(_ends(text, tokens, index, last)), is_certain)
        index = last + 1


def _is_surely_a_name(tokens: list[NameToken]) -> bool:
    """Whether the word is surely a name: it has a size ("yi 34b") or a version ("Phi-3.5", unlike "step 2")."""
    has_version = (
        len(tokens) > 1 and tokens[1].kind == "version" and (tokens[0].text != "step" or "." in tokens[1].text)
    )
    return has_version or any(token.kind == "size" for token in tokens)


def _last(text: str, tokens: list[NameToken], first: int) -> int:
    """Index of the last token that continues the name beginning at `first`."""
    seen: set[TokenKind] = set()
    last = first
    while last + 1 < len(tokens) and last - first < _MAX_TOKENS:
        token = tokens[last + 1]
        gap = text[tokens[last].end : token.start]
        is_joined = gap in ("", "-", "_", "/") or (gap == "." and named_format(token.text) is not None)
        is_counted = not is_joined and token.text.isdigit() and _COUNTED.match(text, token.end)
        if _CARD.match(text, token.start):  # "Qwen3-32B H200": the H of Granite 4.0 H begins a card's name here
            break
        if (
            (is_joined or _GAP.fullmatch(gap))
            and _continues(token, tokens[last], seen, is_joined=is_joined)
            and not is_counted
        ):
            last += 1
        elif (bridged := _bridged(text, tokens, last, seen)) is not None:
            last = bridged
        else:
            break
        seen.add(tokens[last].kind)
    return last


def _bridged(text: str, tokens: list[NameToken], last: int, seen: set[TokenKind]) -> int | None:
    """Index of the size or release that belongs to the name across words or a bracket; `None` if none does."""
    for index in range(last + 1, min(len(tokens), last + 1 + _BRIDGED_TOKENS)):
        token = tokens[index]
        gap = text[tokens[last].end : token.start]
        if not _BRIDGE.fullmatch(gap):
            continue
        is_size = token.kind == "size" and "size" not in seen and not _ACTIVE_FOLLOWS.match(text, token.end)
        is_release = "'" in gap and token.kind == "version" and "version" not in seen
        if is_size or is_release:
            return index
    return None


def _continues(token: NameToken, previous: NameToken, seen: set[TokenKind], *, is_joined: bool) -> bool:
    if token.kind in ("size", "active", "experts"):
        return is_joined or token.kind not in seen
    if token.kind == "version":
        is_late = "version" not in seen and _RELEASE.fullmatch(token.text) is not None  # "llama 70b 3.1"
        return is_joined or not seen & {"version", "size"} or is_late
    if token.kind == "family":
        return is_joined or previous.text == "distill"
    if token.kind in ("context", "date"):
        return is_joined or _DATE.fullmatch(token.text) is not None
    if token.kind == "ignored":
        return is_joined or token.text in TUNINGS
    return (is_joined and token.text not in _CONNECTORS) or token.text in _VARIANTS


def _start(text: str, tokens: list[NameToken], first: int, last: int) -> int:
    """Where the name begins: a size may stand in front ("70B Llama 3.1"), a release too ("R1 from DeepSeek")."""
    if (distilled := _distilled(text, tokens, first)) is not None:
        return distilled
    kinds = {token.kind for token in tokens[first : last + 1]}
    has_size = "size" in kinds
    before = _BEFORE.search(text, max(0, tokens[first].start - 50), tokens[first].start)
    if before is not None and ("size" if before["token"][-1] in "bB" else "version") not in kinds:
        return before.start()
    if first > 0 and not has_size and tokens[first - 1].kind == "size":
        gap = text[tokens[first - 1].end : tokens[first].start]
        if _GAP.fullmatch(gap) and "-" not in gap:
            return tokens[first - 1].start
    return tokens[first].start


def _distilled(text: str, tokens: list[NameToken], first: int) -> int | None:
    """Where a name begins that states the distilled release before its family ("R1 distill qwen 32b")."""
    start = first
    while start > 0 and _GAP.fullmatch(text[tokens[start - 1].end : tokens[start].start] or " "):
        if tokens[start - 1].text != "distill" and (start == first or tokens[start - 1].text not in _DISTILLED):
            break
        start -= 1
    return (
        tokens[start].start
        if start < first and any(token.text in _DISTILLED for token in tokens[start:first])
        else None
    )


def _ends(text: str, tokens: list[NameToken], first: int, last: int) -> Iterator[int]:
    """The end of the longest reading, then ends without trailing tokens that may be words or counts of the sentence."""
    yield tokens[last].end
    while last > first:
        token = tokens[last]
        apart = any(character.isspace() for character in text[tokens[last - 1].end : token.start])
        # Without a number of one or two digits ("Mistral Large 3") or a variant, the name means another model.
        is_count = token.text.isdigit() and len(token.text) > _MOST_VERSION_DIGITS
        may_be_words = token.text not in _VARIANTS or _QUALIFIED.match(text, token.end) is not None
        if not apart or not ((token.kind in ("word", "ignored") and may_be_words) or is_count):
            return
        last -= 1
        yield tokens[last].end
