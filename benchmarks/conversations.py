"""Errors of simulated runs whose requests were conversations, beside those of fixed lengths: like held against like.

    python -m shardwright.benchmarks.conversations measured.csv [more.csv]

Rows of conversations (ShareGPT) are predicted twice, with lengths that spread as such data does and with every request
as long as the mean; rows of fixed lengths stand beside them, of the same deployments (source, engine, model, GPU and
layout) under the same kind of load. One deployment counts once, by the median of its rows. The signed error (bias) is
that of the rows as they are predicted. Rows that run about as many requests at once are told apart. Where both kinds
of rows are held against each other, the last figures are by how many points the error of conversations is greater, in
nine of ten draws of as many deployments (a bootstrap of pairs): a range with 0 in it tells no difference.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..tools.fidelity.predict import Predictor
from ..tools.fidelity.score import family_of, group_of
from ..tools.fidelity.scores import error_pct
from ..tools.fidelity.situation import Refused, Situation, situation_of
from ..tools.fidelity.table import MeasuredRow, read_table_file
from ..tools.performance.serving_estimate import serve

# Runs are alike in their batches whose mean numbers of running requests differ by no more than this factor.
_ALIKE = 3.0
_DRAWS = 10_000


class Judged(Struct, frozen=True):
    """A predicted row: its family, deployment and kind of load, its signed error, and the mean of running requests."""

    family: str
    engine: str
    load: str
    deployment: tuple[str, ...]
    error_pct: float
    running: float


def judged(rows: Iterable[tuple[MeasuredRow, Situation]]) -> list[Judged]:
    """The rows that can be predicted."""
    model, predicted_rows = Predictor(serve), list[Judged]()
    for row, situation in rows:
        family, predicted, times = family_of(row), model(situation), model.times(situation)
        if family is not None and not isinstance(predicted, Refused) and not isinstance(times, Refused):
            load = type(situation.arrivals).__name__
            deployment = (family, load, row.framework, row.framework_version, *group_of(row))
            error = error_pct(predicted, row.value)
            predicted_rows.append(Judged(family, row.framework, load, deployment, error, times.running))
    return predicted_rows


def by_deployment(rows: Iterable[Judged]) -> dict[tuple[str, ...], list[Judged]]:
    """The rows of each deployment."""
    deployments = defaultdict[tuple[str, ...], list[Judged]](list)
    for row in rows:
        deployments[row.deployment].append(row)
    return deployments


def shown(deployments: Iterable[Sequence[Judged]]) -> str:
    """Median over deployments of their median errors, absolute and signed."""
    errors = [[row.error_pct for row in rows] for rows in deployments]
    absolute = statistics.median(statistics.median(map(abs, signed)) for signed in errors)
    return f"{absolute:7.1f} {statistics.median(statistics.median(signed) for signed in errors):+7.1f}"


def difference(spread: Sequence[Sequence[Judged]], fixed: Sequence[Sequence[Judged]]) -> str:
    """The range of the difference of the two median errors, in points, over draws of the same deployments."""
    errors = np.array(
        [[statistics.median(abs(row.error_pct) for row in rows) for rows in kind] for kind in (spread, fixed)]
    )
    drawn = np.random.default_rng(0).integers(0, errors.shape[1], (_DRAWS, errors.shape[1]))
    medians = np.median(errors[:, drawn], axis=2)
    low, high = np.percentile(medians[0] - medians[1], (5, 95))
    return f"{low:+.1f} to {high:+.1f}"


def by_means(situation: Situation) -> Situation:
    """Every request of conversations as long as the mean."""
    return replace(situation, lengths=replace(situation.lengths, stated=None))


def alike(rows: Sequence[Judged], others: Sequence[Judged]) -> list[Judged]:
    """Those of `others` that run about as many requests at once as `rows`."""
    running = statistics.median(row.running for row in rows)
    return [row for row in others if running / _ALIKE <= row.running <= running * _ALIKE]


def compare(title: str, spread: list[Judged], means: list[Judged], fixed: list[Judged]) -> None:
    """Print the lines of a set of rows: all deployments, those with both kinds, and those alike in their batches."""
    sets = by_deployment(spread), by_deployment(means), by_deployment(fixed)
    every = list(sets[0])
    both = [key for key in every if key in sets[2]]
    near = {key: matching for key in both if (matching := alike(sets[0][key], sets[2][key]))}
    for name, chosen in (("all", every), ("with both kinds of rows", both), ("and batches alike", list(near))):
        if chosen:
            figures = [shown(known[key] for key in chosen) for known in sets[:2]]
            if chosen is not every:
                beside = [(sets[2] if chosen is both else near)[key] for key in chosen]
                figures += [shown(beside), difference([sets[0][key] for key in chosen], beside)]
            print(f"{title:34} {name:24} {len(chosen):4}  ", "  ".join(figures))


def main(tables: Iterable[Path]) -> None:
    """Print the table."""
    situations = ((row, situation_of(row)) for table in tables for row in read_table_file(table))
    rows = [(row, situation) for row, situation in situations if not isinstance(situation, Refused)]
    spread = [(row, situation) for row, situation in rows if situation.lengths.stated is not None]
    sources = {row.source for row, _ in spread}
    fixed = judged(
        (row, situation) for row, situation in rows if situation.lengths.stated is None and row.source in sources
    )
    sets = judged(spread), judged((row, by_means(situation)) for row, situation in spread), fixed
    heads = "spread        the means    fixed lengths  difference"
    print(f"{'median error and bias (%), deployments':59} count          {heads}")

    def part(title: str, holds: Callable[[Judged], bool]) -> None:
        compare(title, *([row for row in rows if holds(row)] for rows in sets))

    for family, load in sorted({(row.family, row.load) for row in sets[0]}):
        of_load = [row for row in sets[0] if (row.family, row.load) == (family, load)]
        part(f"{family} {load}", lambda row, key=(family, load): (row.family, row.load) == key)
        for engine in sorted({row.engine for row in of_load}):
            key = family, load, engine
            part(f"{family} {load} {engine}", lambda row, key=key: (row.family, row.load, row.engine) == key)


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
