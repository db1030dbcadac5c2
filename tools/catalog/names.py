"""Names as people write them, cut into tokens: families, versions, sizes, variants, and suffixes that change nothing.

Shared by the two catalogues. It only cuts and compares; what a name stands for is decided by `models.py` and
`hardware.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

TokenKind = Literal["size", "active", "experts", "version", "context", "date", "ignored", "word"]

# What a name may carry without naming another architecture.
_IGNORED = frozenset(
    "instruct chat hf it base pt bf16 fp16 fp8 fp4 int8 int4 w4a16 w8a8 awq gptq gguf nvfp4 mxfp4 mxfp8 quantized "
    "dynamic block thinking preview latest model exp speciale terminus meta nvidia google openai microsoft mistralai "
    "alibaba moonshot moonshotai zai zhipu thudm tencent xiaomi minimaxai databricks xai allenai tiiuae cohere "
    "coherelabs c4ai upstage baidu stepfun deepseek-ai unsloth redhatai neuralmagic community text".split()
)
# Families that are often glued to what follows ("llama3", "qwen2.5", "gptoss").
_GLUED = (
    ("deepseek", "deepseek"), ("minimax", "minimax"), ("mixtral", "mixtral"), ("mistral", "mistral"),
    ("nemotron", "nemotron"), ("gptoss", "gpt oss"), ("gpt-oss", "gpt oss"), ("chatglm", "chatglm"), ("kimi", "kimi"),
    ("codellama", "codellama"), ("llama", "llama"), ("qwen", "qwen"), ("gemma", "gemma"), ("olmo", "olmo"),
    ("mimo", "mimo"), ("falcon", "falcon"), ("ernie", "ernie"), ("glm", "glm"), ("phi", "phi"), ("yi", "yi"),
)  # fmt: skip
_CHINESE = (
    ("通义千问", "qwen "),
    ("千问", "qwen "),
    ("混元", "hunyuan "),
    ("文心", "ernie "),
    ("智谱", " "),
    ("深度求索", "deepseek "),
)

TOKEN = re.compile(
    r"\d{1,3}x\d{1,4}(?:\.\d{1,3})?b(?![a-z0-9])"  # 8x7b
    r"|a\d{1,4}(?:\.\d{1,3})?b(?![a-z0-9])"  # a22b
    r"|\d{1,5}(?:\.\d{1,4})?[bmt](?![a-z0-9])"  # 70b
    r"|\d{1,4}e(?![a-z0-9])"  # 128e
    r"|\d{1,4}k(?![a-z0-9])"  # 128k
    r"|[vkrm]\d{1,3}(?:\.\d{1,3}){0,3}(?![a-z0-9])"  # v3.2, k2, r1
    r"|\d{1,6}(?:\.\d{1,6}){0,3}"
    r"|[a-z]{1,40}"
    r"|\+"
)  # fmt: skip

_KINDS: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
    ("size", re.compile(r"(\d+x)?\d+(\.\d+)?[bmt]")),
    ("active", re.compile(r"a\d+(\.\d+)?b")),
    ("experts", re.compile(r"\d+e")),
    ("context", re.compile(r"\d+k")),
    ("date", re.compile(r"(0[1-9]|1[0-2]|2[3-9])\d\d|20\d{6}|2[3-9]\d{4}")),
    ("version", re.compile(r"[vkrm]?\d+(\.\d+)*")),
)


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
    kinds: tuple[tuple[str, TokenKind], ...]

    def of_kind(self, *kinds: TokenKind) -> frozenset[str]:
        """The core tokens of the given kinds."""
        return frozenset(text for text, kind in self.kinds if kind in kinds and text in self.core)


def kind_of(token: str) -> TokenKind:
    """What a token does in a name."""
    if token in _IGNORED:
        return "ignored"
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(token)), "word")


def unglue(text: str) -> str:
    """`text` in lower case with family names set apart from what is glued to them; the length may change."""
    lowered = text.lower()
    for chinese, latin in _CHINESE:
        lowered = lowered.replace(chinese, latin)
    for glued, apart in _GLUED:
        lowered = re.sub(rf"(?<![a-z]){re.escape(glued)}(?=[a-z]?\d|[^a-z]|$)", f"{apart} ", lowered)
    return lowered


@cache
def parse_name(name: str) -> ParsedName:
    """Cut a model's name into tokens; an organisation in front (`meta-llama/`) is dropped."""
    tail = name.strip().rsplit("/", 1)[-1]
    found: list[tuple[str, TokenKind]] = []
    for match in TOKEN.finditer(unglue(tail.replace("_", " "))):
        text = "plus" if match[0] == "+" else match[0]
        found.append((text, kind_of(text)))
    core = [(text, kind) for text, kind in found if kind not in ("ignored", "date")]
    if not core:
        core = found
    texts = frozenset(text for text, _ in core)
    return ParsedName(texts, frozenset(text for text, _ in found) - texts, tuple(found))


def version_key(tokens: frozenset[str]) -> tuple[tuple[int, ...], ...]:
    """Sort key of version tokens: newer is greater."""
    return tuple(sorted(tuple(int(part) for part in re.findall(r"\d+", token)) for token in tokens))
