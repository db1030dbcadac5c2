"""Replicas of prefill and of decode, counted side by side: "2P1D", "two prefill workers and one decode worker"."""

from __future__ import annotations

from collections.abc import Iterator

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.number_words import NUMBER
from ..patterns.page import Page
from ..patterns.quantities import read_number

_XPYD = Gated(r"(?<![A-Za-z0-9.])(?P<prefill>\d{1,6})\s?p\s?(?:[+&]\s?)?(?P<decode>\d{1,6})\s?d(?![A-Za-z0-9])")
_PHASES = {"prefill": r"pre-?fill(?:ing)?|预填充?", "decode": r"decod(?:e|ing)|解码"}
_KIND = r"(?:replicas?|instances?|workers?|engines?)(?![a-z])|副本|实例|of(?=\s[a-z]{2}\s?=?\d)"
_COUNTED = {
    phase: Gated(rf"(?<![A-Za-z0-9.\-])(?P<n>{NUMBER})\s?(?:x\s?|个\s?)?(?:{words})(?:[\s\-]?(?:{_KIND}))")
    for phase, words in _PHASES.items()
}

# "2 nodes for prefill and 2 for decode", "2 台做 P、2 台做 D": how many nodes each side has.
_MACHINES = r"(?:nodes?|servers?|boxes|machines?|hosts?|gpus?|cards?)"
_FOR = r"(?:for|to|on|do|run)\s(?:the\s)?"
_DO = r"\s?[台个张]\s?(?:节点|机器|服务器|卡)?(?:做|跑|给|用于|当)\s?"
_NODES_OF_SIDES = Gated(
    rf"(?<![A-Za-z0-9.\-])(?:{NUMBER})\s?{_MACHINES}\s{_FOR}(?:{_PHASES['prefill']})\s?(?:,|and|,\sand|&|\+)\s?"
    rf"(?:{NUMBER})\s(?:{_MACHINES}\s)?{_FOR}(?:{_PHASES['decode']})(?![a-z])|"
    rf"(?:{NUMBER}){_DO}(?:p(?![a-z])|{_PHASES['prefill']})[,、;和 ]{{1,3}}"
    rf"(?:{NUMBER}){_DO}(?:d(?![a-z])|{_PHASES['decode']})"
)


def set_aside_sides(page: Page, claims: Claims) -> None:
    """Read nodes that are counted for each side as separate prefill and decode; the search finds the split."""
    for match in page.search(_NODES_OF_SIDES):
        words = page.take(*match.span())
        claims.claim("disaggregated", True, words)
        claims.leave_unread(f"{words!r}: read as separate prefill and decode; how many GPUs each gets is searched for")


def read_sides(page: Page) -> Iterator[tuple[str, dict[str, float]]]:
    """Take counts of both sides off the page: their words, and the replicas of each phase."""
    for match in page.search(_XPYD):
        yield page.take(*match.span()), {phase: float(match[phase]) for phase in _PHASES}
    sides = {phase: pattern.search(page.text) for phase, pattern in _COUNTED.items()}
    matches = {phase: match for phase, match in sides.items() if match is not None}
    if len(matches) == len(_PHASES):
        words = ", ".join(page.take(*match.span()) for match in matches.values())
        yield words, {phase: read_number(match["n"]) or 0.0 for phase, match in matches.items()}
