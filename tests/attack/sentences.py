"""Requests in words as people and attackers may write them: ordinary words, and noise between them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from .probe import Case

_WORDS: dict[str, list[Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "attack_words.json").read_text(encoding="utf-8")
)
_SIZES = (*_WORDS["sizes"], "9" * 5000)
_NOISE = tuple(unit * times for unit, times in _WORDS["noise"])
_MARKS = {"{m}": _WORDS["models"], "{c}": _WORDS["cards"], "{n}": _WORDS["counts"], "{k}": _SIZES}


def _filled(words: str, rng: random.Random) -> str:
    for mark, choices in _MARKS.items():
        while mark in words:
            words = words.replace(mark, rng.choice(choices[:8] if rng.random() < 0.6 else choices), 1)
    return words


def sentence(rng: random.Random) -> str:
    """A random request; about half of them are sound."""
    parts = [_filled(rng.choice(_WORDS["frames"]), rng)]
    parts += [_filled(rng.choice(_WORDS["clauses"]), rng) for _ in range(rng.choice((0, 1, 2, 3, 6)))]
    if rng.random() < 0.15:
        rng.shuffle(parts)
    text = rng.choice((", ", "，", " ", "; ", ". ", "\n")).join(parts)
    while rng.random() < 0.3:
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            (
                text[:at] + rng.choice(_NOISE) + text[at:],
                text[:at],
                text[at:] + text[:at],
                text + ", " + text,
                text.upper(),
                text.replace(" ", ""),
                text[:at] + text[at + 1 :],
            )
        )
    return text


def request_case(seed: int, number: int) -> Case:
    """The request that `seed` and `number` determine."""
    return Case("requests", sentence(random.Random(f"requests:{seed}:{number}")))
