"""Whose turn it is in the simulation, and when: written, as `core.py`, in what `numba.njit` compiles."""

from __future__ import annotations

import math

# Later than any event; a heap that holds it is never empty.
NO_EVENT = 1 << 62


def steps_to_reach(duration_s: float, first_s: float, growth_s: float) -> int:
    """How many steps, each `growth_s` longer than the one before, last at least `duration_s`; 1 or more.

    So many that floats no longer tell one from the next may be a little off.
    """
    half = first_s - 0.5 * growth_s
    closed_form = 2.0 * duration_s / (half + math.sqrt(half * half + 2.0 * growth_s * duration_s))
    steps = max(1, math.ceil(min(closed_form, float(NO_EVENT))))
    # The closed form can be one off where it falls between two floats.
    if steps > 1 and (steps - 1) * (first_s + 0.5 * growth_s * (steps - 2)) >= duration_s:
        steps -= 1
    if steps * (first_s + 0.5 * growth_s * (steps - 1)) < duration_s:
        steps += 1
    return steps


def next_in_line(put_back: list[int], line: list[int], admitted: int) -> int:
    """The request to let in next: the last one put back, else the first of `line` that waits; -1 where none does."""
    if len(put_back) > 0:
        return put_back[-1]
    return line[admitted] if admitted < len(line) else -1


def least(counts: list[int]) -> int:
    """Where the first of the lowest counts stands."""
    found = 0
    for place in range(1, len(counts)):
        if counts[place] < counts[found]:
            found = place
    return found


def fewest_first(turn: list[int], running: list[int], batches: int) -> None:
    """Put the batches of each group in the order of what they run, the fewest first; ties stay as they are."""
    for place in range(1, len(turn)):
        own = turn[place]
        start = own // batches * batches
        while place > start and running[turn[place - 1]] > running[own]:
            turn[place] = turn[place - 1]
            place -= 1
        turn[place] = own


def youngest(entered: list[int], due: list[int], tick: int) -> int:
    """Take the last of `entered` that is not done by `tick`, and drop those behind it, which are; one is to run."""
    while due[entered[-1]] <= tick:
        entered.pop()
    return entered.pop()


def take_out(events: list[int], event: int) -> None:
    """Remove `event` where it is to come; what is left has to be made a heap again."""
    if event in events:
        events.remove(event)
