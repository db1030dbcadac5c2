"""Pseudo-random numbers that are the same everywhere: lengths of requests, gaps between arrivals, users' pauses.

`random.Random(seed).random()` gives the same numbers in every version of Python. Each purpose has its own stream, so
that a change of one draw never shifts another. Not for secrets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...caches import SharedCache
from ...plan.quantiles import Spread
from .load import Lengths

# Gaps that are the sum of this many vary by an eighth; more would only cost time.
_EVEN = 64
INPUT_STREAM, OUTPUT_STREAM, ARRIVAL_STREAM, PAUSE_STREAM, THINK_STREAM, BURST_STREAM = 1, 2, 3, 4, 5, 6
EARLIER_STREAM, SYSTEM_STREAM = 7, 8


_DRAWN = SharedCache[tuple[int, int], tuple[float, ...]](4 << 20, lambda _, numbers: 32 * len(numbers))


def uniforms(stream: int, count: int) -> tuple[float, ...]:
    """`count` numbers in [0, 1); a longer request of the same stream begins with the same numbers."""
    cached = _DRAWN.get((stream, count))
    if cached is not None:
        return cached
    from random import Random

    draw = Random(stream).random
    return _DRAWN.keep((stream, count), tuple(draw() for _ in range(count)))


def drawn_lengths(nominal: int, spread: float, stream: int, count: int) -> list[int]:
    """Token counts, uniform in [(1 - spread) x nominal, nominal], at least 1; all `nominal` without a spread."""
    least = max(1, math.ceil((1.0 - spread) * nominal))
    if least >= nominal:
        return [nominal] * count
    width = nominal - least + 1
    return [least + int(u * width) for u in uniforms(stream, count)]


def request_lengths(lengths: Lengths, count: int) -> tuple[Sequence[int], Sequence[int]]:
    """Input and output tokens of `count` requests."""
    if lengths.stated is not None:
        return _stated_lengths(lengths.stated, lengths.most_tokens, count)
    return (
        drawn_lengths(lengths.input_tokens, lengths.spread, INPUT_STREAM, count),
        drawn_lengths(lengths.output_tokens, lengths.spread, OUTPUT_STREAM, count),
    )


# Tokens of prompts and of answers, cached by spread, most tokens of a request, and number of requests.
_Drawn = tuple[tuple[int, ...], tuple[int, ...]]
_STATED = SharedCache[tuple[Spread, int, int], _Drawn](4 << 20, lambda _, drawn: 64 * len(drawn[0]))


def _stated_lengths(spread: Spread, most: int, count: int) -> _Drawn:
    """Prompt and answer tokens of requests, each cut at the end to at most `most` tokens in all."""
    key = spread, most, count
    cached = _STATED.get(key)
    if cached is not None:
        return cached
    inputs: list[int] = []
    outputs: list[int] = []
    for first, second in zip(uniforms(INPUT_STREAM, count), uniforms(OUTPUT_STREAM, count), strict=True):
        tokens, more = spread.drawn(first, second)
        inputs.append(max(1, min(tokens, most - 1)))
        outputs.append(max(1, min(more, most - inputs[-1])))
    return _STATED.keep(key, (tuple(inputs), tuple(outputs)))


def thinking(mean_s: float, count: int) -> list[float]:
    """How long users think before each of `count` requests, in s: exponentially distributed."""
    return [-mean_s * math.log1p(-u) for u in uniforms(THINK_STREAM, count)]


def arrivals_at(rate_per_s: float, count: int, one_of: int = 1, burstiness: float = 1.0) -> list[float]:
    """Times in s of `count` arrivals at `rate_per_s`: every `one_of`-th of a process `one_of` times as fast.

    The gaps of that process have a gamma distribution of shape `burstiness`, so those between every n-th have n times
    the shape: a sum of exponential gaps for its whole part, and a gamma gap for the remainder.
    """
    shape = min(one_of * burstiness, float(_EVEN))
    skipped = int(shape)
    scale = -1.0 / (rate_per_s * shape)
    now = 0.0
    times: list[float] = []
    partial_gaps = _small_gammas(shape - skipped, count) if shape > skipped else None
    draws = uniforms(ARRIVAL_STREAM, count * skipped)
    for index in range(count):
        for u in draws[index * skipped : (index + 1) * skipped]:
            now += scale * math.log1p(-u)
        if partial_gaps is not None:
            now -= scale * partial_gaps[index]
        times.append(now)
    return times


def _small_gammas(shape: float, count: int) -> list[float]:
    """`count` numbers of a gamma distribution with a `shape` below 1 and scale 1 (Joehnk's method)."""
    from random import Random

    draw = Random(BURST_STREAM).random
    numbers: list[float] = []
    while len(numbers) < count:
        first, second = draw() ** (1.0 / shape), draw() ** (1.0 / (1.0 - shape))
        if 0.0 < first + second <= 1.0:
            numbers.append(-math.log1p(-draw()) * first / (first + second))
    return numbers
