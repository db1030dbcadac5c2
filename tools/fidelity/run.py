"""A whole fidelity run: a table in, predictions and scores out, with those of the yardstick and of peak memory.

The yardstick has matmuls at the dense peak, memory at the full bandwidth, links at their full rate, and no time of host
or client: calibration brings the difference. Nothing is printed.

A static batch is prefilled whole, so its activations are those of all its prompts at once.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..caches import Cache
from ..calibration.engine_profile import neutral
from ..checkpoint import doing
from ..errors import InputError
from ..performance.layout import LoadedLayout
from ..performance.memory import device_memory
from ..performance.serving.load import Arrivals, Lengths, ServingTimes, StaticBatch
from ..performance.serving_estimate import serve
from ..performance.setting import Setting
from .deployment import layout_of
from .predict import Predictor, Serve
from .score import quantile, score
from .scores import FidelityReport, MemoryScore, NotModelled, error_pct
from .situation import Refused, Situation, situation_of
from .table import MeasuredRow

COLUMNS = ("id", "metric", "measured", "predicted", "error_pct", "reason")


class Prediction(Struct, frozen=True):
    """The outcome of one row: a predicted figure, or the reason for none; and the roofline's figure."""

    row: MeasuredRow
    situation: Situation | None
    predicted: float | None
    roofline: float | None
    reason: str


def predict_rows(rows: Sequence[MeasuredRow], serve: Serve) -> tuple[Prediction, ...]:
    """The prediction of every row, in the table's order."""
    model, yardstick = Predictor(serve), Predictor(serve_at_datasheet_rates)
    predictions: list[Prediction] = []
    for row in rows:
        doing(f"predicting row {len(predictions) + 1:,} of {len(rows):,}")
        predictions.append(_prediction(row, model, yardstick))
    return tuple(predictions)


def _prediction(row: MeasuredRow, model: Predictor, yardstick: Predictor) -> Prediction:
    situation = situation_of(row)
    if isinstance(situation, Refused):
        return Prediction(row, None, None, None, situation.reason)
    predicted, roofline = model(situation), yardstick(situation)
    roofline_figure = None if isinstance(roofline, Refused) else roofline
    if isinstance(predicted, Refused):
        return Prediction(row, situation, None, roofline_figure, predicted.reason)
    return Prediction(row, situation, predicted, roofline_figure, "")


def report_of(predictions: Sequence[Prediction]) -> FidelityReport:
    """The scores of a run."""
    reasons = Counter(prediction.reason for prediction in predictions if prediction.predicted is None)
    modelled = len(predictions) - reasons.total()
    return FidelityReport(
        rows=len(predictions),
        modelled=modelled,
        modelled_pct=100.0 * modelled / len(predictions) if predictions else 0.0,
        scores=score(
            [prediction.row for prediction in predictions],
            [prediction.predicted for prediction in predictions],
            [prediction.roofline for prediction in predictions],
        ),
        peak_memory=memory_score(
            (prediction.row, prediction.situation) for prediction in predictions if prediction.situation is not None
        ),
        not_modelled=tuple(NotModelled(reason=reason, rows=count) for reason, count in reasons.most_common()),
    )


def predictions_csv(predictions: Sequence[Prediction]) -> str:
    """The table of predictions: one line for each row read; errors are signed, percent of the measured figure."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for prediction in predictions:
        row = prediction.row
        if prediction.predicted is None:
            writer.writerow((row.id, row.metric, repr(row.value), "", "", prediction.reason))
        else:
            error = error_pct(prediction.predicted, row.value)
            writer.writerow((row.id, row.metric, repr(row.value), f"{prediction.predicted:.6g}", f"{error:.3f}", ""))
    return out.getvalue()


def serve_at_datasheet_rates(
    layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
) -> ServingTimes:
    """The times of `layout` if every operator ran at the datasheet's rates and tokens came out at once."""
    del streams_at_intervals
    return serve(layout.with_setting(_at_datasheet_rates(layout.setting)), arrivals, lengths)


_AT_FULL_RATES = Cache[str, Setting]("the setting at the rates of the datasheet")


def _at_datasheet_rates(setting: Setting) -> Setting:
    """The setting with an accelerator that reaches its peaks and an engine without costs, cached with `setting`."""

    def at_full_rates() -> Setting:
        full = {"compute_efficiency": 1.0, "memory_efficiency": 1.0}
        hardware = replace(setting.hardware, accelerator=setting.hardware.accelerator.model_copy(update=full))
        return replace(setting, hardware=hardware, profile=neutral(setting.engine), caches={})

    return _AT_FULL_RATES.get(setting.caches, "", at_full_rates).with_workload(setting.workload)


# The measured peaks reach 84.8 on GPUs of 80 GiB: tables print decimal GB.
_BYTES_PER_GB = 1e9
# What a serving process holds beside the four terms of a plan: CUDA context, libraries and engine buffers, and the
# workspace of ranks where it is one of several. Least squares over the peaks of NVIDIA's TensorRT-LLM 0.9.0 sizing
# sweep (1,595 static batches): an error that is scored against the same sweep is one of the form alone.
RUNTIME_GB = 1.3
RANKS_GB = 4.1


def peak_memory_gb(situation: Situation) -> float:
    """Memory that the process on the fullest GPU takes, in decimal GB.

    Raises InputError: a fact that the arithmetic needs is not known.
    """
    layout = layout_of(situation)
    setting = layout.setting
    if isinstance(situation.arrivals, StaticBatch):
        tokens = situation.arrivals.sequences * setting.workload.input_tokens
        serving = setting.serving.model_copy(update={"prefill_chunk_tokens": tokens})
        layout = layout.with_setting(replace(setting, serving=serving))
    planned = max(device.total_bytes for device in device_memory(layout).per_device) / _BYTES_PER_GB
    return planned + RUNTIME_GB + (RANKS_GB if len(layout.decode_replicas[0].devices) > 1 else 0.0)


def memory_score(situations: Iterable[tuple[MeasuredRow, Situation]]) -> MemoryScore | None:
    """Errors over the rows that state their peak memory, each deployment and load once; `None` where none does."""
    signed: dict[tuple[object, ...], float] = {}
    for row, situation in situations:
        measured = row.peak_memory_gb
        key = (situation.deployment, situation.arrivals, situation.lengths)
        if measured is None or key in signed:
            continue
        try:
            signed[key] = error_pct(peak_memory_gb(situation), measured)
        except InputError:
            # The row's own prediction gives the reason.
            continue
    if not signed:
        return None
    absolute = [abs(error) for error in signed.values()]
    return MemoryScore(
        rows=len(absolute),
        median_pct=statistics.median(absolute),
        p90_pct=quantile(absolute, 0.9),
        bias_pct=statistics.median(signed.values()),
    )
