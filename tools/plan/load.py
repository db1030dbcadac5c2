"""What the workload of a plan says of its requests, wherever it says it: how lengths spread, and the longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .quantiles import Independent, Quantiles, Spread, between, fixed

if TYPE_CHECKING:
    from .document import WorkloadBlock
    from .lengths import RequestLengths, Side


def spread_of(workload: WorkloadBlock) -> Spread | None:
    """How the lengths of requests spread, by lengths or by ranges; `None` where all requests are alike.

    A range has the stated length as its mean, and spreads evenly on either side of it. Of conversations each turn is as
    frequent as any other.
    """
    if workload.prefixes is not None:
        turns = workload.prefixes.turn_lengths(workload.input_tokens, workload.output_tokens)
        if turns is not None:
            return turns
    stated = workload.lengths
    if stated is not None and stated.pairs is not None:
        return stated.spread(workload.input_tokens, workload.output_tokens)
    given = (None, None) if stated is None else (stated.input, stated.output)
    ranges = workload.input_tokens_range, workload.output_tokens_range
    means = workload.input_tokens, workload.output_tokens
    sides: list[Quantiles] = []
    for distribution, ends, mean in zip(given, ranges, means, strict=True):
        if distribution is not None:
            sides.append(distribution.quantiles())
        else:
            sides.append(fixed(mean) if ends is None else between(min(ends), mean, max(ends)))
    return None if all(side.is_fixed for side in sides) else Independent(*sides)


def longest_stated(workload: WorkloadBlock) -> tuple[int, int]:
    """Tokens of the longest prompt and of the longest answer that the workload states."""
    spread = spread_of(workload)
    means = workload.input_tokens, workload.output_tokens
    return means if spread is None else spread.longest_stated


def shortest_request(workload: WorkloadBlock) -> int:
    """Tokens of the shortest request, prompt and answer together."""
    spread = spread_of(workload)
    return workload.input_tokens + workload.output_tokens if spread is None else spread.shortest_request


def think_seconds(workload: WorkloadBlock) -> float:
    """What users wait on average before their next request; 0 where nothing is stated."""
    arrivals = workload.arrivals
    return 0.0 if arrivals is None else arrivals.think_time_s or 0.0


def burstiness_of(workload: WorkloadBlock) -> float:
    """The shape of the gaps between requests that come at a rate; 1, random ones, where nothing is stated."""
    arrivals = workload.arrivals
    return 1.0 if arrivals is None else arrivals.burstiness or 1.0


def without_rate(workload: WorkloadBlock) -> WorkloadBlock:
    """The load where a number of requests at once is stated in place of the rate at which they come."""
    return workload.model_copy(update={"request_rate": None, "arrivals": None})


# Beyond these shapes arrivals are told from those of a Poisson process.
_LIKE_POISSON = 0.9, 1.1


def arrival_words(burstiness: float) -> str:
    """How requests of that burstiness come."""
    least, most = _LIKE_POISSON
    words = "in bursts" if burstiness < least else "more evenly than at random" if burstiness > most else "at random"
    return words if burstiness == 1.0 else f"{words} (burstiness {burstiness:.3g})"


_SIDES: tuple[Side, Side] = ("input", "output")


def with_lengths(workload: WorkloadBlock, lengths: RequestLengths) -> WorkloadBlock:
    """The load with the lengths of the sides that `lengths` covers, and with their means; those of others stay."""
    means, own = lengths.spread(1, 1).means, workload.lengths
    update: dict[str, object] = {}
    kept: RequestLengths | None = None
    for side, mean in zip(_SIDES, means, strict=True):
        if lengths.covers(side):
            update |= {f"{side}_tokens": max(1, round(mean)), f"{side}_tokens_range": None}
        elif own is not None and own.pairs is None and own.covers(side):
            kept = lengths.model_copy(update={side: getattr(own, side)})
    prefixes = workload.prefixes
    if prefixes is not None and (prefixes.turns is not None or prefixes.replay is not None):
        # Turns and recorded requests have lengths of their own.
        update["prefixes"] = None
    return workload.model_copy(update={**update, "lengths": kept or lengths})


def repeated_share(workload: WorkloadBlock) -> float:
    """The share of prompt tokens that a cache may hold: the one that is given, else the most that can be found."""
    prefixes = workload.prefixes
    if prefixes is None:
        return workload.prefix_cache_hit_rate or 0.0
    turns = prefixes.turn_lengths(workload.input_tokens, workload.output_tokens)
    pairs = workload.lengths.pairs if workload.lengths is not None else None
    return prefixes.most_shared(turns.pairs if turns is not None else pairs or (), workload.input_tokens)
