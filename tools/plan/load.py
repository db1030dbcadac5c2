"""The requests that the workload of a plan describes: the distribution of their lengths, the longest, arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .quantiles import Independent, Quantiles, Spread, between, fixed

if TYPE_CHECKING:
    from .document import WorkloadBlock
    from .lengths import RequestLengths, Side


def spread_of(workload: WorkloadBlock) -> Spread | None:
    """The distribution of request lengths, from lengths or ranges; `None` if all requests are alike.

    A range has the stated length as its mean, and is uniform on either side of it. All turns of conversations are
    equally frequent.
    """
    if workload.prefixes is not None:
        turns = workload.prefixes.turn_lengths(workload.input_tokens, workload.output_tokens)
        if turns is not None:
            return turns
    stated = workload.lengths
    if stated is not None and stated.pairs is not None:
        return stated.spread(workload.input_tokens, workload.output_tokens)
    distributions = (None, None) if stated is None else (stated.input, stated.output)
    ranges = workload.input_tokens_range, workload.output_tokens_range
    means = workload.input_tokens, workload.output_tokens
    sides: list[Quantiles] = []
    for distribution, ends, mean in zip(distributions, ranges, means, strict=True):
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


def beyond_positions(workload: WorkloadBlock, positions: int) -> tuple[int, str] | None:
    """The tokens of the longest request and a message, if they exceed the model's `positions`; else `None`."""
    longest_in, longest_out = longest_stated(workload)
    if longest_in + longest_out <= positions:
        return None
    return longest_in + longest_out, (
        f"{longest_in:,} input + {longest_out:,} output tokens are more than the model's {positions:,} positions "
        "(max_position_embeddings)"
    )


def shortest_request(workload: WorkloadBlock) -> int:
    """Tokens of the shortest request, prompt and answer together."""
    spread = spread_of(workload)
    return workload.input_tokens + workload.output_tokens if spread is None else spread.shortest_request


def think_seconds(workload: WorkloadBlock) -> float:
    """Seconds that users wait on average before their next request; 0 if not stated."""
    arrivals = workload.arrivals
    return 0.0 if arrivals is None else arrivals.think_time_s or 0.0


def burstiness_of(workload: WorkloadBlock) -> float:
    """The gamma shape of the gaps between requests at a rate; 1 (Poisson) if not stated."""
    arrivals = workload.arrivals
    return 1.0 if arrivals is None else arrivals.burstiness or 1.0


def without_rate(workload: WorkloadBlock) -> WorkloadBlock:
    """The load with a number of requests in flight instead of an arrival rate."""
    return workload.model_copy(update={"request_rate": None, "arrivals": None})


# Burstiness within these bounds is described as that of a Poisson process.
_LIKE_POISSON = 0.9, 1.1


def arrival_words(burstiness: float) -> str:
    """How requests of that burstiness arrive, in words."""
    least, most = _LIKE_POISSON
    words = "in bursts" if burstiness < least else "more evenly than at random" if burstiness > most else "at random"
    return words if burstiness == 1.0 else f"{words} (burstiness {burstiness:.3g})"


_SIDES: tuple[Side, Side] = ("input", "output")


def with_lengths(workload: WorkloadBlock, lengths: RequestLengths) -> WorkloadBlock:
    """The load with the lengths and means of the sides that `lengths` covers; the other side's stay."""
    means, stated = lengths.spread(1, 1).means, workload.lengths
    update: dict[str, object] = {}
    remaining: RequestLengths | None = None
    for side, mean in zip(_SIDES, means, strict=True):
        if lengths.covers(side):
            update |= {f"{side}_tokens": max(1, round(mean)), f"{side}_tokens_range": None}
        elif stated is not None and stated.pairs is None and stated.covers(side):
            remaining = lengths.model_copy(update={side: getattr(stated, side)})
    prefixes = workload.prefixes
    if prefixes is not None and (prefixes.turns is not None or prefixes.replay is not None):
        # Turns and recorded requests imply their own lengths.
        update["prefixes"] = None
    return workload.model_copy(update={**update, "lengths": remaining or lengths})


def repeated_share(workload: WorkloadBlock) -> float:
    """The share of prompt tokens that a cache may hold, 0 to 1: the stated one, else the most that can be hit."""
    prefixes = workload.prefixes
    if prefixes is None:
        return workload.prefix_cache_hit_rate or 0.0
    turns = prefixes.turn_lengths(workload.input_tokens, workload.output_tokens)
    pairs = workload.lengths.pairs if workload.lengths is not None else None
    return prefixes.most_shared(turns.pairs if turns is not None else pairs or (), workload.input_tokens)
