"""What choosing a layout by prediction costs against choosing it by measurement.

    python benchmarks/regret.py measured.csv [--worst 20]

The table has the columns of `shardwright fidelity`. One choice is between the layouts that one source measured of one
model in one number format, with one engine, on one kind of accelerator and as many of them, under one load, by one
metric; or, in the second table, with any number of accelerators (rates are then per accelerator). Its regret is
1 - measured(chosen) / measured(best) of a rate, 1 - measured(best) / measured(chosen) of a latency. Beside the model
stand the roofline's choice and the mean over all layouts: what a blind choice costs. Every choice counts once.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from shardwright.tools.fidelity.predict import Predictor
from shardwright.tools.fidelity.run import serve_at_datasheet_rates
from shardwright.tools.fidelity.score import family_of, quantile
from shardwright.tools.fidelity.situation import Refused, Situation, situation_of
from shardwright.tools.fidelity.table import MeasuredRow, read_table_file
from shardwright.tools.performance.serving_estimate import serve

Key = tuple[str, ...]
# The metrics that a layout is chosen by, and whether more is better.
LARGER_IS_BETTER = {"throughput": True, "tpot": False, "e2e": False}


class Layout(Struct, frozen=True):
    """One layout of a choice: what was measured, and what was predicted by the model and by the roofline."""

    name: str
    measured: float
    predicted: float
    roofline: float


class Choice(Struct, frozen=True):
    """Layouts of which one is chosen by `metric`; what they share is the key."""

    key: Key
    family: str
    layouts: tuple[Layout, ...]

    def loss(self, layout: Layout) -> float:
        """What `layout` loses against the best one, as a share."""
        measured = [option.measured for option in self.layouts]
        if LARGER_IS_BETTER[self.family]:
            return 1.0 - layout.measured / max(measured)
        return 1.0 - min(measured) / layout.measured

    def regret(self, figure: str) -> float:
        """The loss of the layout that `figure` says is the best; of several alike the mean."""
        figures = [getattr(option, figure) for option in self.layouts]
        best = max(figures) if LARGER_IS_BETTER[self.family] else min(figures)
        return statistics.fmean(self.loss(option) for option in self.layouts if getattr(option, figure) == best)

    @property
    def blind(self) -> float:
        """The mean loss over all layouts."""
        return statistics.fmean(map(self.loss, self.layouts))


def layout_name(row: MeasuredRow) -> str:
    """The degrees that the row states, and its number of accelerators."""
    degrees = (("TP", row.tp), ("PP", row.pp), ("EP", row.ep), ("DP", row.dp))
    named = [f"{name}{degree}" for name, degree in degrees if degree is not None and str(degree) != "1"]
    return f"{'x'.join(named) or 'one'} on {row.gpus}" + (" apart" if row.disaggregated else "")


def shared(row: MeasuredRow, *, same_number: bool) -> Key:
    """The key that all layouts of a choice share."""
    software = (row.source, row.framework, row.framework_version)
    model = (row.model, row.weights, row.kv_cache, row.gpu, str(row.gpus) if same_number else "any")
    return (*software, *model, f"{row.input_tokens}/{row.output_tokens}", row.load, row.metric, row.statistic)


def choices(rows: Sequence[MeasuredRow], *, same_number: bool) -> Iterator[tuple[Key, dict[str, list[MeasuredRow]]]]:
    """The rows of each choice by layout, where there are two layouts or more."""
    by_choice: dict[Key, dict[str, list[MeasuredRow]]] = {}
    for row in rows:
        if family_of(row) in LARGER_IS_BETTER and row.gpus is not None:
            layouts = by_choice.setdefault(shared(row, same_number=same_number), {})
            layouts.setdefault(layout_name(row), []).append(row)
    yield from ((key, layouts) for key, layouts in by_choice.items() if len(layouts) > 1)


class Predictions:
    """The figures of rows, each computed once."""

    def __init__(self) -> None:
        self._model, self._roofline = Predictor(serve), Predictor(serve_at_datasheet_rates)
        self._known: dict[str, tuple[float, float] | None] = {}

    def of(self, row: MeasuredRow) -> tuple[float, float] | None:
        """The model's and the roofline's figure; `None` where the row cannot be modelled."""
        if row.id not in self._known:
            self._known[row.id] = self._compute(row)
        return self._known[row.id]

    def _compute(self, row: MeasuredRow) -> tuple[float, float] | None:
        situation = situation_of(row)
        if not isinstance(situation, Situation):
            return None
        figures = self._model(situation), self._roofline(situation)
        if isinstance(figures[0], Refused) or isinstance(figures[1], Refused):
            return None
        return figures[0], figures[1]

    def layout(self, name: str, rows: Iterable[MeasuredRow], *, per_gpu: bool) -> Layout | None:
        """The means over the rows of one layout that can be modelled."""
        known = [(row, figures) for row in rows if (figures := self.of(row)) is not None]
        if not known:
            return None
        scale = 1.0 / (known[0][0].gpus or 1) if per_gpu else 1.0
        return Layout(
            name,
            scale * statistics.fmean(row.value for row, _ in known),
            scale * statistics.fmean(figures[0] for _, figures in known),
            scale * statistics.fmean(figures[1] for _, figures in known),
        )


def modelled(rows: Sequence[MeasuredRow], predictions: Predictions, *, same_number: bool) -> Iterator[Choice]:
    """The choices of which two layouts or more can be modelled."""
    for key, layouts in choices(rows, same_number=same_number):
        family = family_of(next(iter(layouts.values()))[0]) or ""
        # A rate of the whole deployment says nothing of layouts of different sizes.
        per_gpu = family == "throughput" and not same_number and not key[-2].endswith("per_gpu")
        every_layout = [predictions.layout(name, members, per_gpu=per_gpu) for name, members in layouts.items()]
        known = tuple(layout for layout in every_layout if layout is not None)
        if len(known) > 1:
            yield Choice(key, family, known)


def print_table(title: str, listed: Sequence[Choice], worst: int) -> None:
    """Regrets by metric, then the largest ones."""
    print(f"{title}: {len(listed)} choices")
    print(f"  {'chosen by':12} {'choices':>8} {'median':>8} {'p90':>8} {'best one':>9} {'roofline':>19} {'blind':>8}")
    for family in (*LARGER_IS_BETTER, "all"):
        chosen = [case for case in listed if family in (case.family, "all")]
        if not chosen:
            continue
        regrets, beside = ([case.regret(name) for case in chosen] for name in ("predicted", "roofline"))
        right = sum(regret <= 0.0 for regret in regrets) / len(regrets)
        model = f"{statistics.median(regrets):8.1%} {quantile(regrets, 0.9):8.1%} {right:9.0%}"
        roofline = f"{statistics.median(beside):8.1%} p90{quantile(beside, 0.9):7.1%}"
        print(
            f"  {family:12} {len(chosen):8} {model} {roofline} {statistics.median(case.blind for case in chosen):8.1%}"
        )
    for case in sorted(listed, key=lambda case: -case.regret("predicted"))[:worst]:
        best = min(case.layouts, key=case.loss)
        figures = [layout.predicted for layout in case.layouts]
        picked = case.layouts[figures.index(max(figures) if LARGER_IS_BETTER[case.family] else min(figures))]
        print(f"    {case.regret('predicted'):6.1%}  {picked.name} for {best.name}: {' '.join(filter(None, case.key))}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path, metavar="CSV")
    parser.add_argument("--worst", type=int, default=0, help="name the choices with the largest regrets")
    arguments = parser.parse_args()
    rows, predictions = read_table_file(arguments.table), Predictions()
    for title, same_number in (("As many accelerators", True), ("Any number of accelerators", False)):
        print_table(title, list(modelled(rows, predictions, same_number=same_number)), arguments.worst)


if __name__ == "__main__":
    main()
