"""The columns of a serving simulation, taken from the timed programs of one replica's phases.

A step of the simulator costs what the passes of `schedule.py` cost: the same operations, timed by the same clock, split
into what depends on tokens, on sequences and on cached tokens.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate

from msgspec import Struct

from ..calibration.engine_profile import EngineConstants, accelerator_class
from ..calibration.forms.elementary import Number, is_plain
from ..catalog.attention.spec import AttentionSpec, causal_pairs
from .operation import Operation, TokenLoad, is_core, seconds_on_path
from .overlap_halves import is_two_batch
from .schedule import PhaseTimer, pass_seconds, passes_of_host
from .serving.step_table import StepTable
from .setting import Setting
from .stage_shape import Piece
from .timing import StageTimer

_TOKENS = (
    1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
    12288, 16384, 24576, 32768,
)  # fmt: skip
_SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
# From this many loads on an array is quicker than one by one, and worth loading NumPy, which takes as long as hundreds.
_WORTH_AN_ARRAY, _WORTH_LOADING = 4, 200
_CHUNKS = (16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


class Range(Struct, frozen=True):
    """How far the columns must reach: tokens and sequences of a step, tokens of a chunk, a prompt and a request."""

    tokens: int
    sequences: int
    chunk: int
    prompt: int
    request: int


def _grid(points: Sequence[int], most: int) -> list[int]:
    """The points up to the first that is at least `most`; at least two."""
    below = [point for point in points if point < most]
    beyond = points[len(below) : len(below) + 1]
    return (below + list(beyond)) if len(below) + len(beyond) >= 2 else list(points[:2])


def _is_joint(operation: Operation) -> bool:
    """Whether attention groups run it together: the routed experts.

    Not the exchange with them, which takes as long as the group with the most tokens needs for its tokens.
    """
    return operation.owner == "moe" and operation.op == "Expert"


def _seconds_of(piece: Piece, is_meant: Callable[[Operation], bool]) -> Number:
    """Seconds on the path of the operations for which `is_meant`."""
    if is_plain(piece.path.seconds):
        return sum(operation.seconds for operation in piece.path.operations if is_meant(operation))
    return seconds_on_path(piece.operations, is_meant)


class StepTimes:
    """Times the passes of one batch through one replica's phase as columns; the stages of a pipeline add up."""

    def __init__(self, setting: Setting, timer: PhaseTimer) -> None:
        self.setting, self.timer = setting, timer
        self.stages = timer.stages
        self.groups = timer.phase.attention_groups
        self.window = _window(setting)
        likes = _like_stages(timer.stages)
        self._likes = tuple(likes.values())
        # Equal for phases of one setting with equal times.
        self.likeness = self.groups, tuple((key, like.count) for key, like in likes.items())

    def linear(self, tokens: Sequence[int]) -> list[float]:
        """Seconds without attention cores and head, for each count of `tokens` per attention group."""
        return [whole for whole, _ in self._passes(tokens, self.groups)]

    def linear_alone(self, tokens: Sequence[int]) -> list[float]:
        """`linear` without what the groups run together."""
        return [whole - met for whole, met in self._passes(tokens, self.groups)]

    def met(self, tokens: Sequence[int]) -> list[float]:
        """Seconds of what the groups run together, for each total of `tokens`, spread evenly over the groups."""
        groups = [min(self.groups, count) for count in tokens]
        shares = [math.ceil(count / among) for count, among in zip(tokens, groups, strict=True)]
        few = sum(among < self.groups for among in groups)
        passes = [*self._passes(shares[:few], groups[:few]), *self._passes(shares[few:], self.groups)]
        return [met for _, met in passes]

    def _passes(self, tokens: Sequence[int], groups: Sequence[int] | int) -> list[tuple[float, float]]:
        """`_pass` for each count of `tokens` (one per sequence) with `groups` at work, timed at once as an array."""
        each = [groups] * len(tokens) if isinstance(groups, int) else groups
        # Not as an array under two-batch overlap, where waits between the halves differ from load to load.
        worth = _WORTH_AN_ARRAY if "numpy" in sys.modules else _WORTH_LOADING
        if len(tokens) < worth or is_two_batch(self.setting):
            passes = (self._pass(TokenLoad(count, 1, 0, among)) for count, among in zip(tokens, each, strict=True))
            return [(float(whole), float(met)) for whole, met in passes]
        import numpy as np

        sequences = np.array(tokens, dtype=np.float64)
        among = groups if isinstance(groups, int) else np.array(groups, dtype=np.float64)
        whole, met = self._pass(TokenLoad(sequences, 1, 0, among))
        return list(zip((whole + 0.0 * sequences).tolist(), (met + 0.0 * sequences).tolist(), strict=True))

    def _pass(self, load: TokenLoad) -> tuple[Number, Number]:
        """Seconds of a batch through the stages without cores and head, and of what groups run together in it."""
        seconds: Number = 0.0
        met: Number = 0.0
        for like in self._likes:
            for piece in like.stage.pass_pieces(load, like.following, with_head=False):
                seconds = seconds + (piece.seconds - _seconds_of(piece, is_core) * piece.count) * like.count
                if self.groups > 1:
                    met = met + _seconds_of(piece, _is_joint) * piece.count * like.count
        return seconds, met

    def head(self, rows: int) -> float:
        """Seconds of final norm, logits and their gathering for `rows`."""
        last = self.stages[-1]
        return float(last.head(TokenLoad(rows, 1, 0, self.groups)).seconds) if last.stage.head_devices else 0.0

    def slowest_share(self, sequences: int) -> float:
        """Share of the slowest stage in the time of a pass in which `sequences` of each group decode."""
        if len(self.stages) == 1:
            return 1.0
        stages = pass_seconds(self.timer, TokenLoad(sequences, 1, 0, self.groups))
        return float(max(stages) / sum(stages))

    def attention(self, load: TokenLoad, *, windowed: bool) -> float:
        """Seconds of the attention cores of all layers with the model's window, or of all others."""
        return sum(
            float(like.stage.core_seconds(kind.spec.attention, load)) * (kind.count * like.count)
            for like in self._likes
            for kind in like.stage.kinds
            if kind.spec.attention is not None and self._is_windowed(kind.spec.attention) is windowed
        )

    def _is_windowed(self, spec: AttentionSpec) -> bool:
        return self.window > 0 and spec.window_tokens == self.window

    def decode_columns(self, grid: Sequence[int], reach: Range, *, beside_prompts: bool) -> tuple[list[float], ...]:
        """Attention of a decode step: fixed seconds, and seconds per cached token without and with a window."""
        near = max(1, reach.prompt // 2)
        far = max(near + 64, reach.request)
        fixed, rates = self._read_columns(grid, (near, far), windowed=False, beside_prompts=beside_prompts)
        if not self.window:
            return fixed, rates, []
        most = max(1, min(self.window, far))
        inside = max(1, most // 2), max(most // 2 + 1, most)
        more, window_rates = self._read_columns(grid, inside, windowed=True, beside_prompts=beside_prompts)
        return [base + extra for base, extra in zip(fixed, more, strict=True)], rates, window_rates

    def _read_columns(
        self, grid: Sequence[int], contexts: tuple[int, int], *, windowed: bool, beside_prompts: bool
    ) -> tuple[list[float], list[float]]:
        """Fixed seconds and seconds per cached token of a decode step, from two context lengths in tokens."""
        (near, far), fixed, rates = contexts, list[float](), list[float]()
        for count in grid:
            low, high = (
                self.attention(TokenLoad(count, 1, context, self.groups, beside_prompts), windowed=windowed)
                for context in contexts
            )
            rate = max(0.0, (high - low) / (count * (far - near)))
            fixed.append(max(0.0, low - rate * count * near))
            rates.append(rate)
        return fixed, rates

    def chunk(self, tokens: int, prefix: int, *, windowed: bool) -> float:
        """Seconds of the attention cores of one chunk of a prompt behind `prefix` tokens."""
        return self.attention(TokenLoad(1, tokens, prefix, self.groups), windowed=windowed)

    def prefill_columns(self, grid: Sequence[int], prefix: int) -> tuple[list[float], ...]:
        """Fixed seconds and seconds per pair of a chunk, from chunks without a prefix and behind `prefix` tokens."""
        fixed, rates = list[float](), list[float]()
        for count in grid:
            whole = self.chunk(count, 0, windowed=False)
            pairs = causal_pairs(count, 0)
            rate = max(0.0, (self.chunk(count, prefix, windowed=False) - whole) / (count * prefix))
            rate = min(rate, whole / pairs)
            fixed.append(max(0.0, whole - rate * pairs))
            rates.append(rate)
        return fixed, rates


_Column = Callable[[StepTimes, Sequence[int]], list[float]]


class _LikeStages(Struct, frozen=True):
    """A stage, the stage that it sends to, and how many stages of the pipeline take as long."""

    stage: StageTimer
    following: StageTimer | None
    count: int


def _like_stages(stages: Sequence[StageTimer]) -> dict[object, _LikeStages]:
    """The stages of a pipeline, with like layers and links as one entry."""
    by_key: dict[object, _LikeStages] = {}
    for stage, following in zip(stages, (*stages[1:], None), strict=True):
        key = stage.likeness(following)
        known = by_key.get(key)
        by_key[key] = _LikeStages(stage, following, 1 if known is None else known.count + 1)
    return by_key


def _window(setting: Setting) -> int:
    """The window in tokens of most layers that have one; 0 if none has."""
    counts: dict[int, int] = {}
    for layer in setting.architecture.layers:
        attention: AttentionSpec | None = layer.attention
        if attention is not None and attention.window_tokens is not None:
            counts[attention.window_tokens] = counts.get(attention.window_tokens, 0) + 1
    return max(counts, key=lambda window: (counts[window], window)) if counts else 0


def step_table(
    setting: Setting, prefill: PhaseTimer, decode: PhaseTimer, reach: Range, *, groups: int = 1
) -> StepTable:
    """The table of a replica that prefills with `prefill` and decodes with `decode` (often the same degrees).

    If `groups` attention groups are simulated in step, what they run together has its own column; with `groups` 1 one
    group stands for all, each with as much to do.
    """
    steps, prompts = StepTimes(setting, decode), StepTimes(setting, prefill)
    if prompts.likeness == steps.likeness:
        prompts = steps
    tokens = _grid(_TOKENS, reach.tokens)
    sequences = _grid(_SEQUENCES, reach.sequences)
    chunks = _grid(_CHUNKS, reach.chunk)

    def column(read: _Column, counts: Sequence[int], groups: int) -> list[float]:
        if prompts is steps:
            return read(steps, counts)
        # Steps with more tokens than sequences carry prompts and run as prefill does.
        small = sum(count <= reach.sequences * groups for count in counts)
        return [*read(steps, counts[:small]), *read(prompts, counts[small:])]

    met_tokens: list[int] = []
    if groups > 1:
        met_tokens = [*(count for count in _TOKENS if count < groups), *(count * groups for count in tokens)]
    linear = column(StepTimes.linear_alone if groups > 1 else StepTimes.linear, tokens, 1)
    base, per_token, window_rates = steps.decode_columns(sequences, reach, beside_prompts=False)
    beside: tuple[list[float], ...] = ([], [], [])
    engine, accelerator = setting.engine, setting.hardware.accelerator
    if engine.facts.decodes_in_prompt_kernel(engine.entry.generation, accelerator_class(accelerator)):
        beside = steps.decode_columns(sequences, reach, beside_prompts=True)
    fixed, per_pair = prompts.prefill_columns(chunks, max(256, reach.prompt))
    window = steps.window
    window_pairs: list[float] = []
    if window:
        # In windowed layers a prefix adds at most the window, so a chunk's cost depends on its length alone.
        fixed = [seconds + prompts.chunk(count, 0, windowed=True) for seconds, count in zip(fixed, chunks, strict=True)]
        window_pairs = [0.0] * len(chunks)
    constants = setting.engine.entry.constants
    return StepTable(
        tokens=tokens,
        linear_s=_rising(linear),
        sequences=sequences,
        decode_base_s=_rising(base),
        decode_per_token_s=per_token,
        head_s=_rising([steps.head(count) for count in sequences]),
        chunk_tokens=chunks,
        prefill_fixed_s=_rising(fixed),
        prefill_per_pair_s=per_pair,
        **host_columns(constants, passes_of_host(setting, len(steps.stages)), hides_host=setting.hides_host),
        window_tokens=window,
        decode_per_window_token_s=window_rates,
        beside_base_s=_rising(beside[0]),
        beside_per_token_s=beside[1],
        beside_per_window_token_s=beside[2],
        prefill_per_window_pair_s=window_pairs,
        met_tokens=met_tokens,
        met_s=_rising(column(StepTimes.met, met_tokens, groups)),
        slowest_share=steps.slowest_share(sequences[-1]),
    )


def host_columns(constants: EngineConstants, times: int, *, hides_host: bool) -> dict[str, float]:
    """The host columns of a table whose passes wait for the host in `times` of the stages."""
    kind = "hidden" if hides_host else "host"
    return {
        f"{kind}_fixed_s": times * constants.host_step_ms * 1e-3,
        f"{kind}_per_sequence_s": times * constants.host_sequence_us * 1e-6,
        "host_per_prefill_s": times * constants.host_prefill_ms * 1e-3,
    }


def _rising(times: list[float]) -> list[float]:
    """`times` with small dips levelled, so that a larger step is never faster."""
    return list(accumulate(times, max))
