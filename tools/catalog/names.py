"""Model names as people write them, cut into tokens: families, versions, sizes, variants, and what changes nothing.

It only cuts, compares and finds; what a name stands for is decided by `models.py`. Every pattern is bounded and free of
nested repetition, so that hostile text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .dtypes import DType

TokenKind = Literal["family", "size", "active", "experts", "version", "context", "date", "ignored", "word"]

# Families whose name alone marks a model in running text, in every spelling; Chinese ones with their Latin name.
_FAMILY_WORDS = (
    "deepseek|minimax|mixtral|ministral|mistral|magistral|codestral|devstral|nemotron|gpt[-_ ]?oss|chatglm|codellama|"
    "tinyllama|llama|qwen|qwq|gemma|gemini|claude|olmoe?|mimo|ernie|hunyuan|internlm|baichuan|starcoder|kimi|glm|dbrx|"
    "vicuna|gpt(?=[-_ ]?[0-9])|通义千问|千问|混元|文心一言|文心|深度求索"
)
# Families that are words of English too: a mention only where they resolve to an entry.
_WORD_FAMILIES = frozenset(
    ["phi", "yi", "falcon", "grok", "step", "solar", "muse", "inkling", "ling", "command", "hy", "olmo"]
)
_LATIN = {
    "通义千问": "qwen", "千问": "qwen", "混元": "hunyuan", "文心一言": "ernie", "文心": "ernie", "深度求索": "deepseek",
}  # fmt: skip

# What a name may carry without naming another architecture: tuning, format, host, organisation.
_FORMATS: dict[str, DType] = {
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "w8a8": "int8", "int8": "int8", "int4": "int4", "w4a16": "int4",
    "awq": "int4", "gptq": "int4", "fp4": "fp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8",
}  # fmt: skip
_TUNINGS = frozenset(["instruct", "chat", "hf", "thinking", "preview"])
_IGNORED = frozenset(_FORMATS) | _TUNINGS | frozenset(
    [
        "it", "base", "pt", "gguf", "quantized", "dynamic", "block", "latest", "model", "exp", "speciale", "terminus",
        "meta", "nvidia", "google", "openai", "microsoft", "mistralai", "alibaba", "moonshot", "moonshotai", "zai",
        "zhipu", "tencent", "xiaomi", "minimaxai", "databricks", "xai", "allenai", "tiiuae", "cohere", "c4ai", "ai",
        "upstage", "baidu", "stepfun", "unsloth", "redhatai", "text",
    ]
)  # fmt: skip
# Variants that may follow after a space; joined by a hyphen any word is part of the name.
_VARIANTS = frozenset(
    [
        "scout", "maverick", "nano", "super", "ultra", "large", "small", "medium", "nemo", "mini", "flash", "air",
        "next", "coder", "pro", "lite", "distill", "vl", "math", "vision", "omni", "open", "glimmer", "plus", "r", "hy",
    ]
)  # fmt: skip
_CONNECTORS = frozenset(["on", "with", "at", "for", "in", "x", "and", "to", "by", "using", "per"])
# Software that is named after a family.
_NOT_A_MODEL = re.compile(r"\.cpp|[-_ ]?index\b|[-_ ]?factory\b|\.rs\b|[-_ ]?stack\b", re.IGNORECASE | re.ASCII)

_TOKEN = re.compile(
    rf"(?P<family>(?<![A-Za-z])(?:{_FAMILY_WORDS})(?=[a-z]?\d|[^A-Za-z]|$))"
    r"|(?:bf|fp|mxfp|nvfp|int)\d{1,2}(?![A-Za-z0-9])|w\d{1,2}a\d{1,2}(?![A-Za-z0-9])"
    r"|\d{1,3}x\d{1,4}(?:\.\d{1,3})?b(?![A-Za-z0-9])"  # 8x7b
    r"|a\d{1,4}(?:\.\d{1,3})?b(?![A-Za-z0-9])"  # a22b
    r"|\d{1,5}(?:\.\d{1,4})?[bt](?![A-Za-z0-9])"  # 70b
    r"|\d{1,4}e(?![A-Za-z0-9])"  # 128e
    r"|\d{1,4}k(?![A-Za-z0-9])"  # 128k
    r"|[vkrm]\d{1,3}(?:\.\d{1,3}){0,3}(?![A-Za-z0-9])"  # v3.2, k2, r1
    r"|\d{1,8}(?:\.\d{1,6}){0,3}"
    r"|[a-z]{1,40}"
    r"|\+",
    re.IGNORECASE | re.ASCII,
)
_KINDS: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
    ("size", re.compile(r"(\d+x)?\d+(\.\d+)?[bt]")),
    ("active", re.compile(r"a\d+(\.\d+)?b")),
    ("experts", re.compile(r"\d+e")),
    ("context", re.compile(r"\d+k")),
    ("date", re.compile(r"(0[1-9]|1[0-2]|2[3-9])\d\d|20\d{6}|2[3-9]\d{4}")),
    ("version", re.compile(r"[vkrm]?\d+(\.\d+)*")),
)
_GAP = re.compile(r"[ \t]{0,2}[-_/:]?[ \t]{0,2}的?[ \t]?")
# A bare number before these counts something and is no version ("llama 8 H100").
_COUNTED = re.compile(
    r"[ \t]{0,2}(?:[x×*]|张|台|块|卡|个|并发|gpus?\b|cards?\b|nodes?\b|users?\b|requests?\b|[a-z]{1,3}\d{2,3})",
    re.IGNORECASE,
)
_MAX_TOKENS = 14


@dataclass(frozen=True, slots=True)
class NameToken:
    """One token of a name, in lower case, and where it stands in the text that it was cut from."""

    text: str
    kind: TokenKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A name's tokens by what they do: `core` identifies, `ignored` does not."""

    core: frozenset[str]
    ignored: frozenset[str]
    kinds: frozenset[tuple[str, TokenKind]]

    @property
    def all_tokens(self) -> frozenset[str]:
        """Core and ignored tokens."""
        return self.core | self.ignored

    def of_kind(self, *kinds: TokenKind) -> frozenset[str]:
        """The core tokens of the given kinds."""
        return frozenset(text for text, kind in self.kinds if kind in kinds and text in self.core)


