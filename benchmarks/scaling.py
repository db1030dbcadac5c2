"""How the model scales from one layout to another against measurements: the same box, load and metric, two layouts.

    python benchmarks/scaling.py MEASURED.csv [MORE.csv ...] [--kind pp|dp|quant] [--rows]

Kinds: `pp` compares each pipeline with the row of fewest stages on as many GPUs, `dp` attention data parallel or whole
replicas with tensor parallel alone, `quant` number formats of weights with FP8 (or, without it, BF16). A pair differs
in nothing else that its rows state. Printed is the median of predicted over measured ratio - 1, where a ratio above 1
is better (more tokens, less time): above 0 the model promises too much. `--rows` prints each pair. Left out is
speculative decoding, and runs at several rates one after another on servers that keep prefixes: from the second on,
the prompts are cached (a burst of them was answered faster than the peak of the GPUs allows).
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct

from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.predict import Predictor
from shardwright.tools.fidelity.situation import Refused, situation_of
from shardwright.tools.fidelity.table import MeasuredRow, read_table
from shardwright.tools.performance.serving_estimate import serve

_PAIR = re.compile(r"(?:^|; )pair=([^;]+)")
_SPECULATIVE = re.compile(r"\bspec=|MTP|EAGLE", re.IGNORECASE)
_KEEPS_PREFIXES = re.compile(r"prefix(?:-| )caching on", re.IGNORECASE)
_LARGE_IS_GOOD = ("tok_s",)


class Pair(Struct, frozen=True):
    """Two rows that differ by layout (or format): what it is called, measured and predicted ratio to the baseline."""

    name: str
    engine: str
    kind: str
    measured: float
    predicted: float
    about: str

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1.0


def rows_of(path: Path) -> Iterator[MeasuredRow]:
    """The rows that can be read, each by itself: published tables have cells like `?`."""
    reader = csv.reader(path.open(encoding="utf-8", newline=""))
    header = next(reader)
    for cells in reader:
        text = io.StringIO()
        csv.writer(text).writerows((header, cells))
        try:
            yield from read_table(text.getvalue(), path.name)
        except InputError:
            continue


def comparable(rows: Iterable[MeasuredRow]) -> Iterator[MeasuredRow]:
    """The rows whose prompts and tokens the model runs too."""
    first_load: dict[tuple[object, ...], str] = {}
    for row in rows:
        if row.disaggregated or _SPECULATIVE.search(row.notes):
            continue
        server = (row.source, row.model, row.gpu, row.tp, row.pp, row.dp, row.notes)
        if first_load.setdefault(server, row.load) == row.load or not _KEEPS_PREFIXES.search(row.notes):
            yield row


def goodness(row: MeasuredRow, value: float) -> float:
    """The value, or its inverse where less is better."""
    return value if any(name in row.metric for name in _LARGE_IS_GOOD) else 1.0 / value


def _what(row: MeasuredRow) -> tuple[object, ...]:
    """All that two rows of a pair share, but for the layout and the weights' format."""
    pair = _PAIR.search(row.notes)
    where = pair[1] if pair else row.source
    load = (row.input_tokens, row.output_tokens, row.load, row.metric, row.statistic)
    return where, row.framework, row.framework_version, row.model, row.gpu, row.gpus, load


def _degree(row: MeasuredRow, name: str) -> int:
    degree = getattr(row, name)
    return 1 if degree is None else degree.decode


Compare = Callable[[list[MeasuredRow]], Iterator[tuple[str, MeasuredRow, MeasuredRow]]]


def _wider(rows: list[MeasuredRow], *, varied: str, without: str) -> Iterator[tuple[str, MeasuredRow, MeasuredRow]]:
    """Each row of a higher degree in `varied` with the one of the lowest on as many GPUs, all without `without`."""
    same = [row for row in rows if _degree(row, without) == 1]
    base = min(same, key=lambda row: _degree(row, varied), default=None)
    for row in same:
        if base is not None and _degree(row, varied) > _degree(base, varied) and row.weights == base.weights:
            name = varied.upper()
            yield f"{name}{_degree(row, varied)} over {name}{_degree(base, varied)}", base, row


def _formats(rows: list[MeasuredRow]) -> Iterator[tuple[str, MeasuredRow, MeasuredRow]]:
    layouts: dict[tuple[int, ...], list[MeasuredRow]] = defaultdict(list)
    for row in rows:
        layouts[tuple(_degree(row, name) for name in ("tp", "pp", "ep", "dp"))].append(row)
    for same in layouts.values():
        for wanted in ("fp8", "bf16"):
            base = next((row for row in same if row.weights.lower().startswith(wanted)), None)
            if base is None:
                continue
            for row in same:
                if row.weights != base.weights:
                    yield f"{row.weights[:12]} over {base.weights[:6]}", base, row
            break


COMPARISONS: Mapping[str, Compare] = {
    "pp": partial(_wider, varied="pp", without="dp"),
    "dp": partial(_wider, varied="dp", without="pp"),
    "quant": _formats,
}


def pairs_of(rows: Iterable[MeasuredRow], compare: Compare) -> Iterator[Pair]:
    """Every pair of which both rows can be predicted."""
    predict = Predictor(serve)
    groups: dict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for row in comparable(rows):
        groups[_what(row)].append(row)
    for same in groups.values():
        for name, base, other in compare(same):
            figures: list[float] = []
            for row in (base, other):
                situation = situation_of(row)
                value = situation if isinstance(situation, Refused) else predict(situation)
                if isinstance(value, Refused):
                    break
                figures.append(goodness(row, value))
            if len(figures) == 2:
                measured = goodness(other, other.value) / goodness(base, base.value)
                about = f"{other.id} {other.model[-24:]} {other.gpu[:14]} {other.input_tokens}/{other.output_tokens}"
                about += f" @{other.load} {other.metric} tp{_degree(other, 'tp')} <- tp{_degree(base, 'tp')} {base.id}"
                yield Pair(name, other.framework, other.metric, measured, figures[1] / figures[0], about)


def _line(label: str, pairs: list[Pair]) -> str:
    errors = [pair.error for pair in pairs]
    wrong = sum((pair.measured > 1.0) != (pair.predicted > 1.0) for pair in pairs)
    size = median(abs(error) for error in errors)
    return f"{label:44} {len(pairs):5} {median(errors):+8.1%} {size:8.1%} {wrong:6}"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--kind", choices=tuple(COMPARISONS), default="pp")
    parser.add_argument("--rows", action="store_true")
    arguments = parser.parse_args()
    rows = [row for path in arguments.tables for row in rows_of(path)]
    pairs = list(pairs_of(rows, COMPARISONS[arguments.kind]))
    print(f"{'':44} {'pairs':>5} {'median':>8} {'|median|':>8} {'sign':>6}")
    cells: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        for label in (pair.name, f"{pair.name}, {pair.engine}", f"{pair.name}, {pair.engine}, {pair.kind}"):
            cells[label].append(pair)
    for label in sorted(cells):
        print(_line(label, cells[label]))
    if arguments.rows:
        for pair in sorted(pairs, key=lambda pair: (pair.name, pair.engine, pair.about)):
            print(
                f"{pair.name:14} {pair.engine:10} {pair.measured:6.2f} {pair.predicted:6.2f} {pair.error:+7.0%} "
                f"{pair.about}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
