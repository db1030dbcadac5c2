"""Figures as foreign proposals write them: numbers in texts, ranges, lists of devices.

A figure is read if it can mean one thing only; else it reads as absent (`None`). Every pattern is bounded and free of
nested repetition, and no range is expanded beyond what a cluster or a model has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...catalog.hardware import mentions
from ...input.bounds import INDEX
from ...input.shapes import is_list, is_object
from .lexicon import any_case, concept_of

# Devices, or experts, that a proposal may name in one place.
MOST_DEVICES = 10_000
_MOST = int(INDEX.most)

_INTEGER = any_case(
    r"[x×]?\s?(\d{1,9})\s?(?:[x×]|-?\s?ways?|个|张|卡|路|gpus?|tokens?|ms|stages?)?(?:\s?\([^()]{0,60}\))?"
)
_COMMAS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_THOUSANDS = any_case(r"(\d{1,6}(?:\.\d{1,3})?)\s?([km])(?:\s?tokens?)?")
_RANGE = any_case(
    r"(?:layers?|experts?|blocks?|l|第)?\s?[\[(]?\s?(\d{1,9})\s?(?:-|–|—|~|\.{2,3}|:|to|,|至|到)\s?"
    r"(?:layers?\s?|l)?(\d{1,9})\s?[\])]?\s?(?:层)?"
)
_HALF_OPEN = re.compile(r"range\(\s?(?:(\d{1,9})\s?,\s?)?(\d{1,9})\s?\)")
_NODE = r"(?:node|n|host|server|machine|机|节点)[\s_\-]?(\d{1,6})"
_GPU = r"(?:gpu|g|cuda|device|dev|rank|card|npu|d|卡)[\s_\-:]?"
_PLACED = any_case(rf"{_NODE}[\s_\-:/.,]{{1,3}}(?:{_GPU})?(\d{{1,6}})(?:\s?(?:-|–|~|\.\."
rf"|to)\s?(?:{_GPU})?(\d{{1,6}}))?")  # fmt: skip
_NUMBERED = any_case(
    rf"(?:nvidia[\s_\-:]?)?(?:{_GPU})?[\[(]?(\d{{1,6}})"
    rf"(?:\s?(?:-|–|—|~|\.\.|:|to|至|到)\s?(?:{_GPU})?(\d{{1,6}}))?[\])]?"
)
_EXPERT = any_case(r"(?:expert|e)?[\s_\-]?(\d{1,5})")
_BETWEEN = re.compile(r"\s?[,;、+&]\s?|\s+and\s+")

Place = int | tuple[int, int]
"""A device: its number over all nodes, or (node, GPU)."""
PlacesOf = Callable[[object], list[Place] | None]
"""`places_of`, within the devices that one document may name."""
_Part = TypeVar("_Part")


def whole_number(value: object) -> int | None:
    """A whole number from 0: 8, 8.0, "8", "x8", "8-way", "4k"; `None` if it is none."""
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
    if is_list(value):
        return span_of(value[0]) if len(value) == 1 and not _are_numbers(value) else _span_of_numbers(value)
    if is_object(value):
        ends = {concept_of(key): whole_number(member) for key, member in value.items()}
        first, last = ends.get("layers_first"), ends.get("layers_last")
        if len(value) != 2 or first is None or last is None:
            return None
        return (first, last) if first <= last else None
    if not isinstance(value, str) or len(value) > 60:
        return None
    words = value.strip()
    if match := _HALF_OPEN.fullmatch(words):
        first, last = int(match[1] or 0), int(match[2]) - 1
    elif match := _RANGE.fullmatch(words):
        first, last = int(match[1]), int(match[2])
    else:
        return None
    return (first, last) if first <= last else None


def _are_numbers(items: list[Any]) -> bool:
    return all(type(item) is int and 0 <= item <= _MOST for item in items[: MOST_DEVICES + 1])


def _span_of_numbers(items: list[Any]) -> tuple[int, int] | None:
    """The ends of a row of numbers without a gap, or of two numbers; `None` otherwise."""
    if not items or not _are_numbers(items):
        return None
    is_row = items == list(range(items[0], items[0] + min(len(items), MOST_DEVICES)))
    return (items[0], items[-1]) if is_row or (len(items) == 2 and items[0] <= items[1]) else None


def places_of(value: object) -> list[Place] | None:
    """Devices in the order in which they are written; `None` if one of them cannot be read.

    "gpu0-7", 3, [0, 1], "node0:gpu3", "cuda:0", "n1.g2", "0-3, 8-11", range(0, 8). A lone number is one device.
    """
    if is_list(value):
        return _joined(None if is_list(item) else places_of(item) for item in value)
    if is_object(value):
        return _place_of_members(value)
    if type(value) is int:
        return [value] if 0 <= value < MOST_DEVICES else None
    if not isinstance(value, str) or len(value) > 2_000:
        return None
    words = value.strip()
    if match := _HALF_OPEN.fullmatch(words):
        return list(range(int(match[1] or 0), min(int(match[2]), MOST_DEVICES))) or None
    return _joined(_places_in(part) for part in _BETWEEN.split(words.strip("[](){}")) if part)


def _joined(groups: Iterable[list[_Part] | None]) -> list[_Part] | None:
    """The members of all groups; `None` if a group is `None`, or there are no members or too many."""
    joined: list[_Part] = []
    for group in groups:
        if group is None or len(joined) + len(group) > MOST_DEVICES:
            return None
        joined.extend(group)
    return joined or None


def _place_of_members(value: dict[str, Any]) -> list[Place] | None:
    """`{"node": 0, "gpu": 3}` or `{"node": 0, "gpus": [0, 1]}`."""
    node = whole_number(value.get("node", value.get("host")))
    inner = next((value[key] for key in ("gpu", "gpus", "device", "local_rank", "devices") if key in value), None)
    numbers = [] if is_object(inner) else [gpu for gpu in places_of(inner) or [] if isinstance(gpu, int)]
    return [(node, gpu) for gpu in numbers] if node is not None and len(value) == 2 and numbers else None


def _places_in(words: str) -> list[Place] | None:
    if match := _PLACED.fullmatch(words):
        node, first, last = int(match[1]), int(match[2]), int(match[3] or match[2])
        return [(node, gpu) for gpu in range(first, last + 1)] if first <= last < MOST_DEVICES else None
    if match := _NUMBERED.fullmatch(words):
        first, last = int(match[1]), int(match[2] or match[1])
        return list(range(first, last + 1)) if first <= last < MOST_DEVICES else None
    named = next(iter(mentions(words)), None)
    if named is None or named.start != 0 or named.end == len(words):
        return None
    return _places_in(words[named.end :].lstrip(" _-:"))  # "H100-3"


def experts_of(value: object) -> list[int | list[int]] | None:
    """Expert ids and inclusive ranges as our format lists them: "0-15", [0, 1, 2], ["0-3", 8]; `None` if unclear."""
    if type(value) is int:
        return [value] if value < MOST_DEVICES else None
    if is_list(value):
        return _joined(_range_item(item) if is_list(item) else experts_of(item) for item in value)
    if not isinstance(value, str):
        return None
    parts = [part.strip() for part in value[:2000].strip("[]() ").split(",")]
    if len(parts) > 1 and all(part.isdigit() for part in parts):
        return [int(part) for part in parts if len(part) < 6]
    single = _EXPERT.fullmatch(value[:40].strip())
    return [int(single[1])] if single else _range_item(value)


def _range_item(item: object) -> list[int | list[int]] | None:
    span = span_of(item) if isinstance(item, str) or (is_list(item) and len(item) == 2) else None
    return [[*span]] if span is not None and span[1] < MOST_DEVICES else None
