"""Inputs and outputs of a simulation run, in types that numba accepts."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

MIXED, PREFILL_FIRST, WHOLE = 0, 1, 2


class Rules(NamedTuple):
    """`Policy` as numbers; `most_events` bounds the work, `group_wait` is 0 if prompts do not wait for other groups."""

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
    """By request: tokens, cached prompt tokens, the pause in s after it; `arrivals`: times in s of the first ones.

    If there are fewer arrivals than requests, each later one comes after the end of a request and its pause.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    cached: Sequence[int]
    pauses: Sequence[float]
    arrivals: Sequence[float]


class Seen(NamedTuple):
    """Filled in by `run`, by request: when it arrived, showed its first token, and was done (s); its place in line.

    `ahead`: requests of its group that waited for admission when it came.
    """

    arrived: MutableSequence[float]
    first: MutableSequence[float]
    done: MutableSequence[float]
    ahead: MutableSequence[float]

    @classmethod
    def blank(cls, count: int) -> Seen:
        """Zeros for `count` requests, to be filled in."""
        return cls(*([0.0] * count for _ in cls._fields))


class Totals(NamedTuple):
    """Requests done and preempted; seconds: end of the run, with prompts in the step, sum over decoding requests."""

    finished: int
    end_s: float
    prefill_s: float
    decoding_s: float
    preemptions: int
