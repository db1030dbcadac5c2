"""Layouts that are weighed on hardware of their own, which no plan answers: "TP8 on 8x H100 or TP4 on 4x H200?"."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.hardware import mentions
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import BARRIER, Page
from ..patterns.quantities import read_number
from .compared import COMPARE
from .degrees import Degree, runs_of

_LONGEST = 200  # characters from the first degree to the last
_AROUND = 40  # characters in which hardware stands before the first and behind the last
# Between two sides of a choice, or between two of its clauses.
_SIDES = Gated(
    r"[,;?!\n]|\.\s|(?<![a-z])(?:or|and|vs\.?|versus|than|against|compared\s(?:to|with))(?![a-z])|还是|或者?|[和与跟]|对比"
)
_COUNT_BEFORE = Gated(
    rf"(?<![\w.])(?P<n>an?|\d{{1,4}}|{ENGLISH_NUMBER}|[一二两四八])\s?(?:[x×*张块卡个台]|gpus?|cards?|of\s(?:the|our)|nvidia){{0,2}}\s?$"
)
_COUNT_BEHIND = Gated(r"\s?[x×*]\s?(?P<n>\d{1,4})(?![\w.])")


def refuse_own_hardware(page: Page, claims: Claims, degrees: Sequence[Degree]) -> None:
    """Refuse strategies to compare of which two name accelerators of their own."""
    start, end = degrees[0].start, degrees[-1].end
    if end - start > _LONGEST or BARRIER in page.original[start:end]:
        return
    left, right = max(0, start - _AROUND), min(len(page.text), end + _AROUND)
    if not COMPARE.search(page.original, left, right):
        return
    sides: dict[str, str] = {}
    for start, end in _parts(page.text, left, right):
        inside = [degree for degree in degrees if start <= degree.start and degree.end <= end]
        hardware = _hardware(page.original[start:end])
        if hardware is not None and len(runs_of(page, inside)) == 1:
            sides.setdefault(hardware, page.original[inside[0].start : inside[-1].end])
    if len(sides) < 2:
        return
    (first, layout), (second, other) = list(sides.items())[:2]
    raise claims.refusal(
        f"{layout!r} on {first} and {other!r} on {second} are layouts on hardware of their own, and a plan is on one; "
        f'set them side by side: shardwright compare "{layout}" "{other}" --hardware {first} --hardware-b {second}, '
        "with --model and the load"
    )


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    ends = [match.span() for match in _SIDES.finditer(text, start, end)]
    return list(zip([start, *(right for _, right in ends)], [*(left for left, _ in ends), end], strict=True))


def _hardware(text: str) -> str | None:
    """The only counted accelerator of a text, as `compare` takes it: "8xh100-sxm"."""
    named = mentions(text)
    if len(named) != 1 or (kind := named[0].accelerator) is None:
        return None
    count = _COUNT_BEFORE.search(text, 0, named[0].start) or _COUNT_BEHIND.match(text, named[0].end)
    number = None if count is None else read_number(count["n"].lower()) or 1.0
    of_node = named[0].gpus_per_node or 1
    return f"{number * of_node:g}x{kind.id}" if number else None
