"""What users of one or several replicas saw: mean, median and high percentiles over their requests."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from operator import mul

from msgspec import Struct

from .load import ServingTimes, Statistics
from .records import Seen

# The percentiles of `Statistics`, in its order.
_SHARES = (0.5, 0.9, 0.95, 0.99)


class CacheUse(Struct, frozen=True):
    """Cache hits of requests that share beginnings: `found_tokens` of `prompt_tokens` were cached.

    `filled`, by request: the filled share of its scheduler's cache when it came. `from_host`: tokens of `found_tokens`
    that came from host memory.
    """

    prompt_tokens: int
    found_tokens: int
    filled: Sequence[float]
    from_host: int = 0


class Outcome(Struct, frozen=True):
    """A run of one replica. Seconds by request; `tpot_s` only of answers longer than one token.

    `prefill_s` is the time with prompts in the step, `decoding_s` the sum of decode times over requests; `without_line`
    as in `ServingTimes`; `cache_use` is `None` if it is not known what prompts share.
    """

    ttft_s: Sequence[float]
    tpot_s: Sequence[float]
    end_to_end_s: Sequence[float]
    output_tokens: int
    end_s: float
    prefill_s: float
    decoding_s: float
    preemptions: int
    without_line: float
    cache_use: CacheUse | None = None


def latencies_of(
    seen: Seen, outputs: Sequence[int], client_s: Sequence[float], counted: Sequence[int]
) -> dict[str, list[float]]:
    """The seconds of an `Outcome` for the `counted` requests; `client_s` is spent before the engine."""
    arrived, first, done = seen.arrived, seen.first, seen.done
    return {
        "ttft_s": [first[i] - arrived[i] + client_s[i] for i in counted],
        "tpot_s": [(done[i] - first[i]) / (outputs[i] - 1) for i in counted if outputs[i] > 1],
        "end_to_end_s": [done[i] - arrived[i] + client_s[i] for i in counted],
    }


def times_of(replicas: Sequence[tuple[Outcome, int]]) -> ServingTimes:
    """What the users of all replicas saw together; each outcome comes with its number of replicas."""
    end_s = max(outcome.end_s for outcome, _ in replicas)
    total_s = end_s * sum(count for _, count in replicas)
    return ServingTimes(
        ttft=statistics_of([(outcome.ttft_s, count) for outcome, count in replicas]),
        tpot=statistics_of([(outcome.tpot_s, count) for outcome, count in replicas]),
        end_to_end=statistics_of([(outcome.end_to_end_s, count) for outcome, count in replicas]),
        output_tokens_per_s=sum(outcome.output_tokens * count for outcome, count in replicas) / end_s,
        makespan_s=end_s,
        running=sum(outcome.decoding_s * count for outcome, count in replicas) / end_s,
        prefill_share=sum(outcome.prefill_s * count for outcome, count in replicas) / total_s,
        preemptions=sum(outcome.preemptions * count for outcome, count in replicas),
        without_line=min(outcome.without_line for outcome, _ in replicas),
        **_cache_shares([(outcome.cache_use, count) for outcome, count in replicas if outcome.cache_use is not None]),
    )


def _cache_shares(uses: Sequence[tuple[CacheUse, int]]) -> dict[str, float]:
    """The prefix-cache fields of `ServingTimes`; empty if nothing is known of them."""
    if not uses:
        return {}
    prompts = sum(use.prompt_tokens * count for use, count in uses)
    hits, from_host = (
        sum(tokens) for tokens in zip(*((u.found_tokens * n, u.from_host * n) for u, n in uses), strict=True)
    )
    filled = sum(math.fsum(use.filled) * count for use, count in uses)
    requests = sum(len(use.filled) * count for use, count in uses)
    return {
        "prefix_hit_share": hits / prompts if prompts else 0.0,
        "host_hit_share": from_host / prompts if prompts else 0.0,
        "cache_filled_share": filled / requests,
    }


def statistics_of(samples: Sequence[tuple[Sequence[float], int]]) -> Statistics:
    """Mean and percentiles of values, each weighted by the count of its sample (a single sample: by 1).

    All 0 without values: answers of one token have no TPOT.
    """
    if len(samples) == 1:
        ordered = sorted(samples[0][0])
        ends: Sequence[int] = range(1, len(ordered) + 1)
    else:
        weighted = sorted((value, weight) for values, weight in samples for value in values)
        ordered, ends = [value for value, _ in weighted], list(accumulate(weight for _, weight in weighted))
    if not ordered:
        return Statistics.constant(0.0)
    weights = (end - start for start, end in pairwise(chain((0,), ends)))
    mean = math.fsum(map(mul, ordered, weights)) / ends[-1]
    return Statistics(mean, *(_percentile(ordered, ends, share) for share in _SHARES))


def _percentile(ordered: Sequence[float], ends: Sequence[int], share: float) -> float:
    """The percentile at `share`, interpolated linearly as in NumPy and the engines' benchmarks.

    `ends`: the number of values up to each of `ordered`.
    """
    place = share * (ends[-1] - 1)
    low = int(place)
    lower, upper = (ordered[bisect_right(ends, min(rank, ends[-1] - 1))] for rank in (low, low + 1))
    return lower + (place - low) * (upper - lower)
