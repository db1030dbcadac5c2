"""How evenly the stages of a pipeline share the work: the time of each in one pass (rule PP008).

A stage's time is that of its layers, its end of the vocabulary and the transfer to the next stage; the host's work is
no stage's. It judges nothing but the ratio.
"""

from __future__ import annotations

import math

from ..calibration.forms.elementary import Number, Truth
from ..plan.document import PHASES, Phase
from .layout import LoadedLayout
from .schedule import PhaseTimer, decode_load, prefill_loads

# The slowest stage over the mean one (004 §5).
MOST_IMBALANCE = 1.2


def stage_seconds(layout: LoadedLayout, phase: Phase) -> tuple[float, ...]:
    """Seconds that one prompt, or one decode step of a microbatch, takes in each stage.

    Raises InputError: a fact that the arithmetic needs is not known.
    """
    timer = PhaseTimer(layout.setting, layout.phase(phase))
    if phase == "prefill":
        loads = prefill_loads(timer.setting, 1)
    else:
        loads = (decode_load(layout, timer, layout.requests_of_replica(phase))[0],)
    passes = [
        [timer.stage_pass(stage, load, with_head=load is loads[-1]) for load in loads]
        for stage in range(len(timer.stages))
    ]
    return tuple(math.fsum(one.seconds - one.host_seconds for one in row) for row in passes)


def is_far_above_mean(slowest: Number, total: Number, count: Number) -> Truth:
    """Whether `slowest` of `count` stages, which take `total` seconds together, is too far above the mean one.

    Of arrays: where."""
    return slowest * count > MOST_IMBALANCE * total


def unbalanced_phases(layout: LoadedLayout) -> dict[Phase, tuple[float, ...]]:
    """The seconds of the stages of each phase whose slowest one is too far above the mean.

    Raises InputError: a fact that the arithmetic needs is not known.
    """
    found: dict[Phase, tuple[float, ...]] = {}
    for phase in PHASES:
        if len(layout.phase(phase).stages) > 1:
            times = stage_seconds(layout, phase)
            if is_far_above_mean(max(times), sum(times), len(times)):
                found[phase] = times
    return found
