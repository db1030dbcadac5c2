"""The end of a run's time: by the clock, or in a replay where the recording ended.

The end is recorded as a step, in requests and calls instead of seconds, so that a replay, which takes other times,
makes the same calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct
from pydantic import Field

from ...tools.checkpoint import until
from ...tools.frozen import Frozen
from ..model.deadline import Deadline


class Log(Protocol):
    """Where a run records each step."""

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """One step: its kind and its data, JSON values."""
        ...


class Stop(Frozen):
    """Where the time was over: after so many requests, and calls of the last answer; `None`: after all of them.

    `is_within`: in the next call, which was begun then and stopped.
    """

    requests: int = Field(ge=0)
    calls: int | None = Field(default=None, ge=0)
    is_within: bool = False

    def is_reached(self, requests: int, calls: int | None) -> bool:
        """Whether a run at that place is at the stop, or past it."""
        here, there = (requests, _order(calls)), (self.requests, _order(self.calls))
        return here > there if self.is_within else here >= there


class Clock(Struct):
    """The time of one run, which records its end once; `cut` is the step that was stopped."""

    deadline: Deadline
    stop: Stop | None
    log: Log
    cut: str | None = None
    _is_over: bool = False

    def is_over(self, requests: int, calls: int | None = None) -> bool:
        """Whether no further step may begin, after so many requests and calls."""
        is_past = self.deadline.is_over() if self.stop is None else self.stop.is_reached(requests, calls)
        if is_past:
            self._note(Stop(requests=requests, calls=calls))
        return is_past

    @contextmanager
    def working(self, step: str, requests: int, calls: int) -> Iterator[None]:
        """A step after so many requests and calls: once the time is over it ends at its next checkpoint."""
        stop = Stop(requests=requests, calls=calls, is_within=True)
        was_stopped = self.stop == stop
        is_whole = False
        with until(self.deadline.is_over if self.stop is None else lambda: was_stopped):
            yield
            is_whole = True
        if not is_whole:
            self.cut = step
            self._note(stop)

    def _note(self, stop: Stop) -> None:
        if not self._is_over:
            self._is_over = True
            left_out = None if stop.is_within else {"is_within"}
            self.log.add("stopped", stop.model_dump(mode="json", exclude=left_out))


def _order(calls: int | None) -> float:
    return math.inf if calls is None else calls
