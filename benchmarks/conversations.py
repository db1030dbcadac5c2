"""Errors of simulated runs whose requests were conversations, beside those of fixed lengths: what the spread is worth.

    python -m shardwright.benchmarks.conversations measured.csv [more.csv]

Rows of conversations (ShareGPT) are predicted twice, with lengths that spread as such data does and with every request
as long as the mean; rows of fixed lengths stand beside them, of the same deployments (source, engine, model, GPU and
layout). One deployment counts once, by the median of its rows.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..tools.fidelity.degrees import Refused
from ..tools.fidelity.predict import Predictor
from ..tools.fidelity.score import family_of, group_of
from ..tools.fidelity.scores import error_pct
from ..tools.fidelity.situation import Situation, situation_of
from ..tools.fidelity.table import MeasuredRow, read_table_file
from ..tools.performance.serving.load import TAIL, Lengths
from ..tools.performance.serving_estimate import serve

Errors = dict[tuple[str, ...], float]


def errors(rows: Iterable[tuple[MeasuredRow, Situation]]) -> Errors:
    """Median of the absolute errors of a family and deployment, percent of what was measured."""
    model, found = Predictor(serve), defaultdict[tuple[str, ...], list[float]](list)
    for row, situation in rows:
        family, predicted = family_of(row), model(situation)
        if family is not None and not isinstance(predicted, Refused):
            deployment = (family, row.framework, row.framework_version, *group_of(row))
            found[deployment].append(abs(error_pct(predicted, row.value)))
    return {deployment: statistics.median(each) for deployment, each in found.items()}


def by_means(lengths: Lengths) -> Lengths:
    """Every request of conversations as long as the mean."""
    return Lengths(max(1, round(lengths.input_tokens / TAIL)), max(1, round(lengths.output_tokens / TAIL)))


def main(tables: Iterable[Path]) -> None:
    """Print the table."""
    found = ((row, situation_of(row)) for table in tables for row in read_table_file(table))
    rows = [(row, situation) for row, situation in found if not isinstance(situation, Refused)]
    spread = [(row, one) for row, one in rows if one.lengths.tailed]
    means = [(row, replace(one, lengths=by_means(one.lengths))) for row, one in spread]
    sets = errors(spread), errors(means), errors((row, one) for row, one in rows if not one.lengths.tailed)
    print("median error (%) over deployments:       count        spread     the means fixed lengths")
    for family in sorted({deployment[0] for deployment in sets[0]}):
        every = [one for one in sets[0] if one[0] == family]
        both = [one for one in every if one in sets[2]]
        for name, chosen in (("all", every), ("with both kinds of rows", both)):
            if chosen:
                known = sets if chosen is both else sets[:2]
                shown = [f"{statistics.median(errors_of[one] for one in chosen):13.1f}" for errors_of in known]
                print(f"{family:11} {name:24} {len(chosen):4}", *shown)


if __name__ == "__main__":
    main([Path(one) for one in sys.argv[1:]])
