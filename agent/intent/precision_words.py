"""Number formats of a request: "fp8 weights with bf16 KV cache", "W4A16", "int4 AWQ", "FP8 量化".

A format belongs to the tensor that is named beside it, else to the weights. "Quantised" without a format is no format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...tools.catalog.dtypes import DType
from .claims import Claims
from .matching import Role, pair
from .names import NamedModel
from .page import Page

_FORMATS: dict[DType, str] = {
    "nvfp4": r"nv[\s_\-]?fp4",
    "mxfp4": r"mx[\s_\-]?fp4",
    "mxfp8": r"mx[\s_\-]?fp8",
    "bf16": r"bf[\s_\-]?16|bfloat[\s_\-]?16|brain\sfloat(?:\s?16)?",
    "fp16": r"fp[\s_\-]?16|float[\s_\-]?16|"
    r"16[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|half[\s\-]precision|半精度",
    "fp32": r"fp[\s_\-]?32|float[\s_\-]?32|single[\s\-]precision|单精度",
    "fp8": (
        r"fp[\s_\-]?8(?:[\s_\-]?(?:e4m3(?:fn)?|e5m2|block(?:wise)?))?|"
        r"float[\s_\-]?8(?:_e4m3(?:fn)?)?|e4m3(?:fn)?|e5m2|8[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|8\s?(?:位|比特)浮点数?"
    ),
    "int8": r"int[\s_\-]?8|q8(?:_0|_k)?|8[\s\-]?bits?\sint(?:eger)?s?|8\s?(?:位|比特)整(?:数|型)",
    "int4": (
        r"int[\s_\-]?4|i?q4(?:_[01k](?:_[sml])?|_xs|_nl)?|4[\s\-]?bits?\sint(?:eger)?s?|"
        r"4\s?(?:位|比特)整(?:数|型)|awq|gptq|四比特"
    ),
    "fp4": r"fp[\s_\-]?4|4[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|4\s?(?:位|比特)浮点数?",
}
_FORMAT = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _FORMATS.items())
    + r")(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"(?<![A-Za-z0-9])(?:(?P<kind>fp|int)[\s_\-]?\d?[\s_\-]?)?w(?P<w>4|8|16)[\s_\-]?a(?P<a>4|8|16)(?:[\s_\-]?(?:kv|c)(?P<kv>4|8|16))?(?:[\s_\-]?(?P<kind2>fp|int)\d?)?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_BITS = re.compile(
    r"(?<![A-Za-z0-9.])(?P<bits>4|8|16)[\s\-]?(?:bits?(?![a-z])|比特|位)(?!\s?(?:gpus?|cards?))", re.IGNORECASE
)
_QUANTISED = re.compile(r"(?<![a-z])quanti[sz](?:ed|ation|e)(?![a-z])|量化", re.IGNORECASE)
_METHOD = re.compile(r"awq|gptq", re.IGNORECASE)
_ROLE = re.compile(
    r"(?P<kv_cache>(?<![a-z])(?:kv(?:[\s_\-]?cache)?|key[\s\-/]value\scache|attention\scache|cache)(?![a-z])|键值缓存|(?:kv\s?)缓存)"
    r"|(?P<activations>(?<![a-z])(?:activations?|acts?|compute|matmuls?|gemms?)(?![a-z])|激活(?:值)?|计算)"
    r"|(?P<weights>(?<![a-z])(?:weights?|model\sweights|checkpoint|params|parameters)(?![a-z])|权重|参数)",
    re.IGNORECASE,
)
_BIT_FORMATS: dict[str, DType] = {"4": "int4", "8": "int8", "16": "bf16"}
_FIELDS = ("weights", "kv_cache", "activations")


@dataclass(frozen=True, slots=True)
class _Format:
    """One mention of a number format."""

    dtype: DType
    start: int
    end: int


def read_precision(page: Page, claims: Claims, model: NamedModel) -> None:
    """Read the formats; a suffix of the model's name ("-FP8") speaks of the weights where nothing else does."""
    _read_schemes(page, claims)
    _read_formats(page, claims)
    for match in page.search(_QUANTISED):
        if not any(claims.has(field) for field in _FIELDS) and not page.is_negated(*match.span()):
            claims.leave_unread(f"{match.group()!r} names no number format; say which (fp8, int8, int4)")
        page.take(*match.span())
    if model.weights is not None and not claims.has("weights"):
        claims.claim("weights", model.weights, model.words)


def _read_schemes(page: Page, claims: Claims) -> None:
    for match in page.search(_SCHEME):
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        before = page.text[max(0, match.start() - 6) : match.start()].lower()
        after = page.text[match.end() : match.end() + 6].lower()
        is_float = "fp" in (match["kind"] or match["kind2"] or "").lower() or "fp8" in before or "fp8" in after
        eight: DType = "fp8" if is_float else "int8"
        formats: dict[str, DType] = {"4": "nvfp4" if match["a"] == "4" else "int4", "8": eight, "16": "bf16"}
        words = page.take(*match.span())
        claims.claim("weights", formats[match["w"]], words)
        claims.claim("activations", formats[match["a"]], words)
        if match["kv"]:
            claims.claim("kv_cache", formats[match["kv"]], words)
        claims.reading(f"{words!r} read as {formats[match['w']]} weights and {formats[match['a']]} activations")


def _read_formats(page: Page, claims: Claims) -> None:
    formats = _find_formats(page, claims)
    roles = [Role(str(match.lastgroup), *match.span()) for match in page.search(_ROLE)]
    pairings = pair(page.text, roles, formats, lambda _role, _format: True)
    roled = {pairing.value for pairing in pairings}
    for pairing in pairings:
        words = page.original[slice(*pairing.span)].strip()
        claims.claim(pairing.role.name, pairing.value.dtype, words)
    for item in formats:
        words = page.take(item.start, item.end)
        if item in roled or claims.values.get("weights") == item.dtype:
            continue
        claims.claim("weights", item.dtype, words)


def _find_formats(page: Page, claims: Claims) -> list[_Format]:
    found: list[_Format] = []
    for match in page.search(_FORMAT):
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        if _METHOD.fullmatch(match.group()) and _names_bits_beside(page, match):
            page.take(*match.span())  # "int4 AWQ", "AWQ 4-bit": one format, said with its method
            continue
        found.append(_Format(_dtype(str(match.lastgroup)), *match.span()))
    for match in page.search(_BITS):
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        dtype = _BIT_FORMATS[match["bits"]]
        if any(item.start <= match.end() + 2 and match.start() - 2 <= item.end for item in found):
            page.take(*match.span())
            continue
        claims.reading(f"{match.group().strip()!r} read as {dtype}")
        found.append(_Format(dtype, *match.span()))
    return sorted(found, key=lambda item: item.start)


def _names_bits_beside(page: Page, match: re.Match[str]) -> bool:
    """Whether a format or a number of bits stands right beside the name of a method."""
    near = page.text[max(0, match.start() - 10) : match.start()] + " . " + page.text[match.end() : match.end() + 10]
    return bool(_FORMAT.search(near) or _BITS.search(near))


def _dtype(name: str) -> DType:
    return next(dtype for dtype in _FORMATS if dtype == name)
