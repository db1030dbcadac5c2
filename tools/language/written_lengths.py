"""Lengths in words or characters of a text: they are read as so many tokens, which is said as an assumption."""

from __future__ import annotations

import re

from .claims import Claims
from .quantities import find_quantities

_LEAST = 50  # "in 2 words" is no length
_WRITTEN = re.compile(
    r"(?P<number>(?<![A-Za-z\d.])\d{1,9}(?:[.,]\d{1,9}){0,3}\s?(?:k|百|千|万|百万)?)(?:\s?个|\s|-)?"
    r"(?:(?P<hanzi>(?:中文|英文|汉)?字符?(?![节段幕体时]))|(?P<word>(?:english\s)?words?(?![a-z]))|"
    r"(?P<letter>char(?:acter)?s?(?![a-z])))",
    re.IGNORECASE,
)
_EACH_SECOND = re.compile(r"[每一1]\s?秒钟?[^\d,;。]{0,4}$|(?<![a-z])(?:per|a|each|every)\ssecond\s$")
# What one token is of a text, where it is stated: "4 characters a token", "take 1.33 tokens per word".
_STATED = re.compile(
    r"(?P<letters>(?<![\d.])\d{1,2}(?:\.\d{1,3})?)\s?(?:characters?|chars?|letters?|bytes?)\s?(?:a|per|/|to\sa|each|for\seach)\s?token(?![a-z])|"
    r"(?P<tokens>(?<![\d.])\d(?:\.\d{1,3})?)\s?tokens?\s?(?:an?|per|/|each|for\seach)\s?(?:english\s)?word(?![a-z])",
    re.IGNORECASE,
)
_KILOBYTES = re.compile(r"(?<![\w.])(?P<number>\d{1,4}(?:\.\d{1,3})?)\s?(?:kb|kilobytes?)(?![a-z/])", re.IGNORECASE)
_EACH = {
    "hanzi": "one for each character, of which most tokenizers make fewer",
    "word": "one for each word, of which tokenizers make more",
    "letter": "one for each character, of which tokenizers make far fewer",
}


def in_tokens(text: str) -> tuple[str, dict[float, str]]:
    """`text` with lengths of writing as so many tokens; for each number of them why."""
    notes: dict[float, str] = {}
    rates: dict[str, float] = {}

    def stated(match: re.Match[str]) -> str:
        letters, tokens = match["letters"], match["tokens"]
        rates.update({"letter": 1.0 / float(letters)} if letters else {"word": float(tokens)})
        return "so much"

    text = _STATED.sub(stated, text)
    if "letter" in rates:
        text = _KILOBYTES.sub(lambda match: f"{float(match['number']) * 1000:g} characters", text)

    def replaced(match: re.Match[str]) -> str:
        found = find_quantities(match["number"])
        is_speed = _EACH_SECOND.search(match.string, max(0, match.start() - 10), match.start()) is not None
        if not found or (found[0].value < _LEAST and not is_speed):
            return match.group()
        if (rate := rates.get(str(match.lastgroup))) is not None:
            tokens = round(found[0].value * rate)
            notes[float(tokens)] = (
                f"{match.group().strip()!r} read as {tokens:,} tokens, {rate:.3g} for each {match.lastgroup}"
            )
            return f"{tokens} tokens" + " " * match.group().endswith(" ")
        notes[found[0].value] = f"{match.group().strip()!r} read as so many tokens: {_EACH[str(match.lastgroup)]}"
        return f"{match['number'].rstrip()} tokens" + " " * match.group().endswith(" ")

    return _WRITTEN.sub(replaced, text), notes


def assume_written(claims: Claims, notes: dict[float, str]) -> None:
    """Call lengths that were converted assumed."""
    for name in ("input_tokens", "output_tokens", "input_tokens_range", "output_tokens_range"):
        claimed = claims.values.get(name)
        for value in claimed if isinstance(claimed, tuple) else (claimed,):  # pyright: ignore[reportUnknownVariableType] - a range
            if value in notes:
                claims.assume(name, notes[value])
    for note in notes.values():
        if note not in claims.assumed.values():
            claims.reading(note)
