"""The time of one engine step as tables, computed once per deployment so that loads can be simulated on it.

The simulator knows models, plans and accelerators only by these columns. No operator times are computed here.
Grids are token counts; columns are interpolated linearly between points.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

# The columns of seconds, without the grids that they stand over.
COLUMNS = (
    "linear_s", "met_s", "head_s", "decode_base_s", "decode_per_token_s", "decode_per_window_token_s",
    "beside_base_s", "beside_per_token_s", "beside_per_window_token_s",
    "prefill_fixed_s", "prefill_per_pair_s", "prefill_per_window_pair_s",
)  # fmt: skip
_HOST_FIELDS = ("host_fixed_s", "host_per_sequence_s", "host_per_prefill_s")


class StepTable(Struct, frozen=True):
    """Seconds of a step, by part. A pass of n decoding sequences and of prompt chunks costs

        linear(all its tokens) + head(sequences that yield a token) + host_fixed + host_per_sequence x its sequences
        + decode_base(n) + decode_per_token(n) x cached tokens [+ decode_per_window_token(n) x those inside the window]
        + for each chunk of T tokens: prefill_fixed(T) + prefill_per_pair(T) x pairs [+ the same inside the window]
        + host_per_prefill where it carries a chunk.

    Beside a chunk the `beside` columns, if given, replace those of decode.

    A host that works in parallel with the GPU takes hidden_fixed + hidden_per_sequence x its sequences for each batch
    of a group; a step lasts as long as the slower of the two.

    Such a pass goes through all stages of a pipeline, of which the slowest takes `slowest_share` of its time.

    If attention groups step together, the longest of their times counts, and `met_s` is what they do together, by
    `met_tokens` of all groups (routed experts; the exchange with them is in the time of each group).

    Pairs are those of a query token and a token that it attends to: with a prefix of p cached tokens,
    T x p + T (T + 1) / 2. Columns over `sequences` cover decode and the head, those over `chunk_tokens` one chunk's
    attention, and `linear_s` everything that only counts tokens (matmuls, experts, norms, collectives). Layers with a
    sliding window of `window_tokens` have their attention in the `window` columns; the others see the whole context.

    Beyond a grid's end times continue along their last slope unless it falls, and rates (`per_token`, `per_pair`) stay
    constant; below its start both stay constant.
    """

    tokens: Sequence[float]
    linear_s: Sequence[float]
    sequences: Sequence[float]
    decode_base_s: Sequence[float]
    decode_per_token_s: Sequence[float]
    head_s: Sequence[float]
    chunk_tokens: Sequence[float]
    prefill_fixed_s: Sequence[float]
    prefill_per_pair_s: Sequence[float]
    host_fixed_s: float = 0.0
    host_per_sequence_s: float = 0.0
    host_per_prefill_s: float = 0.0
    hidden_fixed_s: float = 0.0
    hidden_per_sequence_s: float = 0.0
    window_tokens: int = 0
    decode_per_window_token_s: Sequence[float] = ()
    prefill_per_window_pair_s: Sequence[float] = ()
    beside_base_s: Sequence[float] = ()
    beside_per_token_s: Sequence[float] = ()
    beside_per_window_token_s: Sequence[float] = ()
    met_tokens: Sequence[float] = ()
    met_s: Sequence[float] = ()
    slowest_share: float = 1.0

    def slowed(self, factor: float) -> StepTable:
        """The table of a server whose every pass takes `factor` times as long."""
        if factor == 1.0:
            return self
        columns = {name: [seconds * factor for seconds in getattr(self, name)] for name in COLUMNS}
        hosts = {name: getattr(self, name) * factor for name in _HOST_FIELDS}
        return replace(self, **columns, **hosts)
