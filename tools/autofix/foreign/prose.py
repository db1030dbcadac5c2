"""What the sentences around a proposal, or in place of one, say for certain: model, hardware, degrees, load.

Only what is not said in the proposal itself counts, and only where the sentences name one thing of a kind.
"""

from __future__ import annotations

import re

from ...catalog.models import mentions
from ...catalog.names import named_format
from .degree_words import degrees_in_prose
from .facts import number_format
from .figures import whole_number
from .hardware_words import hardware_of
from .scope import Scope
from .walker import Walker

_MAX_CHARS = 20_000
_N = r"(\d{1,3}(?:,\d{3}){1,2}|\d{1,9}(?:\.\d{1,3})?\s?[kK]?)(?![\w.])"
_PAIR = re.compile(rf"(?:input|isl)\s?/\s?(?:output|osl)[^\n\d]{{0,20}}{_N}\s?/\s?{_N}", re.IGNORECASE)
_LOAD = {
    "input_tokens": re.compile(rf"(?:input|prompt|isl|输入)(?:\s(?:tokens?|length|len))?\s?(?:=|:|：|of|is)?\s?{_N}"
    rf"|{_N}\s?(?:-token\s)?(?:tokens?\s)?(?:input|prompt)", re.IGNORECASE),
    "output_tokens": re.compile(rf"(?:output|osl|输出)(?:\s(?:tokens?|length|len))?\s?(?:=|:|：|of|is)?\s?{_N}"
    rf"|{_N}\s?(?:tokens?\s)?output", re.IGNORECASE),
    "concurrency": re.compile(rf"(?:concurrency|batch size|并发)\s?(?:=|:|：|of|is)?\s?{_N}"
    rf"|{_N}\s?(?:concurrent (?:requests|users))", re.IGNORECASE),
}  # fmt: skip
_WEIGHTS = re.compile(
    r"\b(?:weights?\s(?:in|are|=|:)\s?|权重\s?)([A-Za-z0-9]{3,10})"
    r"|\b(fp8|bf16|fp16|int4|int8|fp4|nvfp4|mxfp4)\s(?:weights|quantization)",
    re.IGNORECASE,
)


def read_prose(text: str, walker: Walker, *, alone: bool) -> None:
    """Take down what `text` says where nothing was said before; degrees and load only where it stands `alone`."""
    text = text[:_MAX_CHARS]
    facts, where = walker.facts, "the text around" if not alone else "the text"
    if not facts.has("model") and not facts.has("config"):
        found = [mention for mention in mentions(text) if mention.entry is not None]
        names = {mention.entry.name for mention in found if mention.entry is not None}
        if len(names) == 1:
            facts.claim("model", names.pop(), where)
            if (suffix := named_format(found[0].words)) is not None and not facts.has("precision.weights"):
                facts.claim("precision.weights", suffix, where)
    _hardware(text, walker, where)
    if not alone:
        return
    for phase, degrees in degrees_in_prose(text).items():
        for name, number in degrees.items():
            walker.claim_degree(name, number, Scope(where, phase))
    _load(text, walker, where)


def _hardware(text: str, walker: Walker, where: str) -> None:
    facts = walker.facts
    words = hardware_of(text)
    if words.accelerator is None or facts.get("accelerator") not in (None, words.accelerator):
        return
    facts.claim("accelerator", words.accelerator, where, weak=True)
    sizes = {name: getattr(words, name) for name in ("nodes", "gpus_per_node", "total")}
    if all(facts.get(name) in (None, number) or number is None for name, number in sizes.items()):
        for name, number in sizes.items():
            if number is not None and not facts.has("total"):
                facts.claim(name, number, where)


def _load(text: str, walker: Walker, where: str) -> None:
    found: dict[str, list[str]] = {}
    if pair := _PAIR.search(text):
        found = {"input_tokens": [pair[1]], "output_tokens": [pair[2]]}
    for name, pattern in _LOAD.items():
        found.setdefault(name, [next(filter(None, match.groups())) for match in pattern.finditer(text)])
    for name, words in found.items():
        numbers = {whole_number(word.strip()) for word in words}
        if len(numbers) == 1 and (number := numbers.pop()):
            walker.facts.claim(f"workload.{name}", number, where)
    formats = {number_format(match[1] or match[2]) for match in _WEIGHTS.finditer(text)}
    if len(formats) == 1 and (weights := formats.pop()) is not None:
        walker.facts.claim("precision.weights", weights, where)
