"""Decode steps and prompts of many pipelines at once: seconds for any number of requests, read off a phase's table.

Decode steps are timed for an array of batch sizes that all layouts of a search share, prompts for every number of them
that a pass holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..calibration.forms.elementary import Number
from ..performance.balance import is_far_above_mean
from ..performance.operation import TokenLoad
from ..performance.overlap_halves import is_two_batch
from ..performance.queueing import hold_up_others
from ..performance.schedule import microbatches, prefill_loads
from ..performance.setting import Setting
from ..performance.throughput import dealt_out, prompt_share, prompts_of_pass
from .arrays import Floats, Mask, Whole, floats, wholes
from .phase_table import PhaseTable, StageSeconds, few_groups, joined_loads, one_to
from .stage_grid import Lines

# Up to so many prompts in a pass all numbers of them are timed, so that all layouts share what was timed.
_MOST_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class Batches:
    """Sequences of a microbatch for which decode steps are timed, ascending; 1 and `together` are among them.

    `together`: prompts that come to a microbatch at the same time (`dealt_out`).
    """

    sequences: Floats
    together: int = 1

    def places(self, sequences: Whole) -> Whole:
        """Where each of `sequences` stands, or the next larger number that is there."""
        return wholes(np.searchsorted(self.sequences, sequences))


def _uneven(stages: StageSeconds) -> Mask:
    """Whether the stages of each line are uneven (rule PP008) under each load."""
    lines, own = stages.lines, stages.own
    slowest, total = np.maximum.reduceat(own, lines.starts), np.add.reduceat(own, lines.starts)
    several = lines.stages[:, None]
    return is_far_above_mean(slowest, total, several) & (several > 1)


class DecodeColumns:
    """Seconds of a decode step of a replica for any number of requests whose microbatches are in `batches`."""

    def __init__(self, setting: Setting, table: PhaseTable, lines: Lines, batches: Batches) -> None:
        self.setting, self.table, self.lines, self.batches = setting, table, lines, batches
        self.groups = table.groups
        self._most: Whole = np.array([microbatches(setting, int(stages)) for stages in lines.stages], dtype=np.int64)

    def narrowed(self, line: Whole, requests: Whole) -> DecodeColumns:
        """The same for these numbers of requests alone, where loads are timed one by one."""
        if not is_two_batch(self.setting):
            return self
        needed = np.union1d(self.batches.sequences[self._batch(line, requests)[0]], [1.0])
        return DecodeColumns(self.setting, self.table, self.lines, replace(self.batches, sequences=needed))

    def _stages(self, sequences: Floats, groups: Number) -> StageSeconds:
        load = TokenLoad(sequences, 1, self.setting.mean_decode_context, groups)
        return self.table.seconds(self.lines, load)

    @cached_property
    def _timed(self) -> tuple[Floats, Floats, Mask]:
        """Round trip, slowest stage, and whether stages are uneven, for each batch with all groups at work."""
        found, starts = self._stages(self.batches.sequences, self.groups), self.lines.starts
        return np.add.reduceat(found.whole, starts), np.maximum.reduceat(found.whole, starts), _uneven(found)

    @cached_property
    def _few(self) -> Floats:
        """The round trip with one request on each of 1, 2, … groups, fewer than there are."""
        found = joined_loads([self._stages(*load) for load in few_groups(self.groups)])
        return np.add.reduceat(found.whole, self.lines.starts)

    def _batch(self, line: Whole, requests: Whole) -> tuple[Whole, Whole]:
        """Where the sequences of a microbatch stand among the batches, and how many microbatches there are."""
        batch = -(-requests // np.minimum(self.groups, requests))
        met, microbatches = dealt_out(batch, self._most[line], self.batches.together)
        return self.batches.places(wholes(met)), wholes(microbatches)

    def is_uneven(self, line: Whole, requests: Whole) -> Mask:
        """Whether the stages of each `line` are uneven (rule PP008) with so many requests."""
        return self._timed[2][line, self._batch(line, requests)[0]]

    def step(self, line: Whole, requests: Whole) -> Floats:
        """Seconds of a step of each `line` with `requests` on the replica."""
        round_trip, slowest, _ = self._timed
        places, microbatches = self._batch(line, requests)
        seconds = np.maximum(round_trip[line, places], microbatches * slowest[line, places])
        # Fewer requests than attention groups: some groups have nothing to do.
        few = requests < self.groups
        if few.any():
            seconds[few] = self._few[line[few], requests[few] - 1]
        return seconds


def whole_requests(shares: Floats) -> Whole:
    """Requests of the fullest replica, by their mean over all."""
    return np.ceil(shares).astype(np.int64)


def prompts_together(setting: Setting, servers: Number, requests: Whole) -> Floats:
    """How many prompts a pass of one of `servers` may hold, ascending from 1; of very many only those that occur."""
    most = prompts_of_pass(setting)
    if most <= _MOST_TOGETHER:
        return one_to(most)
    return np.union1d([1], prompt_share(setting, servers, requests).together).astype(np.float64)


class PrefillColumns:
    """Seconds of prompts on a replica for any share of requests; `together` are the prompts that a pass may hold."""

    def __init__(self, setting: Setting, table: PhaseTable, lines: Lines, together: Floats) -> None:
        self.setting, self.table, self.lines = setting, table, lines
        self.groups, self._together = table.groups, together

    def _chunks(self, loads: Sequence[tuple[Floats, Number]]) -> list[StageSeconds]:
        """The passes of a prompt, chunk by chunk, with so many prompts on each of so many groups."""
        chunks = prefill_loads(self.setting, 1, 1)
        found: list[StageSeconds] = []
        for chunk in chunks:
            # Where several prompts share a pass, each is whole in it.
            parts = [replace(chunk, sequences=sequences, groups=groups) for sequences, groups in loads]
            timed = [self.table.seconds(self.lines, part, with_head=chunk is chunks[-1]) for part in parts]
            found.append(joined_loads(timed))
        return found

    @cached_property
    def _full(self) -> list[StageSeconds]:
        return self._chunks([(self._together, self.groups)])

    @cached_property
    def _of_all(self) -> tuple[Floats, Floats]:
        """Seconds from first to last stage, and of the busiest stage, with several prompts on each of all groups."""
        return self._timed(self._full)

    @cached_property
    def _of_few(self) -> tuple[Floats, Floats]:
        """The same with one prompt on 1, 2, … groups, fewer than there are."""
        return self._timed(self._chunks(few_groups(self.groups)))

    @cached_property
    def _of_one(self) -> tuple[Floats, Floats]:
        """The same with several prompts on one group, nothing on the others."""
        return self._timed(self._chunks([(self._together, 1)]))

    @cached_property
    def _uncut(self) -> Floats:
        """Seconds of a pass of several whole prompts on each of all groups."""
        chunks = prefill_loads(self.setting, 1, 1)
        whole = replace(chunks[0], new_tokens=sum(one.new_tokens for one in chunks))
        load = replace(whole, sequences=self._together, groups=self.groups)
        return np.add.reduceat(self.table.seconds(self.lines, load).whole, self.lines.starts)

    def alone(self, line: Whole, requests: Floats) -> tuple[Floats, Floats]:
        """Of the pass that a prompt is in, and of all passes, with `requests` of a replica that only prefills.

        No prompt is cut, and each stage is at a pass of its own (`serving_estimate`): prompts that come together share
        one, and come together again, for they are decoded side by side.
        """
        servers = self.groups * self.lines.stages[line]
        together = floats(prompt_share(self.setting, servers, whole_requests(requests)).together)
        one = self._uncut[line, np.searchsorted(self._together, together)]
        return one, requests / (servers * together) * one

    def _timed(self, chunks: Sequence[StageSeconds]) -> tuple[Floats, Floats]:
        starts = self.lines.starts
        busy = np.maximum.reduceat(np.sum([one.whole for one in chunks], axis=0), starts)
        if len(chunks) == 1:
            return np.add.reduceat(chunks[0].whole, starts), busy
        whole = np.stack([one.whole for one in chunks], axis=1)
        return np.array([_makespan(whole[rows]) for rows in np.split(np.arange(len(whole)), starts[1:])]), busy

    @cached_property
    def uneven(self) -> Mask:
        """Whether the stages of each line are uneven (rule PP008) for one prompt on one group."""
        if int(self.lines.stages.max()) == 1:
            return np.zeros(len(self.lines), dtype=np.bool_)
        chunks = self._full if self.groups == 1 else self._chunks([(np.ones(1), 1)])
        own = np.sum([one.own[:, :1] for one in chunks], axis=0)
        return _uneven(StageSeconds(self.lines, own, np.zeros(1)))[:, 0]

    def seconds(self, line: Whole, requests: Whole) -> tuple[Floats, Floats]:
        """Of the pass that a prompt is in, and of all prompts of a replica of each `line` with `requests` in flight."""
        share = prompt_share(self.setting, self.groups, requests)
        whole, busiest = self._of_all
        passes = np.searchsorted(self._together, floats(share.together))
        several, busy = whole[line, passes], busiest[line, passes]
        few = requests < self.groups
        if few.any():
            rows = line[few], requests[few] - 1
            several[few] = self._of_few[0][rows]
            busy[few] = self._of_few[1][rows]
        return several, several + (share.rounds - 1) * busy

    def apart(self, line: Whole, requests: Whole) -> Floats:
        """Of all prompts of the share where no two attention groups prefill at once, as far as these hold up others."""
        if not hold_up_others(self.setting, self.groups):
            return self.seconds(line, requests)[1]
        share = prompt_share(self.setting, self.groups, requests)
        whole, busiest = self._of_one
        passes = np.searchsorted(self._together, floats(share.together))
        return whole[line, passes] + (share.passes - 1) * busiest[line, passes]


def _makespan(seconds: Floats) -> Floats:
    """When the last chunk leaves the last stage (stages x chunks x loads): a cell waits for both before it."""
    finish = np.cumsum(seconds[0], axis=0)
    for stage in seconds[1:]:
        behind = np.cumsum(stage, axis=0)
        # A chunk begins when it has come here; those behind it follow on without a gap, or wait for their own coming.
        finish = behind + np.maximum.accumulate(finish - (behind - stage), axis=0)
    return finish[-1]
