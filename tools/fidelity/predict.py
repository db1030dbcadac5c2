"""The figure of a situation as the performance model, or the yardstick beside it, predicts it.

Rows that share a deployment and a load share one computation. What cannot be computed is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InputError
from ..performance.serving.load import Arrivals, Lengths, ServingTimes
from .deployment import check_weights_fit, layout_of, workload_of
from .situation import Deployment, Refused, Situation

# What predicts a load on a layout: the performance model (`serving_estimate.serve`), or a yardstick with its arguments.
Serve = Callable[..., ServingTimes]


class Predictor:
    """Predicts situations by one `serve` function, each deployment and load once."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._known: dict[tuple[Deployment, Arrivals, Lengths], ServingTimes | Refused] = {}

    def times(self, situation: Situation) -> ServingTimes | Refused:
        """The times that users see in the situation."""
        key = (situation.deployment, situation.arrivals, situation.lengths)
        times = self._known.get(key)
        if times is None:
            times = self._known[key] = self._compute(situation)
        return times

    def _compute(self, situation: Situation) -> ServingTimes | Refused:
        try:
            layout = layout_of(situation)
            check_weights_fit(layout)
            late = situation.deployment.engine.streams_at_intervals
            return self._serve(layout, situation.arrivals, situation.lengths, streams_at_intervals=late)
        except InputError as error:
            return Refused(str(error))

    def __call__(self, situation: Situation) -> float | Refused:
        """The situation's figure in the unit of its name."""
        times = self.times(situation)
        if isinstance(times, Refused):
            return times
        value = figure_of(times, situation)
        return value if 0.0 < value < float("inf") else Refused(f"the model gives {value} for {situation.figure}")


def figure_of(times: ServingTimes, situation: Situation) -> float:
    """The measured figure among `times`: latencies by the row's statistic, rates of the whole deployment or per GPU."""
    workload = workload_of(situation.arrivals, situation.lengths)
    gpus = situation.deployment.strategy.gpu_count
    total = times.output_tokens_per_s * (workload.input_tokens + workload.output_tokens) / workload.output_tokens
    match situation.figure:
        case "ttft_ms":
            return getattr(times.ttft, situation.statistic) * 1e3
        case "tpot_ms":
            return getattr(times.tpot, situation.statistic) * 1e3
        case "e2e_ms":
            return getattr(times.end_to_end, situation.statistic) * 1e3
        case "makespan_ms":
            return times.makespan_s * 1e3
        case "output_tok_s":
            return times.output_tokens_per_s
        case "output_tok_s_per_gpu":
            return times.output_tokens_per_s / gpus
        case "total_tok_s":
            return total
        case "total_tok_s_per_gpu":
            return total / gpus
