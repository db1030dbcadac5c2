"""The time of a step from its columns, over plain lists: used by the simulation at every event.

Written, as `state.py`, in the subset of Python that numba compiles.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from .step_table import StepTable


def position(grid: Sequence[float], x: float) -> float:
    """Where `x` lies on `grid`, as index plus fraction: 0 below it, more than the last index beyond it."""
    if x <= grid[0]:
        return 0.0
    low = min(bisect(grid, x), len(grid) - 1) - 1
    return low + (x - grid[low]) / (grid[low + 1] - grid[low])


def time_at(column: Sequence[float], place: float) -> float:
    """The column interpolated at `place`; beyond the end it continues along the last slope unless that falls."""
    last = len(column) - 1
    if place >= last:
        return column[last] + (place - last) * max(0.0, column[last] - column[last - 1])
    low = int(place)
    return column[low] + (place - low) * (column[low + 1] - column[low])


def rate_at(column: Sequence[float], place: float) -> float:
    """As `time_at`, but the last value holds beyond the end; 0 for a column that the table lacks."""
    return time_at(column, min(place, len(column) - 1.0)) if len(column) > 0 else 0.0


def beside_or(column: Sequence[float], alone: Sequence[float]) -> Sequence[float]:
    """The column for steps with chunks of prompts, if the table has it, else that for steps without."""
    return column if len(column) > 0 else alone


def window_pairs(prefix: int, tokens: int, window: int) -> float:
    """Pairs of a chunk's token and one of the last `window` tokens that it sees, itself included."""
    rising = max(0, min(tokens, window - prefix))
    return rising * prefix + 0.5 * rising * (rising + 1.0) + (tokens - rising) * float(window)


def pass_time(step: StepTable, decoding: int, rows: int, tokens: int, sequences: int) -> float:
    """Seconds of one step without attention over cached tokens and over chunks.

    `decoding` of its `sequences` decode, `rows` yield a token, and `tokens` go through the model.
    """
    seconds = tokens_time(step, tokens) + step.host_per_sequence_s * sequences
    return seconds + decode_time(step, decoding) + head_time(step, rows)


def hidden_time(step: StepTable, sequences: int) -> float:
    """Seconds that the host takes for a batch of `sequences` while the GPU works."""
    return step.hidden_fixed_s + step.hidden_per_sequence_s * sequences if sequences > 0 else 0.0


def tokens_time(step: StepTable, tokens: int) -> float:
    """Seconds of a pass that depend only on its tokens, or are constant."""
    return time_at(step.linear_s, position(step.tokens, tokens)) + step.host_fixed_s


def decode_time(step: StepTable, sequences: int) -> float:
    """Seconds of attention for `sequences` that decode, without what each cached token adds."""
    return time_at(step.decode_base_s, position(step.sequences, sequences)) if sequences > 0 else 0.0


def head_time(step: StepTable, rows: int) -> float:
    """Seconds of the head for `rows` that yield a token."""
    return time_at(step.head_s, position(step.sequences, rows)) if rows > 0 else 0.0


def met_time(step: StepTable, tokens: int) -> float:
    """Seconds of a step in which all groups work together on their `tokens` in total."""
    return time_at(step.met_s, position(step.met_tokens, tokens)) if len(step.met_s) > 0 else 0.0


def chunk_time(step: StepTable, prefix: int, tokens: int) -> float:
    """Seconds of the attention of one prompt chunk that follows `prefix` cached tokens."""
    place = position(step.chunk_tokens, tokens)
    pairs = float(tokens) * prefix + 0.5 * tokens * (tokens + 1.0)
    fixed, rates = step.prefill_fixed_s, step.prefill_per_pair_s
    if place < len(fixed) - 1:
        # `time_at` and `rate_at` inlined: their calls would take half the time of a simulation.
        low = int(place)
        part = place - low
        rate = rates[low] + part * (rates[low + 1] - rates[low])
        seconds = fixed[low] + part * (fixed[low + 1] - fixed[low]) + rate * pairs
    else:
        seconds = time_at(fixed, place) + rates[len(rates) - 1] * pairs
    if step.window_tokens > 0:
        seconds += rate_at(step.prefill_per_window_pair_s, place) * window_pairs(prefix, tokens, step.window_tokens)
    return seconds
