"""Counts of accelerators and nodes put together: which of them speak of the same hardware, and what they say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .claims import Claims

_ONE_OF = re.compile(r"单|single|(?:one|an?)\s(?:node|server|machine|box|[hd]gx)|一台", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Count:
    """A count of GPUs or nodes, with the phases that its clause names."""

    field: str
    number: float
    words: str
    phases: frozenset[str]


def without_the_busy(claims: Claims, counts: list[Count], available: Count | None) -> list[Count]:
    """The counts where a part of a larger number is free: that part alone."""
    if available is None:
        return counts
    larger = [count for count in counts if count.field == available.field and count.number > available.number]
    for count in larger:
        claims.reading(f"{available.words!r} is planned for, not all of {count.words!r}")
    return [*(count for count in counts if count not in larger), available]


def agreed(claims: Claims, counts: list[Count]) -> list[Count]:
    """The counts without what says a node's share of them ("2 nodes, 8 GPUs, 16 GPUs in all", "4机32卡，单机8卡")."""
    nodes = {count.number for count in counts if count.field == "nodes"}
    if len(nodes) == 2 and 1 in nodes and claims.has("gpus_per_node"):
        counts = [one for one in counts if one.field != "nodes" or one.number != 1 or not _ONE_OF.match(one.words)]
        nodes = {count.number for count in counts if count.field == "nodes"}
    shares = sorted({count.number for count in counts if count.field == "gpus"})
    if len(nodes) != 1 or len(shares) != 2 or shares[1] != shares[0] * max(nodes):
        return counts
    share = next(count for count in counts if count.field == "gpus" and count.number == shares[0])
    claims.claim("gpus_per_node", share.number, share.words)
    claims.reading(f"{share.words!r} read as the GPUs of each node: {max(nodes):g} x {shares[0]:g} = {shares[1]:g}")
    return [count for count in counts if count.field != "gpus" or count.number != shares[0]]


def claim_counts(claims: Claims, counts: list[Count]) -> None:
    """Claim the counts of one field; a count for prefill and one for decode are two parts of a whole."""
    parts = [count for count in counts if len(count.phases) == 1]
    if len(parts) == 2 and parts[0].phases != parts[1].phases:
        words = " + ".join(part.words for part in parts)
        claims.claim(parts[0].field, sum(part.number for part in parts), words)
        claims.claim("disaggregated", True, words)
        claims.reading(f"{words!r} read as hardware of their own for prefill and for decode")
        counts = [count for count in counts if count not in parts]
    for count in counts:
        claims.claim(count.field, count.number, count.words)
