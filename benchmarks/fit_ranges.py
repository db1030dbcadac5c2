"""Measures how far off the performance model is where it has not been, and writes the ranges shown with figures.

    OMP_NUM_THREADS=1 python benchmarks/fit_ranges.py MEASURED.csv [--folds 5] [--write]

The engines are fitted again without each fold of the pairs of model and accelerator, and every row of the table is
predicted by the constants that have not seen its pair, by the function that predicts it for users. Ranges are made of
the rows whose layout is clear (tiers A and B); their coverage is that of ranges made without the pair they are judged
on. To be run after every change of the engine constants or of the model. numba makes it some hundred times as quick.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

from fit_engines import read_cases

from shardwright.benchmarks.fits.coverage import coverage
from shardwright.benchmarks.fits.engine_levels import Levels, fit_levels, folds_of
from shardwright.tools.calibration.error_ranges import ErrorRange
from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.conformal import (
    Miss,
    hardware_misses,
    miss_of,
    pair_of,
    ranges_of,
    ratio_misses,
    ratios_of,
)
from shardwright.tools.fidelity.deployment import check_weights_fit, layout_of
from shardwright.tools.fidelity.engine_cases import wanted_of
from shardwright.tools.fidelity.predict import figure_of
from shardwright.tools.fidelity.score import score
from shardwright.tools.fidelity.situation import Deployment, Situation, situation_of
from shardwright.tools.fidelity.table import MeasuredRow, read_table_file
from shardwright.tools.performance.serving.load import Arrivals, Lengths, ServingTimes
from shardwright.tools.performance.serving_estimate import serve
from shardwright.tools.performance.setting import Setting

DATA = Path(__file__).resolve().parent.parent / "tools" / "calibration" / "data" / "ranges.json"


class Unseen:
    """Predicts situations by constants that were fitted without their pairs."""

    def __init__(self, levels: Sequence[Levels], folds: Mapping[str, int]) -> None:
        self._levels = levels
        self._folds = folds
        self._settings: dict[Deployment, Setting] = {}
        self._times: dict[tuple[Deployment, Arrivals, Lengths], ServingTimes | None] = {}

    def __call__(self, situation: Situation) -> float | None:
        """The situation's figure; `None` where it cannot be modelled."""
        key = (situation.deployment, situation.arrivals, situation.lengths)
        if key not in self._times:
            try:
                self._times[key] = self._serve(situation)
            except InputError:
                self._times[key] = None
        times = self._times[key]
        return None if times is None else figure_of(times, situation)

    def _serve(self, situation: Situation) -> ServingTimes:
        layout, deployment = layout_of(situation), situation.deployment
        check_weights_fit(layout)
        if deployment not in self._settings:
            # A pair that took part in no fit is new to all of them.
            levels = self._levels[self._folds.get(pair_of(deployment), 0)]
            constants, engine = levels.of(wanted_of(situation)).constants, layout.setting.engine
            entry = engine.entry.model_copy(update={"constants": constants})
            self._settings[deployment] = layout.setting.with_profile(engine.model_copy(update={"entry": entry}))
        setting = self._settings[deployment].with_workload(layout.setting.workload)
        late = deployment.engine.streams_at_intervals
        layout = layout.with_setting(setting)
        return serve(layout, situation.arrivals, situation.lengths, streams_at_intervals=late)


def show_errors(rows: Sequence[MeasuredRow], predictions: Sequence[float | None]) -> None:
    """Print median and p90 errors over groups, of all and by tier."""
    scores = score(rows, predictions)
    print("Held back: median and p90 error in percent, bias, over groups")
    for part in (*scores.families, *scores.tiers):
        errors = part.model
        print(
            f"  {part.of:8} {part.family:10} {errors.median_pct:6.1f} {errors.p90_pct:7.1f} {errors.bias_pct:+7.1f}"
            f"  {part.groups} groups, {part.rows} rows"
        )


def show_coverage(misses: Sequence[Miss]) -> None:
    """Print how many measurements lie inside ranges that were made without their pair."""
    print("Inside of the 90% ranges in percent, each pair left out of those that it is judged by")
    print("  metric        of rows  of pairs   rows  pairs  without range  width")
    for part in coverage(misses):
        print(
            f"  {part.name:12} {part.inside_pct:8.1f} {part.inside_by_pair_pct:9.1f} {part.rows:6} {part.pairs:6} "
            f"{part.rangeless:14}  x{part.width:.1f}"
        )


def show_ranges(ranges: Sequence[ErrorRange]) -> None:
    """Print every cell with its counts."""
    print("Ranges: measured over predicted")
    for cell in ranges:
        words = " ".join((cell.kind or "all", cell.engine or "", cell.generation or "")).strip()
        counts = f"{cell.rows} rows, {cell.pairs} pairs"
        print(f"  {cell.metric:10} {cell.load:7} {words:24} {cell.low:.2f}-{cell.high:.2f}  {counts}")


def rotated(table: Path, folds: int) -> Unseen:
    """Fit once without the pairs of each fold."""
    cases, start = read_cases(table), time.perf_counter()
    fold_by_pair = folds_of(cases, folds)
    levels: list[Levels] = []
    remaining = [[case for case in cases if fold_by_pair[case.about.pair] != fold] for fold in range(folds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for fold, fitted in enumerate(pool.map(fit_levels, remaining), 1):
            levels.append(fitted)
            print(f"  {time.perf_counter() - start:6.0f} s  fold {fold} of {folds}", flush=True)
    return Unseen(levels, fold_by_pair)


def main() -> None:
    """Rotate, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the data file")
    chosen = parser.parse_args()
    unseen = rotated(chosen.table, chosen.folds)
    known = [(row, case) for row in read_table_file(chosen.table) if isinstance(case := situation_of(row), Situation)]
    predictions = [unseen(situation) for _, situation in known]
    show_errors([row for row, _ in known], predictions)
    misses = [
        miss_of(situation, row.value, predicted)
        for (row, situation), predicted in zip(known, predictions, strict=True)
        if predicted is not None and row.tier != "C"
    ]
    show_coverage(misses)
    ranges = ranges_of(misses)
    show_ranges(ranges)
    predicted = [
        (row, situation, figure)
        for (row, situation), figure in zip(known, predictions, strict=True)
        if figure and row.tier != "C"
    ]
    ratios = {}
    for name, what, ratio_errors in (
        ("ratios", "two layouts", list(ratio_misses(predicted))),
        ("hardware_ratios", "two accelerators", list(hardware_misses(predicted))),
    ):
        print(f"The same of the ratio of {what} under one load")
        show_coverage(ratio_errors)
        ratios[name] = ratios_of(ratio_errors)
        show_ranges(ratios[name])
    if chosen.write:
        tables = {"ranges": ranges, **ratios}
        written = {name: [cell.model_dump(exclude_none=True) for cell in each] for name, each in tables.items()}
        document = {"made": date.today().isoformat(), **written}
        DATA.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
