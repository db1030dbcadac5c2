"""Model names as people write them, cut into tokens: families, versions, sizes, variants, and what changes nothing.

It only cuts and compares; `models.py` decides what a name stands for. Every pattern is bounded and free of nested
repetition, so that hostile text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from .dtypes import DType

TokenKind = Literal["family", "size", "active", "experts", "version", "context", "date", "ignored", "word"]

# A longer text is no name and is not cached.
_LONGEST_KEPT = 200
# Families whose name alone marks a model in running text, in every spelling; Chinese ones with their Latin name.
_FAMILY_WORDS = (
    "deep[-_ ]?seek|ds(?=[-_ ]?[vr][1-9])|minimax|mixtral|ministral|mistral|magistral|codestral|devstral|nemotron|"
    "gpt[-_ ]?oss|chatglm|code[-_ ]?llama|tiny[-_ ]?llama|l{1,3}ama|qwen|qwq|(?:med)?gemma|gemini|claude|olmoe?|mimo|"
    "ernie|hunyuan|internlm|internvl|baichuan|starcoder|kimi|glm|dbrx|vicuna|gpt(?=[-_ ]?[0-9])|pixtral|jamba|exaone|"
    "smollm|apertus|wizardlm|openthinker|minicpm|longcat|aya[-_ ]?expanse|seed[-_ ]?oss|dots[-_.]?llm|"
    # "Command A" is a name, "the command a user runs" is not.
    r"(?-i:Command A)(?!\d)|command[-_]a|command a(?=[-_ ]?(?:\d{3}b|03|plus|vision|reasoning))|"
    "通义千问|千问|混元|文心一言|文心|深度求索"
)
# Misspellings that are read, with a note: no family spells itself so.
_SLIPS = {"ds": "deepseek", "lama": "llama", "lllama": "llama"}
_LATIN = {
    "通义千问": "qwen", "千问": "qwen", "混元": "hunyuan", "文心一言": "ernie", "文心": "ernie", "深度求索": "deepseek",
    **_SLIPS,
}  # fmt: skip

# What a name may contain without naming another architecture: tuning, format, host, organisation.
_FORMATS: dict[str, DType] = {
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "w8a8": "int8", "int8": "int8", "int4": "int4", "w4a16": "int4",
    "awq": "int4", "gptq": "int4", "4bit": "int4", "8bit": "int8", "q4": "int4", "q8": "int8",
    "fp4": "fp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8",
}  # fmt: skip
_METHODS = frozenset(["awq", "gptq"])
_SCALES = frozenset(["dynamic", "block"])
TUNINGS = frozenset(["instruct", "chat", "hf", "thinking", "preview"])
_GLUE = frozenset(
    ["the", "a", "an", "in", "its", "with", "at", "of", "from", "by", "s", "version", "variant", "parameter",
     "parameters", "params", "param", "sized", "size", "edition"]
)  # fmt: skip
_IGNORED = frozenset(_FORMATS) | TUNINGS | _GLUE | frozenset(
    [
        "bnb", "mlx", "exl", "ggml",
        "it", "base", "pt", "gguf", "quantized", "dynamic", "block", "latest", "model", "exp", "speciale", "terminus",
        "meta", "nvidia", "google", "openai", "microsoft", "mistralai", "alibaba", "moonshot", "moonshotai", "zai",
        "zhipu", "tencent", "xiaomi", "minimaxai", "databricks", "xai", "allenai", "tiiuae", "cohere", "c4ai", "ai",
        "upstage", "baidu", "stepfun", "unsloth", "redhatai", "text",
    ]
)  # fmt: skip
_TOKEN = re.compile(
    rf"(?P<family>(?<![A-Za-z])(?:{_FAMILY_WORDS})(?=[a-z]?\d|[^A-Za-z]|$))"
    r"|c4ai(?![A-Za-z0-9])"
    r"|(?:bf|fp|mxfp|nvfp|int)\d{1,2}(?![A-Za-z0-9])|w\d{1,2}a\d{1,2}(?![A-Za-z0-9])"
    r"|\d{1,3}[ \t]?[x×*][ \t]?\d{1,4}(?:\.\d{1,3})?b(?![A-Za-z0-9])"  # 8x7b
    r"|[48]-?bit(?![A-Za-z0-9])|q[2-8](?:_[0-9a-z]{1,2}){0,3}(?![A-Za-z0-9_])"  # 4bit, q4_k_m
    r"|a\d{1,4}(?:\.\d{1,3})?b(?![A-Za-z0-9])"  # a22b
    r"|\d{1,5}(?:\.\d{1,4})?(?:[bt]|[ \t]b|[ \t-]?(?:bn|billion|trillion))(?![A-Za-z0-9])"  # 70b, 70 billion
    r"|\d{1,4}e(?![A-Za-z0-9])"  # 128e
    r"|\d{1,4}k(?![A-Za-z0-9])"  # 128k
    r"|[vkrm]\d{1,3}(?:[._]\d{1,3}){0,3}(?![A-Za-z0-9])"  # v3.2, k2, r1
    r"|\d_\d(?![\d_])"  # InternLM2_5, Llama-3_3
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


class NameToken(Struct, frozen=True):
    """One token of a name, in lower case, and its place in the text."""

    text: str
    kind: TokenKind
    start: int
    end: int


class ParsedName(Struct, frozen=True):
    """A name's tokens by what they do: `core` identifies, `ignored` does not."""

    core: frozenset[str]
    ignored: frozenset[str]
    kinds: frozenset[tuple[str, TokenKind]]

    @property
    def all_tokens(self) -> frozenset[str]:
        """Core and ignored tokens."""
        return self.core | self.ignored

    @property
    def dates(self) -> frozenset[str]:
        """When it was released, "2407"."""
        return frozenset(text for text, kind in self.kinds if kind == "date")

    def of_kind(self, *kinds: TokenKind) -> frozenset[str]:
        """The core tokens of the given kinds."""
        return frozenset(text for text, kind in self.kinds if kind in kinds and text in self.core)


