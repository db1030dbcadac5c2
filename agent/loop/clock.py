"""When the time of a run is over: by the clock, or in a replay where it was over in the recording.

Where it is found to be over is written down as a step: by requests made and calls answered, never in seconds. So a
replay, which takes other times, makes the same calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ..model.deadline import Deadline


class Log(Protocol):
    """Where a run writes down each step as it is done."""

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """One step: its kind and its data, JSON values."""
        ...


class Stop(BaseModel):
    """Where the time was over: after so many requests, and calls of the last answer; `None`: after all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: int = Field(ge=0)
    calls: int | None = Field(default=None, ge=0)

    def is_reached(self, requests: int, calls: int | None) -> bool:
        """Whether a run that is there is at it, or further."""
        return (requests, _order(calls)) >= (self.requests, _order(self.calls))


@dataclass
class Clock:
    """The time of one run, which writes down once that it is over."""

    deadline: Deadline
    stop: Stop | None
    log: Log
    _is_over: bool = field(default=False, repr=False)

    def is_over(self, requests: int, calls: int | None = None) -> bool:
        """Whether no step may begin any more, after so many requests and calls."""
        here = self.deadline.is_over() if self.stop is None else self.stop.is_reached(requests, calls)
        if here and not self._is_over:
            self._is_over = True
            self.log.add("stopped", Stop(requests=requests, calls=calls).model_dump(mode="json"))
        return here


def _order(calls: int | None) -> float:
    return math.inf if calls is None else calls
