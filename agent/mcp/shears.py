"""Cuts JSON values to a size: the largest part loses a quarter, again and again, and every part keeps its type."""

from __future__ import annotations

import json
from typing import Any

from ...tools.checkpoint import checkpoint

# A list or a text is never made shorter: pairs stay pairs, and a line says something.
_FEWEST_ITEMS = 4
_FEWEST_CHARACTERS = 300
# First of all each list and each text; what then is still so long, or takes so many cuts, is not worth the time.
_MOST_ITEMS = 64
_MOST_CHARACTERS = 20_000
_LONGEST = 500_000
_MOST_CUTS = 200

# What was cut, by its place: its size now, its size before, and the unit of both.
Cut = dict[str, tuple[int, int, str]]


def cut_to(value: dict[str, Any], most_characters: int) -> list[str] | None:
    """Cut `value` itself until its JSON has so many characters, and name what is shorter; `None`: it cannot be.

    Raises:
        StoppedError: it is not wanted any more.
    """
    cut: Cut = {}
    _cut_roughly(value, "answer", cut)
    for _ in range(_MOST_CUTS):
        checkpoint()
        size = _size(value)
        if size <= most_characters:
            return [f"{place}: {now:,} of {before:,} {unit}" for place, (now, before, unit) in cut.items()]
        if size > _LONGEST or not _shorten_bulkiest(value, cut):
            return None
    return None


def _cut_roughly(value: Any, place: str, cut: Cut) -> None:
    if isinstance(value, list):
        _keep(value, _MOST_ITEMS, place, cut)
    for name, inner in _inside(value):
        if isinstance(inner, str):
            _keep_text(value, name, _MOST_CHARACTERS, place, cut)
        else:
            _cut_roughly(inner, _place(place, name), cut)


def _shorten_bulkiest(value: dict[str, Any], cut: Cut) -> bool:
    """Cut a quarter off the innermost part that takes most of the room; whether anything could be cut."""
    around: Any = value
    place, gains = "answer", _gains(value)
    while gains:
        name = max(gains, key=gains.__getitem__)
        inner = around[name]
        if isinstance(inner, str):
            _keep_text(around, name, max(len(inner) * 3 // 4, _FEWEST_CHARACTERS), place, cut)
            return True
        place, gains = _place(place, name), _gains(inner)
        if isinstance(inner, list) and len(inner) > _FEWEST_ITEMS and max(gains.values(), default=0) * 2 < _size(inner):
            _keep(inner, max(len(inner) * 3 // 4, _FEWEST_ITEMS), place, cut)
            return True
        around = inner
    return False


def _gains(value: Any) -> dict[Any, int]:
    """How much can be cut off each part of `value`, where anything can be."""
    return {name: gain for name, inner in _inside(value) if (gain := _gain(inner))}


def _gain(value: Any) -> int:
    if isinstance(value, str):
        return max(0, len(value) - _FEWEST_CHARACTERS)
    if isinstance(value, list) and len(value) > _FEWEST_ITEMS:
        return _size(value)
    return sum(_gain(inner) for _, inner in _inside(value))


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _inside(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _keep(items: list[Any], most: int, place: str, cut: Cut) -> None:
    if len(items) > most:
        _note(cut, place, most, len(items), "items")
        del items[most:]


def _keep_text(around: Any, name: Any, most: int, place: str, cut: Cut) -> None:
    text = around[name]
    if len(text) > most:
        _note(cut, _place(place, name), most, len(text), "characters")
        around[name] = text[:most]


def _place(around: str, name: Any) -> str:
    return f"{around}[]" if isinstance(name, int) else f"{around}.{name[:60]}"


def _note(cut: Cut, place: str, now: int, before: int, unit: str) -> None:
    cut[place] = (now, max(before, cut.get(place, (0, 0, ""))[1]), unit)
