"""Seconds of decode steps and of prompts of many pipelines at once, for any number of requests on a replica.

Decode steps are timed for batch sizes that all layouts of a search share, prompts for every number of them that a pass
holds; what a replica takes is then looked up. A query is two arrays [E]: the pipeline, and requests on the replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import BoolArray, FloatArray, IntArray, distinct, floats, ints
from ..calibration.forms.elementary import Number
from ..performance.balance import is_far_above_mean
from ..performance.operation import TokenLoad
from ..performance.overlap_halves import is_two_batch
from ..performance.pass_loads import dealt_out, microbatches, prefill_loads, prompt_share, prompts_of_pass
from ..performance.service import hold_up_others
from ..performance.setting import Setting
from .pipelines import Pipelines
from .stage_times import StageSeconds, StageTimes

# Up to so many prompts in a pass all numbers of them are timed, so that all layouts share what was timed.
_MOST_TOGETHER = 256


class Batches(Struct, frozen=True):
    """Sequences of a microbatch for which decode steps are timed, ascending; 1 and `together` are among them.

    `together`: prompts that come to a microbatch at the same time (`dealt_out`).
    """

    sequences: FloatArray
    together: int = 1


def _is_uneven(pipelines: Pipelines, devices: FloatArray) -> BoolArray:
    """Whether the stages of each pipeline are uneven (rule PP008) under each load [P, L], by their seconds [S, L]."""
    slowest = np.maximum.reduceat(devices, pipelines.starts)
    total = np.add.reduceat(devices, pipelines.starts)
    stages = pipelines.stages[:, None]
    return is_far_above_mean(slowest, total, stages) & (stages > 1)


class DecodeTimes:
    """Seconds of a decode step of a replica for any number of requests whose microbatches are in `batches` (L)."""

    def __init__(self, setting: Setting, times: StageTimes, pipelines: Pipelines, batches: Batches) -> None:
        self._setting, self._times, self._pipelines, self._batches = setting, times, pipelines, batches
        self._groups = times.groups
        self._most: IntArray = np.array([microbatches(setting, int(stages)) for stages in pipelines.stages])

    def narrowed(self, pipeline: IntArray, requests: IntArray) -> DecodeTimes:
        """Decode times for these queries alone, where loads are timed one by one."""
        if not is_two_batch(self._setting):
            return self
        sequences = distinct(self._batches.sequences[self._microbatches(pipeline, requests)[0]], [1.0])
        return DecodeTimes(self._setting, self._times, self._pipelines, replace(self._batches, sequences=sequences))

    def step(self, pipeline: IntArray, requests: IntArray) -> FloatArray:
        """Seconds of a step [E]."""
        round_trip, slowest, _ = self._timed
        batch, count = self._microbatches(pipeline, requests)
        seconds = np.maximum(round_trip[pipeline, batch], count * slowest[pipeline, batch])
        # Fewer requests than attention groups: some groups have nothing to do.
        few = requests < self._groups
        if few.any():
            seconds[few] = self._few[pipeline[few], requests[few] - 1]
        return seconds

    def is_uneven(self, pipeline: IntArray, requests: IntArray) -> BoolArray:
        """Whether the stages are uneven (rule PP008) [E]."""
        return self._timed[2][pipeline, self._microbatches(pipeline, requests)[0]]

    def _microbatches(self, pipeline: IntArray, requests: IntArray) -> tuple[IntArray, IntArray]:
        """The place in the batches of a microbatch's sequences, or of the next larger number; and the microbatches."""
        sequences = -(-requests // np.minimum(self._groups, requests))
        batch, count = dealt_out(sequences, self._most[pipeline], self._batches.together)
        return np.searchsorted(self._batches.sequences, ints(batch)), ints(count)

    def _stages(self, loads: Sequence[tuple[FloatArray, Number]]) -> StageSeconds:
        """Seconds of each stage with so many sequences on each of so many groups."""
        context = self._setting.mean_decode_context
        tokens = [TokenLoad(sequences, 1, context, groups) for sequences, groups in loads]
        return self._times.seconds(self._pipelines, tokens)

    @cached_property
    def _timed(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Seconds of the round trip and of the slowest stage, and whether stages are uneven [P, L], with all groups."""
        stages, starts = self._stages([(self._batches.sequences, self._groups)]), self._pipelines.starts
        round_trip, slowest = np.add.reduceat(stages.whole, starts), np.maximum.reduceat(stages.whole, starts)
        return round_trip, slowest, _is_uneven(self._pipelines, stages.devices)

    @cached_property
    def _few(self) -> FloatArray:
        """Seconds of the round trip with one request on each of 1, 2, … groups, fewer than there are [P, groups-1]."""
        return np.add.reduceat(self._stages(_few_groups(self._groups)).whole, self._pipelines.starts)


def whole_requests(shares: FloatArray) -> IntArray:
    """Requests of the fullest replica, by their mean over all."""
    return np.ceil(shares).astype(np.int64)


class PrefillTimes:
    """Seconds of prompts on a replica for any share of requests.

    A pass of one of `servers` that prefill side by side (a number, or one for each query) holds as many prompts of its
    share of `requests` as fit: for those numbers (L) passes are timed, or of very few for all that may be.
    """

    def __init__(
        self, setting: Setting, times: StageTimes, pipelines: Pipelines, servers: Number, requests: IntArray
    ) -> None:
        self._setting, self._times, self._pipelines = setting, times, pipelines
        self._groups, self._most = times.groups, prompts_of_pass(setting, times.groups)
        self._together: FloatArray = np.arange(1, self._most + 1, dtype=np.float64)
        if self._most > _MOST_TOGETHER:
            self._together = distinct([1], prompt_share(self._most, servers, requests).together).astype(np.float64)

    def alone(self, pipeline: IntArray, requests: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Seconds [E] of the pass that a prompt is in, and of all passes, on a replica that only prefills.

        `requests` are means. No prompt is cut, and each stage is at a pass of its own (`serving_estimate`): prompts
        that come together share one, and come together again, for they are decoded side by side.
        """
        servers = self._groups * self._pipelines.stages[pipeline]
        together = floats(prompt_share(self._most, servers, whole_requests(requests)).together)
        pass_s = self._uncut[pipeline, np.searchsorted(self._together, together)]
        return pass_s, requests / (servers * together) * pass_s

    def colocated(self, pipeline: IntArray, requests: IntArray) -> tuple[FloatArray, FloatArray]:
        """Seconds [E] of the pass that a prompt is in, and of all prompts in flight, on one that decodes as well."""
        share = prompt_share(self._most, self._groups, requests)
        whole, busiest = self._of_all
        passes = np.searchsorted(self._together, floats(share.together))
        several, busy = whole[pipeline, passes], busiest[pipeline, passes]
        few = requests < self._groups
        if few.any():
            rows = pipeline[few], requests[few] - 1
            several[few] = self._of_few[0][rows]
            busy[few] = self._of_few[1][rows]
        return several, several + (share.rounds - 1) * busy

    def apart(self, pipeline: IntArray, requests: IntArray) -> FloatArray:
        """Seconds [E] of all prompts in flight where no two groups prefill at once, as far as these hold up others."""
        if not hold_up_others(self._setting, self._groups):
            return self.colocated(pipeline, requests)[1]
        share = prompt_share(self._most, self._groups, requests)
        whole, busiest = self._of_one
        passes = np.searchsorted(self._together, floats(share.together))
        return whole[pipeline, passes] + (share.passes - 1) * busiest[pipeline, passes]

    @cached_property
    def is_uneven(self) -> BoolArray:
        """Whether the stages of each pipeline are uneven (rule PP008) for one prompt on one group [P]."""
        if int(self._pipelines.stages.max()) == 1:
            return np.zeros(len(self._pipelines), dtype=np.bool_)
        chunks = self._full if self._groups == 1 else self._chunks([(np.ones(1), 1)])
        devices = np.sum([chunk.devices[:, :1] for chunk in chunks], axis=0)
        return _is_uneven(self._pipelines, devices)[:, 0]

    def _chunks(self, loads: Sequence[tuple[FloatArray, Number]]) -> list[StageSeconds]:
        """The passes of a prompt, chunk by chunk, with so many prompts on each of so many groups."""
        chunks = prefill_loads(self._setting, 1)
        passes: list[StageSeconds] = []
        for chunk in chunks:
            # Where several prompts share a pass, each is whole in it.
            tokens = [replace(chunk, sequences=sequences, groups=groups) for sequences, groups in loads]
            passes.append(self._times.seconds(self._pipelines, tokens, with_head=chunk is chunks[-1]))
        return passes

    @cached_property
    def _full(self) -> list[StageSeconds]:
        return self._chunks([(self._together, self._groups)])

    @cached_property
    def _of_all(self) -> tuple[FloatArray, FloatArray]:
        """Seconds from first to last stage, and of the busiest stage [P, L], with prompts on each of all groups."""
        return self._through(self._full)

    @cached_property
    def _of_few(self) -> tuple[FloatArray, FloatArray]:
        """As `_of_all`, with one prompt on 1, 2, … groups, fewer than there are [P, groups-1]."""
        return self._through(self._chunks(_few_groups(self._groups)))

    @cached_property
    def _of_one(self) -> tuple[FloatArray, FloatArray]:
        """As `_of_all`, with prompts on one group and nothing on the others [P, L]."""
        return self._through(self._chunks([(self._together, 1)]))

    @cached_property
    def _uncut(self) -> FloatArray:
        """Seconds of a pass of several whole prompts on each of all groups [P, L]."""
        chunks = prefill_loads(self._setting, 1)
        whole = replace(chunks[0], new_tokens=sum(chunk.new_tokens for chunk in chunks))
        load = replace(whole, sequences=self._together, groups=self._groups)
        return np.add.reduceat(self._times.seconds(self._pipelines, [load]).whole, self._pipelines.starts)

    def _through(self, chunks: Sequence[StageSeconds]) -> tuple[FloatArray, FloatArray]:
        """Seconds of all chunks from first to last stage, and of the busiest stage [P, L]."""
        starts = self._pipelines.starts
        busy = np.maximum.reduceat(np.sum([chunk.whole for chunk in chunks], axis=0), starts)
        if len(chunks) == 1:
            return np.add.reduceat(chunks[0].whole, starts), busy
        whole = np.stack([chunk.whole for chunk in chunks], axis=1)
        return np.array([_makespan(whole[rows]) for rows in np.split(np.arange(len(whole)), starts[1:])]), busy


def _makespan(seconds: FloatArray) -> FloatArray:
    """When the last chunk leaves the last stage [L], by seconds [stages, chunks, L]: it waits for both before it."""
    finish = np.cumsum(seconds[0], axis=0)
    for stage in seconds[1:]:
        behind = np.cumsum(stage, axis=0)
        # A chunk begins when it has arrived; those behind it follow without a gap, or when they have arrived
        # themselves.
        finish = behind + np.maximum.accumulate(finish - (behind - stage), axis=0)
    return finish[-1]


def _few_groups(groups: int) -> list[tuple[FloatArray, Number]]:
    """One sequence on each of fewer attention groups than there are: loads for 1 … `groups` - 1 of them."""
    loads: list[tuple[FloatArray, Number]] = [(np.ones(1), 1)]
    return loads if groups == 2 else [*loads, (np.ones(groups - 2), np.arange(2, groups))]
