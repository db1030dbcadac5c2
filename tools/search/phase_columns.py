"""One phase of one replica under many loads at once: seconds and memory as columns, by the functions of one plan.

Decode steps are timed for an array of batch sizes that all options of a search share, so that what one stage of a shape
takes is computed once however many stages there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.forms.elementary import Number, larger
from ..performance.balance import is_unbalanced, prompt_stage_seconds
from ..performance.collectives import domain_of
from ..performance.operation import TokenLoad
from ..performance.overlap_halves import is_two_batch
from ..performance.queueing import hold_up_others
from ..performance.schedule import PhaseTimer, host_seconds, pass_seconds, prefill_loads
from ..performance.setting import Setting
from ..performance.shape import PhaseLayout
from ..performance.stage_shape import stage_shape
from ..performance.throughput import prompt_share
from ..performance.timing import StageTimer

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batches:
    """Sequences of a microbatch for which decode steps are timed, ascending; 1 is among them."""

    sequences: Floats

    def places(self, sequences: Whole) -> Whole:
        """Where each of `sequences` stands; every one of them must be there."""
        found: Any = np.searchsorted(self.sequences, sequences)
        return found


class DecodeColumns:
    """Seconds of a decode step of one replica for any number of requests whose microbatches are in `batches`."""

    def __init__(self, setting: Setting, phase: PhaseLayout, batches: Batches) -> None:
        self.setting, self.batches = setting, batches
        self.groups = phase.attention_groups
        self.timer = phase_timer(setting, phase)
        stated = None if setting.serving is None else setting.serving.microbatches
        self.microbatches = stated or len(self.timer.stages)

    @cached_property
    def _stages(self) -> tuple[Floats, Floats, Mask]:
        """Round trip, slowest stage, and whether stages are uneven, for each batch with all groups at work."""
        return self._timed(self.batches.sequences, self.groups)

    def _timed(self, sequences: Floats, groups: int) -> tuple[Floats, Floats, Mask]:
        if is_two_batch(self.setting):
            # Which half waits for which differs from load to load.
            rows = [self._stage_passes(int(count), groups) for count in sequences]
            passes = [np.array(stage) for stage in zip(*(row[0] for row in rows), strict=True)]
            host = np.array([row[1] for row in rows])
        else:
            passes, host = self._stage_passes(sequences, groups)
        bare = [passes[0] - host, *passes[1:]]
        uneven = is_unbalanced(bare) if len(bare) > 1 else np.zeros(len(sequences), dtype=np.bool_)
        return reduce(add, passes), reduce(larger, passes), uneven

    def _stage_passes(self, sequences: Number, groups: int) -> tuple[list[Any], Any]:
        load = TokenLoad(sequences, 1, self.setting.mean_decode_context, groups)
        return pass_seconds(self.timer, load), host_seconds(self.setting, load)

    def _batch(self, requests: Whole) -> tuple[Whole, Whole]:
        """Where the sequences of a microbatch stand among the batches, and how many microbatches there are."""
        batch = -(-requests // np.minimum(self.groups, requests))
        microbatches = np.minimum(self.microbatches, batch)
        return self.batches.places(-(-batch // microbatches)), microbatches

    def is_uneven(self, requests: Whole) -> Mask:
        """Whether the stages are uneven (rule PP008) with so many requests."""
        return self._stages[2][self._batch(requests)[0]]

    def step(self, requests: Whole) -> Floats:
        """Seconds of a step with `requests` on the replica."""
        round_trip, slowest, _ = self._stages
        places, microbatches = self._batch(requests)
        seconds = np.maximum(round_trip[places], microbatches * slowest[places])
        # Fewer requests than attention groups: some groups have nothing to do.
        for count in {int(few) for few in requests[requests < self.groups]}:
            whole, most, _ = self._timed(np.ones(1), count)
            seconds[requests == count] = max(whole[0], most[0])
        return seconds


class PrefillColumns:
    """Seconds of prompts on one replica for any share of requests."""

    def __init__(self, setting: Setting, phase: PhaseLayout) -> None:
        self.setting = setting
        self.groups = phase.attention_groups
        self.timer = phase_timer(setting, phase)
        self._known: dict[tuple[int, int], tuple[float, float]] = {}

    def _pass(self, together: int, groups: int) -> tuple[float, float]:
        key = (together, groups)
        if key not in self._known:
            self._known[key] = self.timer.prefill_seconds(prefill_loads(self.setting, together, groups))
        return self._known[key]

    @cached_property
    def is_uneven(self) -> bool:
        """Whether the stages are uneven (rule PP008) for one prompt."""
        return bool(is_unbalanced(prompt_stage_seconds(self.timer))) and len(self.timer.stages) > 1

    def seconds(self, requests: Whole) -> tuple[Floats, Floats]:
        """Of one prompt, and of all prompts of the share, with `requests` in flight on the replica."""
        shares = [prompt_share(self.setting, self.groups, int(count)) for count in requests]
        one = np.array([self._pass(1, share.groups)[0] for share in shares])
        passes = np.array([self._pass(share.together, share.groups) for share in shares]).reshape(-1, 2)
        return one, passes[:, 0] + np.array([share.rounds - 1 for share in shares]) * passes[:, 1]

    def apart(self, requests: Whole) -> Floats:
        """Of all prompts of the share where no two attention groups prefill at once, as far as these hold up others."""
        if not hold_up_others(self.setting, self.groups):
            return self.seconds(requests)[1]
        shares = [prompt_share(self.setting, self.groups, int(count)) for count in requests]
        passes = np.array([self._pass(share.together, 1) for share in shares]).reshape(-1, 2)
        return passes[:, 0] + np.array([share.passes - 1 for share in shares]) * passes[:, 1]


def phase_timer(setting: Setting, phase: PhaseLayout) -> PhaseTimer:
    """A timer of `phase`, whose stages are laid out alike.

    Shapes, which differ by how stages lie over domains and by vocabulary, are kept on the setting; stages that hold the
    same layers in the same domain share one timer.
    """
    degrees = phase.degrees.model_copy(update={"pp": 1, "stage_layers": None, "replicas": None})
    layers = [id(layer) for layer in setting.architecture.layers]
    made: dict[object, StageTimer] = {}
    timers: list[StageTimer] = []
    for stage in phase.stages:
        spread = tuple(Counter(domain_of(device, setting.hardware) for device in stage.devices).items())
        ends = bool(stage.embedding_devices), bool(stage.head_devices)
        key = (spread, ends, stage.vocab_shards, tuple(layers[stage.layers[0] : stage.layers[1] + 1]))
        if key not in made:
            kept = ("shape of", phase.phase, degrees, stage.vocab_shards, spread)
            shape = setting.pieces.get(kept)
            if shape is None:
                shape = setting.pieces[kept] = stage_shape(setting, phase, stage)
            made[key] = StageTimer(setting, phase, stage, shape=shape)
        timers.append(made[key])
    return PhaseTimer(setting, phase, tuple(timers))
