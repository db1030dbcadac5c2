"""A whole fidelity run: a table in, its predictions and its scores out. Deterministic; it prints nothing."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..checkpoint import doing
from .datasheet import serve_at_datasheet_rates
from .degrees import Refused
from .peak_memory import memory_score
from .predict import Predictor, Serve
from .score import score
from .scores import FidelityReport, NotModelled, error_pct
from .situation import Situation, situation_of
from .table import MeasuredRow

COLUMNS = ("id", "metric", "measured", "predicted", "error_pct", "reason")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What came of one row: a figure, or the reason why there is none; the roofline's figure beside it."""

    row: MeasuredRow
    situation: Situation | None
    predicted: float | None
    roofline: float | None
    reason: str


def predict_rows(rows: Sequence[MeasuredRow], serve: Serve) -> tuple[Prediction, ...]:
    """The prediction of every row, in the table's order."""
    model, yardstick = Predictor(serve), Predictor(serve_at_datasheet_rates)
    found: list[Prediction] = []
    for row in rows:
        doing(f"predicting row {len(found) + 1:,} of {len(rows):,}")
        found.append(_prediction(row, model, yardstick))
    return tuple(found)


def _prediction(row: MeasuredRow, model: Predictor, yardstick: Predictor) -> Prediction:
    situation = situation_of(row)
    if isinstance(situation, Refused):
        return Prediction(row, None, None, None, situation.reason)
    predicted, roofline = model(situation), yardstick(situation)
    beside = None if isinstance(roofline, Refused) else roofline
    if isinstance(predicted, Refused):
        return Prediction(row, situation, None, beside, predicted.reason)
    return Prediction(row, situation, predicted, beside, "")


def report_of(predictions: Sequence[Prediction]) -> FidelityReport:
    """The scores of a run."""
    reasons = Counter(one.reason for one in predictions if one.predicted is None)
    modelled = len(predictions) - reasons.total()
    return FidelityReport(
        rows=len(predictions),
        modelled=modelled,
        modelled_pct=100.0 * modelled / len(predictions) if predictions else 0.0,
        scores=score(
            [one.row for one in predictions],
            [one.predicted for one in predictions],
            [one.roofline for one in predictions],
        ),
        peak_memory=memory_score((one.row, one.situation) for one in predictions if one.situation is not None),
        not_modelled=tuple(NotModelled(reason=reason, rows=count) for reason, count in reasons.most_common()),
    )


def predictions_csv(predictions: Sequence[Prediction]) -> str:
    """The table of predictions: one line for each row read; errors are signed, percent of the measured figure."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in predictions:
        row = one.row
        if one.predicted is None:
            writer.writerow((row.id, row.metric, repr(row.value), "", "", one.reason))
        else:
            error = error_pct(one.predicted, row.value)
            writer.writerow((row.id, row.metric, repr(row.value), f"{one.predicted:.6g}", f"{error:.3f}", ""))
    return out.getvalue()
