"""Numbers that are written as words, in English and Chinese (used by `quantities.py` and the lexicons)."""

from __future__ import annotations

import re

from .gated import Gated

_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6}
# The longer of two that begin alike first.
NUMBER_WORDS = tuple(sorted((*_ONES, *_TENS, *_SCALES), key=len, reverse=True))
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
_HUNDRED = rf"(?:\shundred(?:\s(?:and\s)?{_SMALL})?)?"
# `_SMALL` is large, so it is written as few times as can be. "a" counts only before a scale: nothing else ends with it.
ENGLISH_NUMBER = (
    rf"(?:(?:a|{_SMALL})(?:\sdozen|{_HUNDRED}(?:\s(?:thousand|million)(?:\s(?:and\s)?(?:a|{_SMALL}){_HUNDRED}(?<!a)(?!\s(?:thousand|million)))?)?)(?<!a)|"
    rf"{'|'.join(sorted(PHRASES, key=len, reverse=True))})"
)
"""A number in English words ("two", "thirty-two", "sixteen hundred", "a pair of"), without its surroundings."""
NUMBER = rf"\d{{1,6}}(?![\d.,]?\d)|(?:{ENGLISH_NUMBER})(?![a-z])|[一二两三四五六七八九十]{{1,3}}"
"""A whole number of things, in digits or in words of either language."""
AT_LEAST = (
    r"(?:(?<![a-z])(?:at\sleast|(?<![\d/])(?<![\d/]\s)(?<!per\s)min(?:imum)?(?:\sof)?|(?:not?|never)\s(?:be\s|have\s|run\s)?(?:less|fewer)(?:\sthan)?|or\smore)(?![a-z])|"
    r">=|≥|至少|不少于|不低于|最少)"
)
"""Beside a number: no less than it."""
AT_MOST = (
    r"(?:(?<![a-z])(?:up\sto|at\s(?:the\s)?most|max(?:imum)?(?:\sof)?|(?:not?|never)\smore\sthan|cap(?:ped)?(?:\sat)?|limit(?:ed)?(?:\sto)?)"
    r"(?![a-z])|最多|至多|不超过)"
)
"""Before a number: no more than it."""
_CHINESE_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "双": 2, "单": 1}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_COMPOSED_UNITS = {
    "十": 10, "百": 100, "千": 1000, "万": 10**4, "十万": 10**5, "百万": 10**6, "千万": 10**7, "亿": 10**8,
    "hundred": 100, "k": 1000, "thousand": 1000, "million": 10**6, "billion": 10**9,
}  # fmt: skip
_COMPOSED_PART = Gated(
    r"(零?)(\d{1,15}(?:\.\d{1,6})?|[一二两三四五六七八九])(十万|百万|千万|[十百千万亿]|hundred|k|thousand|million|billion)?"
)
_CARDS = r"(?!\s?(?:[张块卡台机颗片路节x*]|gpus?|nodes?|个?(?:节点|机)))"
_LAST = rf"零?\d{{1,4}}(?![\d万千百十亿A-Za-z]|[.,]\d){_CARDS}"
_LESSER = rf"(?:零?(?:\d{{1,4}}(?:\.\d{{1,3}})?|[一二两三四五六七八九])(?:[十百千]?万|[千百十])|{_LAST})"
COMPOSED = (
    rf"\d{{1,9}}(?:\.\d{{1,6}})?(?:[十百千]?万|[亿千百]){_LESSER}{{1,4}}|"
    r"\d{1,6}(?:\.\d{1,6})?\s(?:billion|million|thousand)(?:\s(?:and\s)?\d{1,3}(?:\.\d{1,3})?\s?"
    r"(?:million|thousand|hundred|k)(?![a-z0-9])(?!\s(?:tokens?\s)?out(?:put)?(?![a-z]))){1,3}"
)
"""A figure in parts, each with a unit of its own, or a last one without: "6万4千", "1万2", "1 million 200k"."""


def english_value(words: str) -> int | None:
    """The value of English number words; `None` if any word is another."""
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
    """The value of a Chinese numeral ("两", "一百二十八"), or `None` if any character is another."""
    if not words or any(c not in "零〇一二两三四五六七八九十百千万亿双单" for c in words):
        return None
    total = section = digit = 0
    unit = 1  # of the figure before, where none was skipped: "一万二" is 12,000, "一万零二" 10,002
    for c in words:
        if c in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[c]
            unit = unit if digit else 1
        elif c in _CHINESE_TENS:
            unit = _CHINESE_TENS[c]
            section += (digit or 1) * unit
            digit = 0
        else:
            unit = _CHINESE_MYRIADS[c]
            total += (section + digit or 1) * unit
            section = digit = 0
    return total + section + digit * max(1, unit // 10)


def composed_value(words: str) -> float | None:
    """The value of a figure in parts ("6万4千", "3千5", "1 million 200k"), or `None` where it is none.

    A single last digit counts tenths of the unit before it, as it is spoken. Each part is smaller than the one before.
    """
    plain = re.sub(r"\sand\s|\s", "", words.lower())
    parts = _COMPOSED_PART.findall(plain)
    if len(parts) < 2 or not parts[0][2] or "".join("".join(part) for part in parts) != plain:
        return None
    total, unit = 0.0, 0.0
    for zero, digits, suffix in parts:
        if unit and not suffix and not zero and len(digits) == 1:
            value, scale = _figure(digits) * unit / 10, 1.0
        else:
            scale = _COMPOSED_UNITS.get(suffix, 1.0)
            value = _figure(digits) * scale
        if unit and value >= unit:
            return None
        total, unit = total + value, scale
    return float(round(total, 6))


def _figure(digits: str) -> float:
    return float(_CHINESE_DIGITS[digits]) if digits in _CHINESE_DIGITS else float(digits)
