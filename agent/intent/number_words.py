"""Numbers that are written as words, in English and Chinese (used by `quantities.py` and the lexicons)."""

from __future__ import annotations

_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6}
PHRASES = {
    "a single": 1,
    "single": 1,
    "a pair of": 2,
    "a couple of": 2,
    "a dozen": 12,
    "half a dozen": 6,
    "dual": 2,
    "quad": 4,
    "octo": 8,
}

_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[\s\-](?:{'|'.join(list(_ONES)[1:10])}))?|{'|'.join(reversed(_ONES))})"
_HUNDREDS = rf"(?:(?:a|{_SMALL})\shundred(?:\s(?:and\s)?{_SMALL})?|{_SMALL})"
ENGLISH_NUMBER = (
    rf"(?:{_SMALL}\sdozen|(?:a|{_HUNDREDS})\s(?:thousand|million)(?:\s(?:and\s)?{_HUNDREDS})?|{_HUNDREDS}|"
    rf"{'|'.join(sorted(PHRASES, key=len, reverse=True))})"
)
"""A number in English words ("two", "thirty-two", "sixteen hundred", "a pair of"), without its surroundings."""

_CHINESE_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "双": 2, "单": 1}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_MYRIADS = {"万": 10_000, "亿": 100_000_000}


def english_value(words: str) -> int | None:
    """The value of English number words, or `None` where a word is none."""
    if words in PHRASES:
        return PHRASES[words]
    total = section = 0
    for word in words.replace("-", " ").split():
        if word in _ONES or word in _TENS:
            section += _ONES.get(word, 0) + _TENS.get(word, 0)
        elif word in ("hundred", "dozen"):
            section = max(1, section) * _SCALES[word]
        elif word in _SCALES:
            total, section = total + max(1, section) * _SCALES[word], 0
        elif word not in ("a", "and"):
            return None
    return total + section if words.strip() not in ("", "a", "and") else None


def chinese_value(words: str) -> int | None:
    """The value of a Chinese numeral ("两", "一百二十八"), or `None` where a character is none."""
    if not words or any(c not in "零〇一二两三四五六七八九十百千万亿双单" for c in words):
        return None
    total = section = digit = 0
    for c in words:
        if c in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[c]
        elif c in _CHINESE_TENS:
            section += (digit or 1) * _CHINESE_TENS[c]
            digit = 0
        else:
            total += (section + digit or 1) * _CHINESE_MYRIADS[c]
            section = digit = 0
    return total + section + digit
