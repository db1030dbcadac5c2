"""The time of a step from its columns, over plain lists: what the simulation asks for at every event.

Written, as `state.py`, in the subset of Python that numba compiles.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import NamedTuple

from .step_table import StepTable


class StepColumns(NamedTuple):
    """`StepTable` with the columns filled in that may be left out: grids and seconds."""

    tokens: Sequence[float]
    linear: Sequence[float]
    sequences: Sequence[float]
    decode_base: Sequence[float]
    decode_per_token: Sequence[float]
    decode_per_window_token: Sequence[float]
    beside_base: Sequence[float]
    beside_per_token: Sequence[float]
    beside_per_window_token: Sequence[float]
    head: Sequence[float]
    chunks: Sequence[float]
    prefill_fixed: Sequence[float]
    prefill_per_pair: Sequence[float]
    prefill_per_window_pair: Sequence[float]
    window: int
    host_fixed: float
    host_per_sequence: float
    host_per_prefill: float
    met_tokens: Sequence[float]
    met: Sequence[float]
    slowest_share: float


def columns_of(table: StepTable) -> StepColumns:
    """The table as lists of numbers."""
    per_window_token = _or(table.decode_per_window_token_s, [0.0] * len(table.sequences))
    return StepColumns(
        tokens=table.tokens,
        linear=table.linear_s,
        sequences=table.sequences,
        decode_base=table.decode_base_s,
        decode_per_token=table.decode_per_token_s,
        decode_per_window_token=per_window_token,
        beside_base=_or(table.beside_base_s, table.decode_base_s),
        beside_per_token=_or(table.beside_per_token_s, table.decode_per_token_s),
        beside_per_window_token=_or(table.beside_per_window_token_s, per_window_token),
        head=table.head_s,
        chunks=table.chunk_tokens,
        prefill_fixed=table.prefill_fixed_s,
        prefill_per_pair=table.prefill_per_pair_s,
        prefill_per_window_pair=_or(table.prefill_per_window_pair_s, [0.0] * len(table.chunk_tokens)),
        window=table.window_tokens,
        host_fixed=table.host_fixed_s,
        host_per_sequence=table.host_per_sequence_s,
        host_per_prefill=table.host_per_prefill_s,
        met_tokens=table.met_tokens,
        met=table.met_s,
        slowest_share=table.slowest_share,
    )


def _or(column: Sequence[float], other: Sequence[float]) -> Sequence[float]:
    return column if len(column) > 0 else other


def position(grid: Sequence[float], x: float) -> float:
    """Where `x` lies on `grid`, as index plus fraction: 0 below it, more than the last index beyond it."""
    if x <= grid[0]:
        return 0.0
    low = min(bisect(grid, x), len(grid) - 1) - 1
    return low + (x - grid[low]) / (grid[low + 1] - grid[low])


def time_at(column: Sequence[float], place: float) -> float:
    """The column on the straight line between its points, beyond the end along the last one unless that falls."""
    last = len(column) - 1
    if place >= last:
        return column[last] + (place - last) * max(0.0, column[last] - column[last - 1])
    low = int(place)
    return column[low] + (place - low) * (column[low + 1] - column[low])


def rate_at(column: Sequence[float], place: float) -> float:
    """As `time_at`, but the last value holds beyond the end."""
    return time_at(column, min(place, len(column) - 1.0))


def window_pairs(prefix: int, tokens: int, window: int) -> float:
    """Pairs of a chunk's tokens and those of the last `window` tokens that each sees, itself included."""
    rising = max(0, min(tokens, window - prefix))
    return rising * prefix + 0.5 * rising * (rising + 1.0) + (tokens - rising) * float(window)


def pass_time(step: StepColumns, decoding: int, rows: int, tokens: int, sequences: int) -> float:
    """Seconds of one step but for its attention over cached tokens and over chunks.

    `decoding` of its `sequences` decode, `rows` yield a token, and `tokens` go through the model.
    """
    seconds = tokens_time(step, tokens) + step.host_per_sequence * sequences
    return seconds + decode_time(step, decoding) + head_time(step, rows)


def tokens_time(step: StepColumns, tokens: int) -> float:
    """Seconds of a pass that only count its tokens, or nothing at all."""
    return time_at(step.linear, position(step.tokens, tokens)) + step.host_fixed


def decode_time(step: StepColumns, sequences: int) -> float:
    """Seconds of the attention of `sequences` that decode, but for what each cached token adds."""
    return time_at(step.decode_base, position(step.sequences, sequences)) if sequences > 0 else 0.0


def head_time(step: StepColumns, rows: int) -> float:
    """Seconds of the head for `rows` that yield a token."""
    return time_at(step.head, position(step.sequences, rows)) if rows > 0 else 0.0


def met_time(step: StepColumns, tokens: int) -> float:
    """Seconds of a step in which groups work together on the `tokens` of all of them."""
    return time_at(step.met, position(step.met_tokens, tokens)) if len(step.met) > 0 else 0.0


def chunk_time(step: StepColumns, prefix: int, tokens: int) -> float:
    """Seconds of the attention of one prompt chunk that follows `prefix` cached tokens."""
    place = position(step.chunks, tokens)
    pairs = float(tokens) * prefix + 0.5 * tokens * (tokens + 1.0)
    fixed, rates = step.prefill_fixed, step.prefill_per_pair
    if place < len(fixed) - 1:
        # `time_at` and `rate_at` written out: half of what a simulation takes would be their calls.
        low = int(place)
        part = place - low
        rate = rates[low] + part * (rates[low + 1] - rates[low])
        seconds = fixed[low] + part * (fixed[low + 1] - fixed[low]) + rate * pairs
    else:
        seconds = time_at(fixed, place) + rates[len(rates) - 1] * pairs
    if step.window > 0:
        seconds += rate_at(step.prefill_per_window_pair, place) * window_pairs(prefix, tokens, step.window)
    return seconds
