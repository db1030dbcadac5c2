"""What users of one or several replicas saw: mean, median and high percentiles over their requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .load import ServingTimes, Statistics

# Of the percentiles of `Statistics`, in its order.
_SHARES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of one replica. Seconds by request; `tpot_s` only of answers longer than one token.

    `prefill_s` is the time with prompts in the step, `decoding_s` the sum over decoding requests of the time that each
    spent, `gap_s` with `gap_tokens` the gaps between tokens and how many tokens came after each; `without_line` is that
    of `ServingTimes`.
    """

    ttft_s: Sequence[float]
    tpot_s: Sequence[float]
    end_to_end_s: Sequence[float]
    gap_s: Sequence[float]
    gap_tokens: Sequence[int]
    output_tokens: int
    end_s: float
    prefill_s: float
    decoding_s: float
    preemptions: int
    without_line: float


def times_of(replicas: Sequence[tuple[Outcome, int]]) -> ServingTimes:
    """What the users of all replicas saw together: of each outcome, as many replicas as it is given with."""
    end_s = max(outcome.end_s for outcome, _ in replicas)
    total_s = end_s * sum(count for _, count in replicas)
    gaps = [
        (gap_s, tokens * count)
        for outcome, count in replicas
        for gap_s, tokens in zip(outcome.gap_s, outcome.gap_tokens, strict=True)
    ]
    return ServingTimes(
        ttft=_pooled([(outcome.ttft_s, count) for outcome, count in replicas]),
        tpot=_pooled([(outcome.tpot_s, count) for outcome, count in replicas]),
        end_to_end=_pooled([(outcome.end_to_end_s, count) for outcome, count in replicas]),
        output_tokens_per_s=sum(outcome.output_tokens * count for outcome, count in replicas) / end_s,
        makespan_s=end_s,
        running=sum(outcome.decoding_s * count for outcome, count in replicas) / end_s,
        prefill_share=sum(outcome.prefill_s * count for outcome, count in replicas) / total_s,
        inter_token_p99_s=weighted_percentile(gaps, 0.99),
        preemptions=sum(outcome.preemptions * count for outcome, count in replicas),
        without_line=min(outcome.without_line for outcome, _ in replicas),
    )


def _pooled(samples: Sequence[tuple[Sequence[float], int]]) -> Statistics:
    if len(samples) == 1:
        return statistics_of(samples[0][0])
    weighted = [(value, weight) for values, weight in samples for value in values]
    if not weighted:
        return statistics_of(())
    mean = math.fsum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)
    return Statistics(mean, *(weighted_percentile(weighted, share) for share in _SHARES))


def statistics_of(values: Sequence[float]) -> Statistics:
    """Mean and percentiles; all 0 where there is nothing (no gap exists in answers of one token)."""
    ordered = sorted(values)
    if not ordered:
        return Statistics.constant(0.0)
    return Statistics(math.fsum(ordered) / len(ordered), *(percentile(ordered, share) for share in _SHARES))


def percentile(ordered: Sequence[float], share: float) -> float:
    """On the straight line between the two nearest of `ordered`, as NumPy and the engines' own benchmarks read it."""
    place = share * (len(ordered) - 1)
    low = int(place)
    if low + 1 >= len(ordered):
        return ordered[low]
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def weighted_percentile(weighted: Sequence[tuple[float, int]], share: float) -> float:
    """The smallest value that `share` of all do not exceed, each counted as often as it says; 0 without values."""
    wanted = share * sum(weight for _, weight in weighted)
    reached = 0
    for value, weight in sorted(weighted):
        reached += weight
        if reached >= wanted:
            return value
    return 0.0