def tokens_of(text: str) -> Iterator[NameToken]:
    """The tokens of `text`, with their places in it."""
    for match in _TOKEN.finditer(text):
        token = match[0].lower()
        if match["family"]:
            token = re.sub(r"[-_ ]", "", token)
            token = "gpt-oss" if token == "gptoss" else _LATIN.get(token, token)
            yield NameToken(token, "family", match.start(), match.end())
        else:
            token = _plain(token)
            yield NameToken(token, _kind(token), match.start(), match.end())


def _plain(token: str) -> str:
    """One spelling for "70 billion" and "70b", "8 * 7b" and "8x7b", "4-bit" and "4bit", "q4_k_m" and "q4", "2_5" and
    "2.5", "4.0" and "4".
    """
    if token == "+":
        return "plus"
    if token[0] == "q" and token[1:2].isdigit():
        return token[:2]
    token = token.replace("_", ".").removesuffix(".0")
    if not token[0].isdigit():
        return token
    token = re.sub(r"[ \t-]", "", token).replace("×", "x").replace("*", "x")
    return re.sub(r"(?:bn|billion)$", "b", token.replace("trillion", "t"))


def _kind(token: str) -> TokenKind:
    if token in _IGNORED:
        return "ignored"
    for kind, pattern in _KINDS:
        if pattern.fullmatch(token):
            return kind
    return "word"


def parse_name(name: str) -> ParsedName:
    """Cut a model's name into tokens; an organisation in front (`meta-llama/`) is dropped."""
    return _parsed(name) if len(name) <= _LONGEST_KEPT else _parsed.__wrapped__(name)


@lru_cache(maxsize=4096)
def _parsed(name: str) -> ParsedName:
    tokens = list(tokens_of(name.strip().rsplit("/", 1)[-1]))
    core = frozenset(token.text for token in tokens if token.kind not in ("ignored", "date"))
    ignored = frozenset(token.text for token in tokens) - core
    return ParsedName(
        core or ignored, ignored if core else frozenset(), frozenset((token.text, token.kind) for token in tokens)
    )


def version_key(tokens: frozenset[str]) -> tuple[tuple[int, ...], ...]:
    """Sort key of version tokens: newer is greater."""
    return tuple(sorted(tuple(int(part) for part in re.findall(r"\d+", token)) for token in tokens))


def named_format(name: str) -> DType | None:
    """The number format that a name's suffix states (`-FP8`, `-AWQ`), or `None`. A width outranks a method."""
    formats = [token.text for token in tokens_of(name) if token.text in _FORMATS]
    formats.sort(key=lambda text: text in _METHODS)
    return _FORMATS[formats[0]] if formats else None


def format_tokens(name: str) -> frozenset[str]:
    """The tokens of a name that say how its weights are quantised: formats, methods, and what shares a scale."""
    return frozenset(token.text for token in tokens_of(name) if token.text in _FORMATS or token.text in _SCALES)


def without_format(name: str) -> str:
    """A name up to the format of its weights ("Llama-3.1-8B-Instruct" of "…-Instruct-FP8-dynamic")."""
    ends = (token.start for token in tokens_of(name) if token.text in _FORMATS or token.text in _SCALES)
    return name[: min(ends, default=len(name))].rstrip("-_ ")


def has_slip(name: str) -> bool:
    """Whether a family is misspelt ("Lama-3.1-70B")."""
    return any(name[token.start : token.end].lower() in _SLIPS for token in tokens_of(name))


def respelled(name: str) -> str:
    """The name with a version's point restored, where it was left out or replaced ("llama-3-1-70b", "qwen25-72b")."""
    return re.sub(r"(?<=[A-Za-z])([-_ ]?)([1-9])[-_]?(\d)(?=[-_ ]|$)", r"\1\2.\3", name, count=1)


def parameters_of(size: str) -> float:
    """The number of parameters that a size token states ("671b", "1t"); 0 where it counts experts ("8x7b")."""
    return 0.0 if "x" in size else float(size[:-1]) * (1e12 if size.endswith("t") else 1e9)
