"""Figures as foreign proposals write them: numbers in texts, ranges, lists of devices, degrees in words.

A figure is read where it can mean one thing only; else it reads as absent (`None`). Every pattern is bounded and free
of nested repetition, and no range is unrolled beyond what a cluster or a model has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from ...bounds import INDEX
from ...catalog.hardware import mentions
from ...plan.elements import as_list
from .lexicon import concept_of
from .shapes import is_list, is_object

MOST_DEVICES = 10_000
MOST_EXPERTS = 10_000
_MOST = int(INDEX.most)

_INTEGER = re.compile(
    r"[x×]?\s?(\d{1,9})\s?(?:[x×]|-?\s?ways?|个|张|卡|路|gpus?|tokens?|ms|stages?)?(?:\s?\([^()]{0,60}\))?",
    re.IGNORECASE,
)
_COMMAS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_THOUSANDS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s?([km])(?:\s?tokens?)?", re.IGNORECASE)
_RANGE = re.compile(
    r"(?:layers?|experts?|blocks?|l|第)?\s?[\[(]?\s?(\d{1,9})\s?(?:-|–|—|~|\.{2,3}|:|to|,|至|到)\s?"
    r"(?:layers?\s?|l)?(\d{1,9})\s?[\])]?\s?(?:层)?",
    re.IGNORECASE,
)
_HALF_OPEN = re.compile(r"range\(\s?(?:(\d{1,9})\s?,\s?)?(\d{1,9})\s?\)")
_NODE = r"(?:node|n|host|server|machine|机|节点)[\s_\-]?(\d{1,6})"
_GPU = r"(?:gpu|g|cuda|device|dev|rank|card|npu|d|卡)[\s_\-:]?"
_PLACED = re.compile(rf"{_NODE}[\s_\-:/.,]{{1,3}}(?:{_GPU})?(\d{{1,6}})(?:\s?(?:-|–|~|\.\."
rf"|to)\s?(?:{_GPU})?(\d{{1,6}}))?",
                     re.IGNORECASE)  # fmt: skip
_NUMBERED = re.compile(
    rf"(?:nvidia[\s_\-:]?)?(?:{_GPU})?[\[(]?(\d{{1,6}})"
    rf"(?:\s?(?:-|–|—|~|\.\.|:|to|至|到)\s?(?:{_GPU})?(\d{{1,6}}))?[\])]?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s?[,;、+&]\s?|\s+and\s+")

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "sixteen": 16, "twenty-four": 24, "thirty-two": 32, "sixty-four": 64,
}  # fmt: skip
_CHINESE = {"单": 1, "一": 1, "两": 2, "二": 2, "双": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8}
_NUMBER_WORDS = re.compile(
    rf"(?<![A-Za-z-])(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![A-Za-z])"
    rf"|(?<![一二三四五六七八九十])[{''.join(_CHINESE)}](?=个|路|级|份|副本|实例|阶段)",
    re.IGNORECASE,
)

Place = int | tuple[int, int]
"""A device: counted through over all nodes, or (node, GPU)."""
PlacesOf = Callable[[object], list[Place] | None]
"""`places_of`, within the devices that one document may name."""


def whole_number(value: object) -> int | None:
    """A whole number from 0: 8, 8.0, "8", "x8", "8-way", "4k"; `None` where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value <= _MOST else None
    if isinstance(value, float):
        return int(value) if 0 <= value <= _MOST and value.is_integer() else None
    if not isinstance(value, str) or len(value) > 100:
        return None
    words = _COMMAS.sub("", value.strip())
    if match := _INTEGER.fullmatch(words):
        return int(match[1])
    if match := _THOUSANDS.fullmatch(words):
        figure = float(match[1]) * (1024 if match[2].lower() == "k" else 1024**2)
        return int(figure) if figure == int(figure) else None
    return None


def digits_for_words(text: str) -> str:
    """`text` with digits for the small numbers that it spells out: "two replicas", "四路张量并行"."""
    return _NUMBER_WORDS.sub(lambda match: str((_WORDS | _CHINESE)[match[0].lower()]), text)


