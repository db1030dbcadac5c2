"""Lengths in words or characters of a text, read as tokens at a stated rate and reported as assumptions.

Where no rate is stated, English has four tokens for three words or sixteen letters (OpenAI's "What are tokens and how
to count them?"), and Chinese one for each character, of which most tokenizers make fewer.
"""

from __future__ import annotations

import re

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.quantities import find_quantities

_LEAST = 50  # "in 2 words" is no length
_WRITTEN = Gated(
    r"(?P<number>(?<![A-Za-z\d.])\d{1,9}(?:[.,]\d{1,9}){0,3}\s?(?:k|百|千|万|百万)?)(?:\s?个|\s|-)?"
    r"(?:(?P<hanzi>(?:中文|英文|汉)?字符?(?![节段幕体时]))|(?P<word>(?:english\s)?words?(?![a-z]))|"
    r"(?P<letter>char(?:acter)?s?(?![a-z])))",
)
_EACH_SECOND = re.compile(r"[每一1]\s?秒钟?[^\d,;。]{0,4}$|(?<![a-z])(?:per|a|each|every)\ssecond\s$")
# The stated ratio of tokens to words or characters: "4 characters a token", "take 1.33 tokens per word".
_STATED = Gated(
    r"(?P<letters>(?<![\d.])\d{1,2}(?:\.\d{1,3})?)\s?(?:characters?|chars?|letters?|bytes?)\s?(?:a|per|/|to\sa|each|for\seach)\s?token(?![a-z])|"
    r"(?<![a-z])tokens?\s?(?:≈|~|=|:|are|is|being)\s?(?:about\s)?(?P<factor>\d\.\d{1,3})\s?(?:x|\*|times)\s(?:the\s)?(?:number\sof\s)?words?(?:\sin\sour\slanguage)?|"
    r"(?P<tokens>(?<![\d.])\d(?:\.\d{1,3})?)\s?tokens?\s?(?:an?|per|/|each|for\seach)\s?(?:english\s)?word(?![a-z])|"
    r"(?<![a-z])(?:an?|one|each|every)\s(?:[a-z]{4,10}\s)?word\s(?:is|has|makes|takes|costs|comes\sto|=|≈|~)\s?(?:about\s)?(?P<of_word>\d(?:\.\d{1,3})?)\s?tokens?|"
    r"(?:take\s|count\s|with\s)?(?P<part>\d)\s?tokens?\s(?:for|per|to|in)\s(?:every\s|each\s)?(?P<words>\d)\swords(?![a-z])",
)
_STATED_CHINESE = Gated(
    r"[1一每]\s?个?(?:汉字|字|字符)\s?(?:大?约|算|按|是|为|=|合|等于|折(?:算)?(?:成|为)?|对应)*\s?(?P<n>\d(?:\.\d{1,3})?)\s?(?:个\s?)?tokens?",
)
_STATED_INVERSE = Gated(
    r"(?:按|以)?(?:1|一|每)\s?个?\s?token\s?(?:大?约|大概|平均)?(?:等于|相当于|折合|对应|是|为|=|≈|合)?\s?(?:大?约)?(?P<n>\d(?:\.\d{1,3})?)\s?个?(?:汉字|中文字|字符?)(?:折算|计算?|算)?"
)
_KILOBYTES = Gated(r"(?<![\w.])(?P<number>\d{1,4}(?:\.\d{1,3})?)\s?(?:kb|kilobytes?)(?![a-z/])")
_USUAL = {"hanzi": 1.0, "word": 4 / 3, "letter": 1 / 4}
_EACH = {
    "hanzi": "one for each character, of which most tokenizers make fewer",
    "word": "four for three words, a rule of thumb for English",
    "letter": "one for four characters, a rule of thumb for English",
}


def in_tokens(text: str) -> tuple[str, dict[float, str]]:
    """`text` with lengths of writing in tokens, and for each number of tokens how it was derived."""
    notes: dict[float, str] = {}
    rates: dict[str, float] = {}

    def stated(match: re.Match[str]) -> str:
        letters, tokens = match["letters"], match["tokens"] or match["factor"] or match["of_word"]
        of_words = float(match["part"]) / float(match["words"]) if match["part"] else float(tokens or 1)
        rates.update({"letter": 1.0 / float(letters)} if letters else {"word": of_words})
        return "so much"

    text = _STATED.sub(stated, text)
    for rule in _STATED_CHINESE.finditer(text):
        rates["hanzi"] = float(rule["n"])
    text = _STATED_CHINESE.sub("", text)
    for rule in _STATED_INVERSE.finditer(text):
        rates["hanzi"] = 1 / (float(rule["n"]) or 1.0)
    text = _STATED_INVERSE.sub("", text)
    if "letter" in rates:
        text = _KILOBYTES.sub(lambda match: f"{float(match['number']) * 1000:g} characters", text)

    def replaced(match: re.Match[str]) -> str:
        quantities = find_quantities(match["number"])
        is_speed = _EACH_SECOND.search(match.string, max(0, match.start() - 10), match.start()) is not None
        if not quantities or (quantities[0].value < _LEAST and not is_speed):
            return match.group()
        of = str(match.lastgroup)
        tokens = round(quantities[0].value * rates.get(of, _USUAL[of]))
        how = f"{tokens:,} tokens, {rates[of]:.3g} for each {of}" if of in rates else f"{tokens:,} tokens: {_EACH[of]}"
        notes[float(tokens)] = f"{match.group().strip()!r} read as {how}"
        return f"{tokens} tokens" + " " * match.group().endswith(" ")

    return _WRITTEN.sub(replaced, text), notes


def assume_written(claims: Claims, notes: dict[float, str]) -> None:
    """Mark converted lengths as assumed."""
    for name in ("input_tokens", "output_tokens", "input_tokens_range", "output_tokens_range"):
        claimed = claims.values.get(name)
        for value in claimed if isinstance(claimed, tuple) else (claimed,):  # pyright: ignore[reportUnknownVariableType] - a range
            if value in notes:
                claims.assume(name, notes[value])
    for note in notes.values():
        if note not in claims.assumed.values():
            claims.reading(note)
