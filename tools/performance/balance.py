"""How evenly the stages of a pipeline share the work: the time of each in one pass (rule PP008).

A stage's time covers its layers, its embedding or head, and the transfer to the next stage; the host's work belongs to
no stage. Only the ratio of the times is judged.
"""

from __future__ import annotations

import math

from ..calibration.forms.elementary import Number, Truth
from ..plan.document import PHASES, Phase
from .layout import LoadedLayout
from .pass_loads import prefill_loads
from .schedule import PhaseTimer, decode_load

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
    return tuple(math.fsum(load_pass.seconds - load_pass.host_seconds for load_pass in row) for row in passes)


def is_far_above_mean(slowest: Number, total: Number, count: Number) -> Truth:
    """Whether `slowest` of `count` stages, which take `total` seconds together, is too far above their mean.

    Elementwise for arrays."""
    return slowest * count > MOST_IMBALANCE * total


def unbalanced_phases(layout: LoadedLayout) -> dict[Phase, tuple[float, ...]]:
    """The seconds of each stage, for the phases whose slowest stage is too far above the mean.

    Raises InputError: a fact that the arithmetic needs is not known.
    """
    unbalanced: dict[Phase, tuple[float, ...]] = {}
    for phase in PHASES:
        if len(layout.phase(phase).stages) > 1:
            times = stage_seconds(layout, phase)
            if is_far_above_mean(max(times), sum(times), len(times)):
                unbalanced[phase] = times
    return unbalanced
