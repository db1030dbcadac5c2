"""Replicas of one phase, as disaggregated strategies have them: every layout and pipeline, for every load at once.

They are timed by themselves; what they are paired with is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..arrays import FloatArray, IntArray, Table
from ..checkpoint import leaves_out
from ..performance.setting import Setting
from ..performance.transfer import stage_copy_seconds
from ..plan.document import Phase
from .candidate import SearchRequest
from .loads import at_once
from .phase_times import Batches, DecodeTimes, PrefillTimes, whole_requests
from .ranking import UNEVEN_STAGES, phase_complexity
from .replicas import Replicas, ReplicaScreen, Shares
from .space import Replica, Room, phase_kinds


class PhaseRows(Table, frozen=True):
    """R rows: so many replicas of one phase under a load (both numbers in lists), and what they take, all [R].

    `gpus` are those of one replica, `stride` and `extent` its footprint, `links` the ranks that can hand on a cache.
    `pass_s` are seconds of one prompt, or of a decode step with its wait; `prompts_s` of all prompts of a replica's
    share (0 in decode), `copy_s` those in which ranks copy what they repeat of a cache (0 in prefill).
    """

    load: IntArray
    replica: IntArray
    replicas: IntArray
    gpus: IntArray
    stride: IntArray
    extent: IntArray
    links: IntArray
    pass_s: FloatArray
    prompts_s: FloatArray
    copy_s: FloatArray
    memory_bytes: IntArray
    complexity: IntArray
    warnings: IntArray

    @property
    def footprint(self) -> tuple[IntArray, IntArray]:
        """Stride and extent of each footprint."""
        return self.stride, self.extent


class PhaseScreen(ReplicaScreen):
    """Screens all replicas of one phase under the loads of a search [L], ascending."""

    def __init__(
        self, request: SearchRequest, setting: Setting, phase: Phase, batches: Batches, loads: IntArray
    ) -> None:
        super().__init__(request, setting)
        self.phase: Phase = phase
        self.space = request.space
        self._batches, self._loads = batches, loads
        # Replicas that hold the weights and one request; and the rooms of all, in the order of the space.
        self.options: list[Replica] = []
        self.rooms: list[Room] = []
        self._fitting = list(self._that_fit())

    @cached_property
    def rows(self) -> PhaseRows:
        """All replicas in every number under every load with which they fit."""
        parts: list[PhaseRows] = []
        for first, replicas in self._fitting:
            if parts and leaves_out(f"some of the layouts of {self.phase} replicas"):
                break
            parts.append(self._rows(first, replicas))
        return PhaseRows.joined(parts)

    def places(self) -> IntArray:
        """Stride, extent and number of all replicas that fit under the fewest requests [R, 3]; nothing is timed."""
        parts = [np.empty((0, 3), dtype=np.int64)]
        for _, replicas in self._fitting:
            shares = self.shares(replicas, self._loads[:1])
            shares = shares.take(shares.memory_bytes <= self.usable_bytes)
            parts.append(np.stack((*(part[shares.pipeline] for part in replicas.footprint), shares.replicas), axis=1))
        return np.concatenate(parts)

    def _that_fit(self) -> Iterator[tuple[int, Replicas]]:
        """The replicas of each kind that hold the weights and one request, with the place of the first of them."""
        for kind in phase_kinds(self.space, self.phase):
            if self.options and leaves_out(f"some of the layouts of {self.phase} replicas"):
                return
            least = self.least_stages(kind)
            self.rooms.extend(room for stages, room in kind.rooms.items() if stages < least)
            if least > max(kind.rooms):
                continue
            replicas = self.replicas(kind, least)
            self.rooms.extend(replicas.rooms)
            fitting = replicas.take(replicas.least_bytes <= self.usable_bytes)
            if len(fitting.pipelines):
                yield len(self.options), fitting
                self.options.extend(fitting.each)

    def _rows(self, first: int, replicas: Replicas) -> PhaseRows:
        shares = self.shares(replicas, self._loads)
        fits = shares.memory_bytes <= self.usable_bytes
        if self.request.finds_requests and self.phase == "decode":
            # More than the schedulers take at once would only wait.
            fits &= shares.requests <= self.setting.max_sequences * replicas.kind.attention_groups
        shares = shares.take(fits)
        timed = self._prefilled if self.phase == "prefill" else self._decoded
        (pass_s, prompts_s, copy_s), warnings = timed(replicas, shares)
        stage = replicas.times[0].layout.stages[0]
        links = max(1, len(stage.attention_devices) // replicas.times[0].groups) * replicas.pipelines.stages
        complexity = phase_complexity(replicas.kind.phases[self.phase]) + replicas.complexity
        pipeline, (stride, extent) = shares.pipeline, replicas.footprint
        return PhaseRows(
            shares.load, first + pipeline, shares.replicas, replicas.gpus[pipeline], stride[pipeline], extent[pipeline],
            links[pipeline], pass_s, prompts_s, copy_s, shares.memory_bytes, complexity[pipeline], warnings,
        )  # fmt: skip

    def _prefilled(self, replicas: Replicas, shares: Shares) -> tuple[tuple[FloatArray, ...], IntArray]:
        """Seconds of a prompt, of all prompts and of copies, and the rules that warn as bits, of each share [E]."""
        pipeline, (times,) = shares.pipeline, replicas.times
        mean = self._loads[shares.load] / shares.replicas
        most = whole_requests(mean)
        servers = times.groups * replicas.pipelines.stages[pipeline]
        prompts = PrefillTimes(self.setting, times, replicas.pipelines, servers, most)
        present = at_once(self.request, most, lambda present: prompts.alone(pipeline, present.astype(np.float64))[0])
        warnings = times.warnings(replicas.pipelines)[pipeline] | UNEVEN_STAGES * prompts.is_uneven[pipeline]
        return (*prompts.alone(pipeline, np.minimum(mean, present)), np.zeros(len(shares))), warnings

    def _decoded(self, replicas: Replicas, shares: Shares) -> tuple[tuple[FloatArray, ...], IntArray]:
        """As `_prefilled`, for decode steps; requests that do not run at once wait after their first token."""
        pipeline, (times,) = shares.pipeline, replicas.times
        mean = self._loads[shares.load] / shares.replicas
        most, requests = replicas.memory.running(replicas.pipelines)[pipeline], whole_requests(mean)
        steps = DecodeTimes(self.setting, times, replicas.pipelines, self._batches)
        steps = steps.narrowed(pipeline, np.minimum(requests, most))

        def per_token(present: IntArray) -> FloatArray:
            running = np.minimum(present, most)
            return steps.step(pipeline, running) * (present / running)

        later = self.workload.output_tokens - 1
        present = at_once(self.request, requests, lambda present: later * per_token(present))
        uneven = steps.is_uneven(pipeline, np.minimum(present, most))
        warnings = times.warnings(replicas.pipelines)[pipeline] | UNEVEN_STAGES * uneven
        return (per_token(present), np.zeros(len(shares)), self._copies(replicas)[pipeline]), warnings

    def _copies(self, replicas: Replicas) -> FloatArray:
        """Seconds in which the ranks of each pipeline copy what they repeat of a cache [P]."""
        (times,), pipelines = replicas.times, replicas.pipelines
        stages = zip(times.stages(pipelines), pipelines.spans, strict=True)
        seconds = [stage_copy_seconds(self.setting, times.layout, stage, span) for stage, span in stages]
        return np.add.reduceat(np.array(seconds), pipelines.starts)
