"""Latency that was divided by degrees instead of computed on the graph: which degrees, and what was divided.

Two things get divided: the time of the model on one device, and the plan's own time once more. It names what fits;
whether a figure is off was decided before.
"""

from __future__ import annotations

import math
from itertools import combinations

from ...performance.layout import LoadedLayout, make_layout
from ...plan.document import PhaseStrategy, Strategy
from ...plan.performance import LatencyEstimate
from ...plan.view import PlanView
from ..evaluation import evaluation_of
from .claims import Figure

# What was divided is the quotient but for rounding; farther off it is chance.
_CLOSE = 0.01
_DEGREES = ("tp", "pp", "sp", "ep", "tp_ffn", "attention_dp")


def scaled_by(view: PlanView, figure: Figure, phase: str) -> str | None:
    """Which degrees the claimed latency is divided by, in words; `None` where no product of degrees fits."""
    layout = evaluation_of(view).layout
    if layout is None or figure.claimed <= 0.0:
        return None
    degrees = _degrees(layout, phase)
    products = {
        " × ".join(f"{name} {degrees[name]}" for name in names): math.prod(degrees[name] for name in names)
        for count in range(len(degrees), 0, -1)
        for names in combinations(degrees, count)
    }
    alone = figure_on_one_device(view, layout, figure.place[-1])
    for base, what in ((alone, "the time on one device"), (figure.computed, "the time of the critical path")):
        for words, product in products.items():
            if base is not None and abs(figure.claimed * product - base) <= _CLOSE * base:
                return f"{what}, {base:.4g}, divided by {words}"
    return None


def _degrees(layout: LoadedLayout, phase: str) -> dict[str, int]:
    stated = layout.phase("prefill" if phase == "prefill" else "decode").degrees
    degrees = {name: getattr(stated, name) or 1 for name in _DEGREES} | {"dp": len(layout.replicas)}
    return {name: value for name, value in degrees.items() if value > 1}


def figure_on_one_device(view: PlanView, layout: LoadedLayout, name: str) -> float | None:
    """The named latency of the same model and load on one device, whether or not it would fit there."""
    value = getattr(view.once(figure_on_one_device, lambda: _latency_on_one_device(layout)), name, None)
    return value if isinstance(value, float) else None


def _latency_on_one_device(layout: LoadedLayout) -> LatencyEstimate:
    from ...performance.estimate import estimate_layout

    workload = layout.setting.workload
    share = math.ceil(workload.concurrency / max(1, len(layout.decode_replicas)))
    setting = layout.setting.with_workload(workload.model_copy(update={"concurrency": share}))
    alone = make_layout(setting, Strategy(dp=1, gpu_count=1, prefill=PhaseStrategy(), decode=PhaseStrategy()))
    return estimate_layout(alone, with_explanation=False).latency