def tokens_of(text: str) -> Iterator[NameToken]:
    """The tokens of `text`, with their places in it."""
    for match in _TOKEN.finditer(text):
        token = match[0].lower()
        if match["family"]:
            token = _LATIN.get(token, re.sub(r"[_ ]|(?<=gpt)(?=oss)", "-", token))
            yield NameToken(token, "family", match.start(), match.end())
        else:
            token = "plus" if token == "+" else token
            yield NameToken(token, _kind(token), match.start(), match.end())


def _kind(token: str) -> TokenKind:
    if token in _IGNORED:
        return "ignored"
    for kind, pattern in _KINDS:
        if pattern.fullmatch(token):
            return kind
    return "word"


@lru_cache(maxsize=4096)
def parse_name(name: str) -> ParsedName:
    """Cut a model's name into tokens; an organisation in front (`meta-llama/`) is dropped."""
    found = list(tokens_of(name.strip().rsplit("/", 1)[-1]))
    core = frozenset(token.text for token in found if token.kind not in ("ignored", "date"))
    rest = frozenset(token.text for token in found) - core
    return ParsedName(
        core or rest, rest if core else frozenset(), frozenset((token.text, token.kind) for token in found)
    )


def version_key(tokens: frozenset[str]) -> tuple[tuple[int, ...], ...]:
    """Sort key of version tokens: newer is greater."""
    return tuple(sorted(tuple(int(part) for part in re.findall(r"\d+", token)) for token in tokens))


def named_format(name: str) -> DType | None:
    """The number format that a name's suffix states (`-FP8`, `-AWQ`), or `None`."""
    return next((_FORMATS[token.text] for token in tokens_of(name) if token.text in _FORMATS), None)


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A stretch of text that looks like a model's name, longest reading first."""

    start: int
    ends: tuple[int, ...]
    is_certain: bool


def spans_in(text: str) -> Iterator[NameSpan]:
    """Stretches of `text` that look like model names, left to right, not overlapping.

    `ends` are the ends to try in order: trailing words and counts that stand apart may belong to the sentence instead.
    """
    found = list(tokens_of(text))
    index = 0
    while index < len(found):
        token = found[index]
        if token.kind != "family" and token.text not in _WORD_FAMILIES:
            index += 1
            continue
        last = _last(text, found, index)
        if _NOT_A_MODEL.match(text, token.end) and last == index:
            index += 1
            continue
        start = _start(text, found, index, last)
        yield NameSpan(start, tuple(_ends(text, found, index, last)), token.kind == "family")
        index = last + 1


def _last(text: str, found: list[NameToken], first: int) -> int:
    """Index of the last token that continues the name which begins at `first`."""
    seen: set[TokenKind] = set()
    last = first
    while last + 1 < len(found) and last - first < _MAX_TOKENS:
        token = found[last + 1]
        gap = text[found[last].end : token.start]
        is_joined = gap in ("", "-", "_", "/")
        if not _GAP.fullmatch(gap) or not _continues(token, seen, is_joined=is_joined):
            break
        if not is_joined and token.text.isdigit() and _COUNTED.match(text, token.end):
            break
        seen.add(token.kind)
        last += 1
    return last


def _continues(token: NameToken, seen: set[TokenKind], *, is_joined: bool) -> bool:
    if token.kind in ("size", "active", "experts"):
        return is_joined or token.kind not in seen
    if token.kind == "version":
        return is_joined or not seen & {"version", "size"} or (token.text[0] == "v" and "version" not in seen)
    if token.kind in ("context", "date", "family"):
        return is_joined
    if token.kind == "ignored":
        return is_joined or token.text in _TUNINGS
    return (is_joined and token.text not in _CONNECTORS) or token.text in _VARIANTS


def _start(text: str, found: list[NameToken], first: int, last: int) -> int:
    """Where the name begins: a size may stand in front ("70B Llama 3.1")."""
    has_size = any(token.kind == "size" for token in found[first : last + 1])
    if first > 0 and not has_size and found[first - 1].kind == "size":
        gap = text[found[first - 1].end : found[first].start]
        if _GAP.fullmatch(gap) and "-" not in gap:
            return found[first - 1].start
    return found[first].start


def _ends(text: str, found: list[NameToken], first: int, last: int) -> Iterator[int]:
    """The longest reading, then without trailing tokens that stand apart and may be words or counts of the sentence."""
    yield found[last].end
    while last > first:
        token = found[last]
        apart = any(character.isspace() for character in text[found[last - 1].end : token.start])
        if not apart or not (token.kind in ("word", "ignored") or token.text.isdigit()):
            return
        last -= 1
        yield found[last].end
