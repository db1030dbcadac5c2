"""The report of `compare`: the sentences first, then figures, limits and layouts side by side, then what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .request import workload_text
from .text import NONE, Bullets, Column, Section, Table, bytes_text, count_text, figure, ms_text, render, section
from .validation import violation_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...tools.comparison.result import Change, ComparedFigure, Comparison, LimitCheck, Plain, Side

_BETTER = {"a": "A", "b": "B", "same": "same"}


def render_comparison(comparison: Comparison, *, width: int, bold: bool = False) -> str:
    """The report of `compare A B`."""
    sides = (("A", comparison.a), ("B", comparison.b))
    sections = [
        section("", _title("A", comparison.a), _title("B", comparison.b)),
        *(section(f"Of {name}, before its figures", Bullets(side.caveats)) for name, side in sides if side.caveats),
        section("In short", Bullets(comparison.verdict)),
        section("Side by side", _figures(comparison)),
        _limits_section(comparison),
        _binding_section(comparison),
        section("What changes from A to B", _changes(comparison.changes) or "Nothing."),
        section("Where they were asked different things", _changes(comparison.question)),
        *(_violation_section(name, side) for name, side in sides),
    ]
    return render(sections, width=width, bold=bold)


def _title(name: str, side: Side) -> str:
    cluster = f"{count_text(side.nodes, 'node')} × {side.gpus_per_node} {side.accelerator}"
    engine = " ".join(filter(None, (" with", side.engine, side.engine_version))) if side.engine else ""
    engine += " (as the other; it names none)" if side.takes_engine else ""
    state = "REFUSED by its engine" if side.refused else "valid"
    state = state if side.valid else f"NOT valid ({count_text(side.errors, 'error')})"
    warned = f", {count_text(side.warnings, 'warning')}" if side.warnings else ""
    layout = f"{side.summary} of {side.model} on {cluster}, {count_text(side.gpus, 'GPU')} used{engine}"
    return f"{name}: {side.title}: {layout}; {state}{warned}\n   {workload_text(side.workload, is_planned=False)}"


def _figures(comparison: Comparison) -> Table:
    columns = (
        Column(""),
        *Column.of_figures("A", "B", "B / A"),
        Column("ahead"),
    )
    rows = tuple(
        (
            row.title,
            shown_figure(row, row.a),
            shown_figure(row, row.b),
            NONE if row.ratio is None else f"{row.ratio:.2f}",
            _BETTER[row.better] if row.better else NONE,
        )
        for row in comparison.figures
    )
    return Table(columns, rows)


def shown_figure(compared: ComparedFigure, value: float | None) -> str:
    """`value`, one of the two of a compared figure, with its unit."""
    if value is None:
        return NONE
    if compared.unit == "ms":
        return ms_text(value)
    if compared.unit == "bytes":
        return bytes_text(value)
    return f"{figure(value)} {compared.unit}" if compared.unit in ("USD", "GPU-seconds") else figure(value)


def _limits_section(comparison: Comparison) -> Section:
    columns = (Column("limit"), Column("A", wraps=True), Column("B", wraps=True))
    names = dict.fromkeys(
        (limit.name, limit.statistic) for side in (comparison.a, comparison.b) for limit in side.limits
    )
    rows: list[tuple[str, ...]] = []
    for name, statistic in names:
        title = name if statistic == "mean" else f"{name} ({statistic})"
        cells = [
            next((_limit(limit) for limit in side.limits if (limit.name, limit.statistic) == (name, statistic)), NONE)
            for side in (comparison.a, comparison.b)
        ]
        rows.append((title, *cells))
    return section("Limits", Table(columns, tuple(rows)))


def _limit(limit: LimitCheck) -> str:
    bound, unit = ("at most", " ms") if limit.unit == "ms" else ("at least", "")
    if limit.figure is None:
        return f"not known, {bound} {figure(limit.limit)}{unit}"
    state = "held" if limit.holds else "MISSED"
    return f"{state}: {figure(limit.figure)}{unit} of {bound} {figure(limit.limit)}{unit}"


def _binding_section(comparison: Comparison) -> Section:
    columns = (Column("phase"), Column("A", wraps=True), Column("B", wraps=True))
    phases = dict.fromkeys(binding.phase for side in (comparison.a, comparison.b) for binding in side.binds)
    rows = tuple((phase, _binds(comparison.a, phase), _binds(comparison.b, phase)) for phase in phases)
    return section("What binds", Table(columns, rows))


def _binds(side: Side, phase: str) -> str:
    for binding in side.binds:
        if binding.phase == phase:
            largest = f"; most of all {binding.largest}" if binding.largest else ""
            return f"{binding.resource} ({binding.share_pct:.0f}% of its time){largest}"
    return NONE


def _changes(changes: Iterable[Change]) -> Table | None:
    columns = (Column(""), Column("A", wraps=True), Column("B", wraps=True))
    rows = tuple((change.what, _plain(change.a), _plain(change.b)) for change in changes)
    return Table(columns, rows) if rows else None


def _plain(value: Plain) -> str:
    return NONE if value is None else str(value)


def _violation_section(name: str, side: Side) -> Section:
    further = side.errors + side.warnings - len(side.violations)
    more = f"and {further:,} more (shardwright validate lists them)" if further > 0 else ""
    return section(f"Rules that {name} breaks or is warned by", *violation_blocks(side.violations), more)
