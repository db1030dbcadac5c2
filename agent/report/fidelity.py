"""The report of `fidelity`: errors per family beside the roofline's, what scales and ranks, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .text import NONE, Bullets, Column, Section, Table, render, section

if TYPE_CHECKING:
    from ...tools.fidelity.scores import Errors, FamilyScore, FidelityReport, GroupScore, OrderScore, ScalingScore

WORST_SHOWN = 8
REASONS_SHOWN = 10
_NAMES = {
    "tpot": "TPOT, ITL",
    "ttft-low": "TTFT, at most 8 requests",
    "ttft-load": "TTFT under load",
    "e2e": "end to end",
    "throughput": "throughput",
}


def render_fidelity(report: FidelityReport, *, title: str, width: int, bold: bool = False) -> str:
    """The whole report; `title` says of which table."""
    scores = report.scores
    share = f"{report.modelled:,} of {report.rows:,} rows modelled ({report.modelled_pct:.1f}%)"
    sections = [
        section("", f"Fidelity on {title}: {share}"),
        section(
            "Absolute error in %, groups weighted equally",
            _family_table(scores.families, "metric"),
            "A group is one source, model, GPU and layout; bias above 0 is too high a prediction. The roofline is the "
            "same simulation at the datasheet's rates: no efficiency, no host.",
        ),
        section("By tier of the measurements", _family_table(scores.tiers, "tier")),
        section("By source", _family_table(scores.sources, "source")),
        section("Order of layouts (Kendall's tau)", _order_table(scores.order)),
        section("What widening TP brings", _scaling_table(scores.scaling)),
        _memory_section(report),
        section("Worst groups", _worst_table(scores.groups)),
        _reasons_section(report),
    ]
    return render(sections, width=width, bold=bold)


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def _signed(value: float) -> str:
    return f"{value:+.1f}" if abs(value) < 1000 else f"{value:+.0f}"


def _error_cells(model: Errors, roofline: Errors | None) -> tuple[str, ...]:
    beside = (NONE, NONE) if roofline is None else (_percent(roofline.median_pct), _percent(roofline.p90_pct))
    return (_percent(model.median_pct), _percent(model.p90_pct), _signed(model.bias_pct), *beside)


def _family_table(scores: Sequence[FamilyScore], heading: str) -> Table:
    named = heading != "metric"
    columns = (
        *((Column(heading),) if named else ()),
        Column("metric", wraps=True),
        *(
            Column(name, figures=True)
            for name in ("groups", "rows", "median", "p90", "bias", "roofline median", "roofline p90")
        ),
    )
    rows = tuple(
        (
            *((score.of,) if named else ()),
            _NAMES[score.family],
            f"{score.groups:,}",
            f"{score.rows:,}",
            *_error_cells(score.model, score.roofline),
        )
        for score in scores
    )
    return Table(columns, rows)


def _order_table(scores: Iterable[OrderScore]) -> Table:
    columns = (Column("metric"), *Column.of_figures("sets", "tau", "roofline's tau"))
    return Table(
        columns,
        tuple(
            (
                _NAMES.get(score.of, score.of),
                f"{score.sets:,}",
                f"{score.tau:.2f}",
                NONE if score.roofline_tau is None else f"{score.roofline_tau:.2f}",
            )
            for score in scores
        ),
    )


def _scaling_table(scores: Iterable[ScalingScore]) -> Table:
    columns = (
        Column("metric"),
        Column("TP"),
        *Column.of_figures("groups", "measured", "predicted", "error %"),
    )
    return Table(
        columns,
        tuple(
            (
                _NAMES[score.family],
                f"{score.from_tp} to {score.to_tp}",
                f"{score.groups:,}",
                f"{score.measured_speedup:.2f}x",
                f"{score.predicted_speedup:.2f}x",
                _percent(score.error_pct),
            )
            for score in scores
        ),
    )


def _memory_section(report: FidelityReport) -> Section:
    memory = report.peak_memory
    if memory is None:
        return section("Peak memory of a GPU", None)
    return section(
        "Peak memory of a GPU",
        f"median error {memory.median_pct:.1f}%, p90 {memory.p90_pct:.1f}%, bias {memory.bias_pct:+.1f}% "
        f"over {memory.rows:,} deployments and loads",
    )


def _worst_table(groups: Sequence[GroupScore]) -> Table:
    worst = sorted(groups, key=lambda group: group.error_pct, reverse=True)[:WORST_SHOWN]
    columns = (
        Column("metric", wraps=True),
        Column("source"),
        Column("model", wraps=True),
        Column("GPU"),
        Column("layout"),
        *Column.of_figures("rows", "error %", "bias %"),
    )
    return Table(
        columns,
        tuple(
            (
                _NAMES[group.family],
                group.source,
                group.model,
                group.gpu,
                _layout_text(group),
                f"{group.rows:,}",
                _percent(group.error_pct),
                _signed(group.bias_pct),
            )
            for group in worst
        ),
    )


def _layout_text(group: GroupScore) -> str:
    degrees = {"tp": group.tp, "pp": group.pp, "ep": group.ep, "dp": group.dp}
    return " ".join(f"{name}{value}" for name, value in degrees.items() if value not in ("", "1")) or "tp1"


def _reasons_section(report: FidelityReport) -> Section:
    shown = report.not_modelled[:REASONS_SHOWN]
    further_rows = sum(reason.rows for reason in report.not_modelled[REASONS_SHOWN:])
    items = [f"{reason.rows:,} row{'' if reason.rows == 1 else 's'}: {reason.reason}" for reason in shown]
    if further_rows:
        items.append(f"{further_rows:,} rows for other reasons (-o lists each)")
    return section("Not modelled", Bullets(tuple(items)))
