"""When a failed request is repeated, and after what pause: the only retries there are."""

from __future__ import annotations

import random
from collections.abc import Callable

import tenacity

from .deadline import Deadline
from .faults import FaultError

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0


def patiently(
    attempts: int, deadline: Deadline, sleep: Callable[[float], None], chance: random.Random
) -> tenacity.Retrying:
    """Calls a function at most `attempts` times while it fails for a transient reason.

    Pauses double from half a second, each shortened by up to half at random so that clients do not return together; a
    server's own pause (Retry-After) is kept. If a pause would end after `deadline`, no other try is made. The last
    `FaultError` is raised.
    """

    pauses_s: dict[int, float] = {}

    def pause_s(state: tenacity.RetryCallState) -> float:
        # Used twice, for the pause and for the decision to begin it: the random value must be the same.
        if state.attempt_number not in pauses_s:
            most_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (state.attempt_number - 1))
            asked_s = _asked_s(state)
            pauses_s[state.attempt_number] = most_s * (0.5 + 0.5 * chance.random()) if asked_s is None else asked_s
        return pauses_s[state.attempt_number]

    class WouldEndLate(tenacity.stop.stop_base):
        def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
            return pause_s(retry_state) >= deadline.left_s()

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, FaultError) and error.may_retry),
        wait=pause_s,
        stop=tenacity.stop_after_attempt(attempts) | WouldEndLate(),
        sleep=sleep,
        reraise=True,
    )


def _asked_s(state: tenacity.RetryCallState) -> float | None:
    fault = state.outcome.exception() if state.outcome is not None else None
    return fault.retry_after_s if isinstance(fault, FaultError) else None
