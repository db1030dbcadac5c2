"""The objective of a request: latency, throughput or cost.

A ranked wish ("latency first") outweighs an extreme ("lowest cost"), and both outweigh a leaning ("interactive"). It
refuses two wishes of the same strength for different things, unless both only lean.
"""

from __future__ import annotations

import re

from ..conflicts.claims import Claims
from ..lexicons.objectives import INDIFFERENT, PER_GPU, SUBORDINATE, TIERS
from ..patterns.page import Page

_LEANING, _BARE = 2, 3  # places of the tiers


def read_objective(page: Page, claims: Claims) -> None:
    """Read the objective."""
    page.take_all(INDIFFERENT)
    wishes: list[list[re.Match[str]]] = []
    for tier in TIERS:
        if len(wishes) == _BARE and any(wishes):
            break  # a demand or a leaning says more than a word alone
        wishes.append([match for match in page.search(tier) if not page.is_negated(*match.span())])
    strength = next((i for i, tier in enumerate(wishes) if tier), None)
    if strength is None:
        return
    first = wishes[strength][0]
    words = first.group().strip()
    rivals = [wish for wish in wishes[strength] if wish.lastgroup != first.lastgroup]
    if rivals and strength == _BARE:
        return  # "report latency, throughput, cost" lists what to report
    claims.claim("objective", first.lastgroup, words)
    if PER_GPU.search(words):
        note = f"{words!r} read as the throughput of all GPUs that may be used"
        claims.reading(f"{note}; the most of each GPU is the objective cost: the lowest cost per token")
    clash = next((wish for wish in rivals if not SUBORDINATE.search(page.original[first.end() : wish.start()])), None)
    if clash is not None and strength < _LEANING:
        raise claims.refusal(f"two objectives: {words!r} and {clash.group().strip()!r}; say which one comes first")
    for wish in (wish for tier in wishes[strength:_BARE] for wish in tier):
        if wish.lastgroup != first.lastgroup:
            later = wish.group().strip()
            claims.reading(f"{words!r} read as the objective, {later!r} as a wish that comes after it")


def wants(words: str, objective: str | None) -> bool:
    """Whether the words ask for the objective again."""
    return objective is not None and any(
        match.lastgroup == objective for tier in TIERS[:_BARE] for match in tier.finditer(words)
    )
