"""Pseudo-random numbers that are the same everywhere: lengths of requests, gaps between arrivals, users' pauses.

`random.Random(seed).random()` is promised to give the same numbers in every version of Python. One stream for each
purpose, so that a change of one draw never shifts another. Not for secrets.
"""

from __future__ import annotations

import math

from ...kept import Kept
from .load import TAIL, Lengths

# Gaps that are the sum of this many vary by an eighth: more would change nothing but the work.
_EVEN = 64
# The scale of an exponential distribution cut off at c = `TAIL` times its mean, in means: s - c / (e^(c/s) - 1) = 1.
_SCALE = 1.0414
INPUT_STREAM, OUTPUT_STREAM, ARRIVAL_STREAM, PAUSE_STREAM = 1, 2, 3, 4


_DRAWN = Kept[tuple[int, int], tuple[float, ...]](4 << 20, lambda _, numbers: 32 * len(numbers))


def uniforms(stream: int, count: int) -> tuple[float, ...]:
    """`count` numbers in [0, 1); the first ones of a stream do not depend on how many are asked for."""
    kept = _DRAWN.get((stream, count))
    if kept is not None:
        return kept
    from random import Random

    draw = Random(stream).random
    return _DRAWN.keep((stream, count), tuple(draw() for _ in range(count)))


def drawn_lengths(nominal: int, spread: float, stream: int, count: int) -> list[int]:
    """Token counts, uniform in [(1 - spread) x nominal, nominal], at least 1; all `nominal` where nothing spreads."""
    least = max(1, math.ceil((1.0 - spread) * nominal))
    if least >= nominal:
        return [nominal] * count
    width = nominal - least + 1
    return [least + int(u * width) for u in uniforms(stream, count)]


def tailed_lengths(nominal: int, stream: int, count: int) -> list[int]:
    """Token counts of conversations: exponential with a mean of nominal / `TAIL`, from 1 to `nominal`."""
    scale = _SCALE * nominal / TAIL
    reach = -math.expm1(-nominal / scale)
    return [max(1, min(nominal, round(-scale * math.log1p(-u * reach)))) for u in uniforms(stream, count)]


def request_lengths(lengths: Lengths, count: int) -> tuple[list[int], list[int]]:
    """Input and output tokens of `count` requests."""
    if lengths.tailed:
        return (
            tailed_lengths(lengths.input_tokens, INPUT_STREAM, count),
            tailed_lengths(lengths.output_tokens, OUTPUT_STREAM, count),
        )
    return (
        drawn_lengths(lengths.input_tokens, lengths.spread, INPUT_STREAM, count),
        drawn_lengths(lengths.output_tokens, lengths.spread, OUTPUT_STREAM, count),
    )


def poisson_arrivals(rate_per_s: float, count: int, one_of: int = 1) -> list[float]:
    """Times in s of `count` arrivals at `rate_per_s`: every `one_of`-th of a Poisson process of so much more."""
    skipped = min(one_of, _EVEN)
    scale = -1.0 / (rate_per_s * skipped)
    now = 0.0
    times: list[float] = []
    draws = uniforms(ARRIVAL_STREAM, count * skipped)
    for index in range(0, count * skipped, skipped):
        for u in draws[index : index + skipped]:
            now += scale * math.log1p(-u)
        times.append(now)
    return times
