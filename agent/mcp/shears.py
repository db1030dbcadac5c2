"""Cuts JSON values to a size: of what takes most room a quarter goes, again and again, and each keeps its type."""

from __future__ import annotations

import json
from typing import Any

# A list or a text is never made shorter: pairs stay pairs, and a line says something.
_FEWEST_ITEMS = 4
_FEWEST_CHARACTERS = 300
# First of all each list, so that what comes then takes no long time.
_MOST_ITEMS = 256


def cut_to(value: dict[str, Any], most_characters: int) -> list[str] | None:
    """Cut `value` itself until its JSON has so many characters, and name what is shorter; `None`: it cannot be."""
    cut: dict[str, tuple[int, int, str]] = {}
    _cut_lists(value, "answer", cut)
    while len(json.dumps(value, ensure_ascii=False)) > most_characters:
        if not _shorten_bulkiest(value, cut):
            return None
    return [f"{place}: {kept:,} of {there_were:,} {what}" for place, (kept, there_were, what) in cut.items()]


def _cut_lists(value: Any, place: str, cut: dict[str, tuple[int, int, str]]) -> None:
    if isinstance(value, list):
        _keep(value, _MOST_ITEMS, place, cut)
    for name, inner in _inside(value):
        _cut_lists(inner, _place(place, name), cut)


def _shorten_bulkiest(value: dict[str, Any], cut: dict[str, tuple[int, int, str]]) -> bool:
    """Take a quarter off what takes most room, as far in as one thing takes most of it; whether anything can be."""
    around: Any = value
    place, gains = "answer", _gains(value)
    while gains:
        name = max(gains, key=gains.__getitem__)
        place, inner = _place(place, name), around[name]
        if isinstance(inner, str):
            most = max(len(inner) * 3 // 4, _FEWEST_CHARACTERS)
            _note(cut, place, most, len(inner), "characters")
            around[name] = inner[:most]
            return True
        gains = _gains(inner)
        if isinstance(inner, list) and len(inner) > _FEWEST_ITEMS and max(gains.values(), default=0) * 2 < _size(inner):
            _keep(inner, max(len(inner) * 3 // 4, _FEWEST_ITEMS), place, cut)
            return True
        around = inner
    return False


def _gains(value: Any) -> dict[Any, int]:
    """How much can be taken off each of what is in `value`, where anything can be."""
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


def _keep(items: list[Any], most: int, place: str, cut: dict[str, tuple[int, int, str]]) -> None:
    if len(items) > most:
        _note(cut, place, most, len(items), "items")
        del items[most:]


def _place(around: str, name: Any) -> str:
    return f"{around}[]" if isinstance(name, int) else f"{around}.{name[:60]}"


def _note(cut: dict[str, tuple[int, int, str]], place: str, kept: int, there_were: int, what: str) -> None:
    cut[place] = (kept, max(there_were, cut.get(place, (0, 0, ""))[1]), what)
