"""What a run of the simulation is given and what it fills in, in the types that numba takes."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

MIXED, PREFILL_FIRST, WHOLE = 0, 1, 2


class Rules(NamedTuple):
    """`Policy` in numbers; `most_events` bounds the work, `group_wait` is 0 where nothing waits for other groups."""

    mode: int
    token_budget: int
    max_sequences: int
    kv_tokens: int
    reserves_output: bool
    most_events: int
    groups: int = 1
    group_wait: int = 0
    batches: int = 1


class Requests(NamedTuple):
    """Tokens of each request; those of its prompt already cached; the pause in s after it; arrivals in s of the first.

    Where there are fewer arrivals than requests, the end of a request and the pause after it bring the next one.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    cached: Sequence[int]
    pauses: Sequence[float]
    arrivals: Sequence[float]


class Seen(NamedTuple):
    """What `run` fills in, by request: when it arrived, first showed something, and was done (s); its place in line.

    `ahead` are those of its group who waited to be let in when it came.
    """

    arrived: MutableSequence[float]
    first: MutableSequence[float]
    done: MutableSequence[float]
    ahead: MutableSequence[float]

    @classmethod
    def blank(cls, count: int) -> Seen:
        """That of so many requests, to be filled in."""
        return cls(*([0.0] * count for _ in cls._fields))


class Totals(NamedTuple):
    """Requests done, and put back; seconds: end, with prompts in the step, sum over decoding requests."""

    finished: int
    end_s: float
    prefill_s: float
    decoding_s: float
    preemptions: int