def figure_of(value: object) -> float | None:
    """A positive figure, from a number or a text with at most a unit of ms or s behind it (seconds become ms)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if 0 < value < 1e12 else None
    match = re.fullmatch(r"(?:<=?|≤)?\s?(\d{1,9}(?:\.\d{1,6})?)\s?(ms|s|sec|seconds?)?", str(value)[:40].strip())
    if match is None or float(match[1]) == 0:
        return None
    return float(match[1]) * (1000 if match[2] not in (None, "ms") else 1)


def span_of(value: object) -> tuple[int, int] | None:
    """A range with both its ends: "0-39", "0..39", [0, 39], range(0, 40), {"start": 0, "end": 39}, a row of numbers."""
    if is_object(value):
        return _span_of_members(value)
    if isinstance(value, list | tuple):
        items = as_list(cast("object", value))[: MOST_DEVICES + 1]
        numbers = [item for item in items if type(item) is int and 0 <= item <= _MOST]
        if not numbers or len(numbers) != len(items):
            return span_of(items[0]) if len(items) == 1 else None
        is_row = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if is_row or (len(numbers) == 2 and numbers[0] <= numbers[1]):
            return numbers[0], numbers[-1]
        return None
    if not isinstance(value, str) or len(value) > 60:
        return None
    words = value.strip()
    if match := _HALF_OPEN.fullmatch(words):
        first, end = int(match[1] or 0), int(match[2])
        return (first, end - 1) if first < end else None
    match = _RANGE.fullmatch(words)
    if match is None or int(match[1]) > int(match[2]):
        return None
    return int(match[1]), int(match[2])


def _span_of_members(value: dict[str, Any]) -> tuple[int, int] | None:
    if len(value) != 2:
        return None
    found = {concept_of(key): whole_number(member) for key, member in value.items()}
    first, last = found.get("layers_first"), found.get("layers_last")
    return (first, last) if first is not None and last is not None and first <= last else None


def places_of(value: object) -> list[Place] | None:
    """Devices in the order in which they are written, or `None` where one of them is none.

    "gpu0-7", 3, [0, 1], "node0:gpu3", "cuda:0", "n1.g2", "0-3, 8-11", range(0, 8). A lone number is one device.
    """
    if isinstance(value, list | tuple):
        items = as_list(cast("object", value))
        found: list[Place] = []
        for item in items[: MOST_DEVICES + 1]:
            places = None if is_list(item) else places_of(item)
            if places is None or len(found) + len(places) > MOST_DEVICES:
                return None
            found.extend(places)
        return found if found and len(items) <= MOST_DEVICES else None
    if type(value) is int:
        return [value] if 0 <= value < MOST_DEVICES else None
    if is_object(value):
        return _place_of_members(value)
    if not isinstance(value, str) or len(value) > 2_000:
        return None
    if match := _HALF_OPEN.fullmatch(value.strip()):
        return list(range(int(match[1] or 0), min(int(match[2]), MOST_DEVICES))) or None
    parts = [part for part in _BETWEEN.split(value.strip().strip("[](){}")) if part]
    found = []
    for part in parts:
        places = _places_in(part)
        if places is None or len(found) + len(places) > MOST_DEVICES:
            return None
        found.extend(places)
    return found or None


def _place_of_members(value: dict[str, Any]) -> list[Place] | None:
    """`{"node": 0, "gpu": 3}` or `{"node": 0, "gpus": [0, 1]}`."""
    node = whole_number(value.get("node", value.get("host")))
    inner = next((value[key] for key in ("gpu", "gpus", "device", "local_rank", "devices") if key in value), None)
    gpus = None if is_object(inner) else places_of(inner)
    if node is None or gpus is None or len(value) != 2 or not all(isinstance(gpu, int) for gpu in gpus):
        return None
    return [(node, gpu) for gpu in gpus if isinstance(gpu, int)]


def _places_in(words: str) -> list[Place] | None:
    if match := _PLACED.fullmatch(words):
        node, first = int(match[1]), int(match[2])
        last = int(match[3] or first)
        return [(node, gpu) for gpu in range(first, last + 1)] if first <= last < MOST_DEVICES else None
    if match := _NUMBERED.fullmatch(words):
        first, last = int(match[1]), int(match[2] or match[1])
        return list(range(first, last + 1)) if first <= last < MOST_DEVICES else None
    if (named := next(iter(mentions(words)), None)) is not None and named.start == 0:  # "H100-3"
        return _places_in(words[named.end :].lstrip(" _-:")) if named.end < len(words) else None
    return None


def experts_of(value: object) -> list[int | list[int]] | None:
    """Expert ids and inclusive ranges as our format lists them: "0-15", [0, 1, 2], ["0-3", 8]; `None` if unclear."""
    if type(value) is int:
        return [value] if value < MOST_EXPERTS else None
    if isinstance(value, str):
        parts = [part.strip() for part in value[:2000].strip("[]() ").split(",")]
        if len(parts) > 1 and all(part.isdigit() for part in parts):
            return [int(part) for part in parts if len(part) < 6]
        span = span_of(value)
        single = re.fullmatch(r"(?:expert|e)?[\s_\-]?(\d{1,5})", value[:40].strip(), re.IGNORECASE)
        if span is None:
            return [int(single[1])] if single else None
        return [[*span]] if span[1] < MOST_EXPERTS else None
    if isinstance(value, list | tuple):
        found: list[int | list[int]] = []
        for item in as_list(cast("object", value))[: MOST_EXPERTS + 1]:
            read = experts_of(item) if not is_list(item) else _range_item(item)
            if read is None:
                return None
            found.extend(read)
        return found or None
    return None


def _range_item(item: list[Any]) -> list[int | list[int]] | None:
    span = span_of(item) if len(item) == 2 else None
    return None if span is None else [[*span]]
