"""Replicas of prefill and of decode, counted side by side: "2P1D", "two prefill workers and one decode worker"."""

from __future__ import annotations

from collections.abc import Iterator

from ..gated import Gated
from .number_words import ENGLISH_NUMBER
from .page import Page
from .quantities import read_number

_XPYD = Gated(r"(?<![A-Za-z0-9.])(?P<prefill>\d{1,6})\s?p\s?(?:[+&]\s?)?(?P<decode>\d{1,6})\s?d(?![A-Za-z0-9])")
_NUMBER = rf"\d{{1,6}}|(?:{ENGLISH_NUMBER})(?![a-z])|[一二两三四五六七八九十]{{1,3}}"
_PHASES = {"prefill": r"pre-?fill(?:ing)?|预填充?", "decode": r"decod(?:e|ing)|解码"}
_KIND = r"(?:replicas?|instances?|workers?|engines?)(?![a-z])|副本|实例|of(?=\s[a-z]{2}\s?=?\d)"
_COUNTED = {
    phase: Gated(rf"(?<![A-Za-z0-9.\-])(?P<n>{_NUMBER})\s?(?:x\s?|个\s?)?(?:{words})(?:[\s\-]?(?:{_KIND}))")
    for phase, words in _PHASES.items()
}


def read_sides(page: Page) -> Iterator[tuple[str, dict[str, float]]]:
    """Take counts of both sides off the page: their words, and the replicas of each phase."""
    for match in page.search(_XPYD):
        yield page.take(*match.span()), {phase: float(match[phase]) for phase in _PHASES}
    sides = {phase: pattern.search(page.text) for phase, pattern in _COUNTED.items()}
    found = {phase: match for phase, match in sides.items() if match is not None}
    if len(found) == len(_PHASES):
        words = ", ".join(page.take(*match.span()) for match in found.values())
        yield words, {phase: read_number(match["n"]) or 0.0 for phase, match in found.items()}
