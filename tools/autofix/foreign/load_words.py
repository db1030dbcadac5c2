"""Load and number formats in sentences: "ISL 4096 / OSL 512", "2k in, 256 out", "16 users", "in fp8", "并发 16".

A figure counts only with the word that says what it is. It settles nothing: of several
values of a kind all are handed back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .figures import whole_number
from .lexicon import any_case, number_format

_N = r"(?<![\w.,$])(\d{1,3}(?:,\d{3}){1,2}|\d{1,9}(?:\.\d{1,3})?\s?[kK]?)(?![A-Za-z0-9_%]|[.,]\d)"
_IS = r"\s?(?:=|:|：|of|is|为|是|around|about|约)?\s?(?:up to\s)?"
_UNIT = r"(?:\s?[- ]?tok(?:en)?s?|\s?个?\s?(?:tokens?|词元))?"
_IN, _OUT = r"(?:in(?:put)?|prompt)", r"(?:out(?:put)?|generated)"
_JOIN = r"\s?(?:[/,，、+&|;]|and|->|→|-)?\s?"
_PAIRS = (
    any_case(rf"(?:input|isl|in)\s?/\s?(?:output|osl|out)[^\n\d]{{0,20}}{_N}\s?/\s?{_N}"),
    any_case(rf"{_N}\s?/\s?{_N}{_UNIT}\s\(?(?:input|isl|in)\s?/\s?(?:output|osl|out)(?![A-Za-z])"),
    any_case(rf"{_N}{_UNIT}[\s-]?{_IN}{_JOIN}{_N}{_UNIT}[\s-]?{_OUT}(?![A-Za-z])"),
    any_case(rf"(?<![A-Za-z]){_IN}\s?{_N}{_UNIT}{_JOIN}{_OUT}\s?{_N}"),
)
_LENGTH = r"(?:\s(?:tokens?|lengths?|len|sequence length))?|(?:长度|序列长度)"
_SINGLE = {
    "input_tokens": any_case(
        rf"(?<![A-Za-z_-])(?:(?:input|prompt)s?|isl|输入)(?:{_LENGTH}){_IS}{_N}"
        rf"|{_N}{_UNIT}[\s-]?(?:of\s)?(?:input|prompt)s?(?![A-Za-z])"
    ),
    "output_tokens": any_case(
        rf"(?<![A-Za-z_-])(?:outputs?|osl|输出)(?:{_LENGTH}){_IS}{_N}"
        rf"|{_N}{_UNIT}[\s-]?(?:of\s)?outputs?(?![A-Za-z])"
    ),
    "concurrency": any_case(
        rf"(?<![A-Za-z_-])(?:concurrency|batch size|并发(?:数|量|用户)?){_IS}{_N}"
        rf"|{_N}[\s-](?:concurrent|simultaneous|parallel)\s?(?:requests?|users?|sequences?|sessions?|streams?)?(?![A-Za-z])"
        rf"|{_N}\susers(?![A-Za-z])(?!\s?(?:/|per|a|an|each)(?![A-Za-z]))"
        rf"|{_N}\s?(?:个|路|名|位)?\s?(?:并发|用户)"
    ),
}
_FORMAT = r"(fp8|bf16|fp16|bfloat16|float16|int4|int8|fp4|nvfp4|mxfp4|mxfp8)(?![A-Za-z0-9])"
_FORMATS = any_case(
    rf"(?<![A-Za-z])(?P<kind>kv[ -]?cache|kv|cache|activations?|compute|weights?|权重|精度|model)?"
    rf"\s?(?:(?:in|are|is|at|as|with|用|使用|以)(?![A-Za-z])|[=:：])\s?{_FORMAT}"
    rf"|(?P<bare>kv[ -]?cache|kv|权重)\s?{_FORMAT}"
    rf"|(?<![A-Za-z0-9]){_FORMAT}\s(?P<after>weights|kv|quantization|activations)"
    rf"|(?<=[,;])\s?{_FORMAT}(?=\s?(?:[,;\n]|\Z))"
)
# Words before "in fp8" that may have it speak of something else, or of nothing that is asked for.
_ELSEWHERE = any_case(
    r"(?<![A-Za-z])(?:kv|cache|activations?|compute|gemms?|attention|experts?|router|head|accumulat\w{1,4}|not|no|or|than|"
    r"instead|without|embeddings?)(?![A-Za-z])|不|或"
)
_OF_WEIGHTS = ("weight", "weights", "权重", "精度", "quantization", "model")
_OR = any_case(r"\s?(?:or\b|/|vs\b|或|还是)")
_CLAUSE = re.compile(r"[\n.;,，。；、]")
_LIMIT = any_case(
    r"(?<![A-Za-z_-])(?:ttft|tpot|itl|首字延迟)[^\d\n,;，。]{0,25}\d{1,9}(?:\.\d{1,3})?\s?(?:ms|s)?"
    r"|\d{1,9}(?:\.\d{1,3})?\s?(?:qps|rps|req(?:uests)?(?:/s| per second))(?![A-Za-z])"
)


def load_in_prose(text: str) -> dict[str, list[int | str]]:
    """Every value that `text` states of each field of workload and precision, each once, in the order of the text."""
    said: dict[str, list[int | str]] = {}
    for field, value in dict.fromkeys((*_lengths(text), *_formats(text))):
        said.setdefault(field, []).append(value)
    return said


def limits_in_prose(text: str) -> list[str]:
    """Latency limits and request rates as the text words them."""
    return list(dict.fromkeys(" ".join(match.group().split()) for match in _LIMIT.finditer(text)))[:10]


def _lengths(text: str) -> Iterator[tuple[str, int]]:
    for pattern in _PAIRS:
        for match in pattern.finditer(text):
            yield from _number("input_tokens", match[1])
            yield from _number("output_tokens", match[2])
        text = pattern.sub(" . ", text)
    for name, pattern in _SINGLE.items():
        for match in pattern.finditer(text):
            yield from _number(name, next(filter(None, match.groups())))


def _number(name: str, words: str) -> Iterator[tuple[str, int]]:
    number = whole_number(words.strip())
    if number:
        yield f"workload.{name}", number


def _formats(text: str) -> Iterator[tuple[str, str]]:
    for match in _FORMATS.finditer(text):
        value = number_format(next(filter(None, (match[2], match[4], match[5], match[7]))))
        kind = (match["kind"] or match["bare"] or match["after"] or "").lower()
        clause = _CLAUSE.split(text[max(0, match.start() - 60) : match.start()])[-1]
        if value is None or _OR.match(text, match.end()):
            continue
        if kind.startswith("kv"):
            yield "precision.kv_cache", value
        elif kind in _OF_WEIGHTS or (not kind and not _ELSEWHERE.search(clause)):
            yield "precision.weights", value
