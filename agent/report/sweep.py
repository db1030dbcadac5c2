"""The report of `sweep`: how many cases have a plan, the best cluster for each model and workload, what went wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .text import NONE, Bullets, Column, Section, Table, count_text, figure, ms_of, render, section, value_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..sweep.case import Row
    from ..sweep.run import SweepResult

# Longer tables are for a program: the file has them.
PAIRS_SHOWN = 60
REASONS_SHOWN = 8


def render_sweep(result: SweepResult, *, saved_as: str | None, width: int, bold: bool = False) -> str:
    """The report of a sweep; `saved_as` is the file of its table, if one was written."""
    return render(
        [
            section("", *_headlines(result, saved_as)),
            _best_section(result),
            _error_section(result),
        ],
        width=width,
        bold=bold,
    )


def _headlines(result: SweepResult, saved_as: str | None) -> list[str]:
    lines = [f"{count_text(result.cases, 'case')}: {result.feasible:,} with a plan, {_without(result)}"]
    if result.kept:
        lines.append(f"{count_text(result.kept, 'case')} kept from an earlier run")
    if result.unanswered:
        lines.append(f"{count_text(result.unanswered, 'case')} not brought to an end: run the sweep again to try them")
    cut = sum(row.left_out is not None for row in result.rows)
    if cut:
        lines.append(f"{count_text(cut, 'case')} cut short by the time limit (--time-limit)")
    if saved_as is not None:
        lines.append(f"The table is in {saved_as}")
    return lines


def _without(result: SweepResult) -> str:
    rules = ", ".join(f"{rule} {count:,}" for rule, count in result.infeasible.items())
    without = sum(result.infeasible.values())
    errors = f", {result.errors:,} that could not be evaluated" if result.errors else ""
    return f"{without:,} without" + (f" ({rules})" if rules else "") + errors


def _best_section(result: SweepResult) -> Section:
    """The row with the most output tokens/s per GPU of each model and workload."""
    best: dict[tuple[str, str], Row] = {}
    for row in result.rows:
        other = best.get((row.model, row.workload))
        if row.feasible and (other is None or _rate(row) > _rate(other)):
            best[row.model, row.workload] = row
    many = len({_formats(row) for row in result.rows if row.feasible}) > 1
    columns = (
        Column("model", wraps=True),
        Column("workload", wraps=True),
        Column("best on", wraps=True),
        *([Column("formats", wraps=True)] if many else []),
        Column("strategy", wraps=True),
        *Column.of_figures("GPUs", "TTFT", "TPOT", "tokens/s/GPU"),
    )
    rows = tuple(_best_row(row, with_formats=many) for row in list(best.values())[:PAIRS_SHOWN])
    more = len(best) - len(rows)
    further = f"and {more:,} more; the table has all" if more > 0 else ""
    return section("Most output tokens/s per GPU, for each model and workload", Table(columns, rows), further)


def _rate(row: Row) -> float:
    return row.output_tokens_per_s_per_gpu or 0.0


def _formats(row: Row) -> str:
    """The number formats of a row: that of the weights, and of the KV cache where it differs."""
    cache = f", {row.kv_cache} cache" if row.kv_cache not in (None, row.weights) else ""
    return f"{row.weights or NONE}{cache}"


def _best_row(row: Row, *, with_formats: bool) -> tuple[str, ...]:
    return (
        row.model.rsplit("/", 1)[-1],
        row.workload,
        row.hardware,
        *([_formats(row)] if with_formats else []),
        row.strategy or NONE,
        str(row.gpus),
        ms_of(row.ttft_ms),
        ms_of(row.tpot_ms),
        figure(_rate(row)),
    )


def _error_section(result: SweepResult) -> Section:
    errors = Counter(row.error for row in result.rows if row.error is not None)
    shown = [f"{value_text(text, 200)} ({count_text(count, 'case')})" for text, count in _commonest(errors)]
    if len(errors) > len(shown):
        shown.append(f"and {count_text(len(errors) - len(shown), 'other reason')}; the table has all")
    return section("Could not be evaluated", Bullets(tuple(shown)))


def _commonest(errors: Counter[str]) -> Iterable[tuple[str, int]]:
    return errors.most_common(REASONS_SHOWN)
