"""The reports of `measure` and `calibrate`: what was timed, what was learned, and errors before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .safe import one_line
from .text import NONE, Block, Bullets, Column, Section, Table, figure_of, render, section

if TYPE_CHECKING:
    from pathlib import Path

    from ...tools.calibration.measure.run import MeasureReport
    from ...tools.fidelity.calibration_report import CalibrationReport, EngineLearned, KernelLearned

NOTES_SHOWN = 20
_FIGURES = {
    "ttft_ms": "TTFT, ms",
    "tpot_ms": "TPOT, ms",
    "e2e_ms": "end to end, ms",
    "makespan_ms": "whole batch, ms",
    "output_tok_s": "output tokens/s",
    "output_tok_s_per_gpu": "output tokens/s a GPU",
    "total_tok_s": "tokens/s, in and out",
    "total_tok_s_per_gpu": "the same a GPU",
}
# What the constants of an engine mean, for people.
_MEANINGS = {
    "host_step_ms": "host time of a step, ms",
    "host_sequence_us": "host time of each sequence in a step, us",
    "host_prefill_ms": "host time of a step with a prompt, ms",
    "memory_scale": "factor on matmuls and element-wise kernels bound by memory",
    "compute_scale": "factor on matmuls bound by arithmetic",
    "attention_scale": "factor on attention",
    "moe_fixed_scale": "factor on the fixed part of a MoE layer",
    "moe_scale": "factor on the rest of a MoE layer",
    "communication_scale": "factor on collectives",
    "recurrent_layer_us": "small kernels of a recurrent layer, us",
    "client_ms": "wait of the client beside the engine, ms",
    "client_token_us": "the same for each token of the prompt, us",
    "first_token_steps": "steps from the first token to its delivery",
}


def render_measure(report: MeasureReport, *, width: int, bold: bool = False, saved_as: Path | None = None) -> str:
    """The report of `measure`: what was timed, and where it went."""
    device = report.device if report.device == report.gpu else f"{report.device} ({report.gpu})"
    many = f"{report.devices} x " if report.devices > 1 else ""
    where = "" if saved_as is None else f", in {saved_as}"
    total = sum(table.rows for table in report.tables)
    sections = [
        section("", f"Measured on {many}{one_line(device)} with {report.src}: {total:,} rows{where}"),
        section("Rows by kernel", _counts(report)),
        _notes("Left out", report.left_out),
    ]
    if report.gpu == "cpu":
        sections.append(section("", "These are times of the host, for trying it out: calibrate refuses them."))
    return render(sections, width=width, bold=bold)


def _counts(report: MeasureReport) -> Table:
    return Table(
        (Column("kernel"), Column("rows", figures=True)),
        tuple((table.table, f"{table.rows:,}") for table in report.tables),
    )


def render_calibration(
    report: CalibrationReport, *, title: str, width: int, bold: bool = False, saved_as: Path | None = None
) -> str:
    """The report of `calibrate`: what was learned from the file that `title` names."""
    where = "" if saved_as is None else f", in {saved_as}"
    use = "" if saved_as is None else f"Use it: --calibration {saved_as} on estimate and plan."
    sections = [section("", f"Calibration {one_line(report.calibration.name)} from {title}{where}", use or None)]
    if report.kernels:
        sections.append(_kernels_section(report.kernels))
    for fit in report.engines:
        sections += _engine_sections(fit)
    sections.append(_notes("Assumed and left out", report.notes))
    return render(sections, width=width, bold=bold)


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def _kernels_section(kernels: Sequence[KernelLearned]) -> Section:
    names = ("rows", "unseen", "shipped %", "own %", "own p90 %")
    columns = (Column("kernel", wraps=True), Column("measured with"), *Column.of_figures(*names))
    rows = tuple(
        (
            f"{row.accelerator} {row.kernel} {row.variant}" + ("" if row.ranks is None else f" x{row.ranks}"),
            one_line(row.measured_with),
            f"{row.rows:,}",
            f"{row.held_back_rows:,}",
            _percent(row.shipped_pct),
            _percent(row.own_pct),
            _percent(row.own_p90_pct),
        )
        for row in kernels
    )
    return section(
        "Kernels: median error on shapes that took no part in the fit",
        Table(columns, rows),
        "shipped: by the constants that come with shardwright; own: by those fitted here.",
    )


def _engine_sections(fit: EngineLearned) -> list[Section]:
    name = f"{fit.engine} {fit.generation} on {fit.accelerator_class}"
    has_left_out = any(error.left_out_pct is not None for error in fit.errors)
    columns = (
        Column("figure"),
        *Column.of_figures("runs", "shipped %", "fitted %"),
        *((Column("left out %", figures=True),) if has_left_out else ()),
    )
    rows = tuple(
        (
            _FIGURES.get(error.figure, error.figure),
            f"{error.runs:,}",
            _percent(error.before_pct),
            _percent(error.after_pct),
            *((_percent(error.left_out_pct),) if has_left_out else ()),
        )
        for error in fit.errors
    )
    note = (
        "left out: by fits that did not see the run, which is what to expect of another run of this deployment."
        if has_left_out
        else "Errors are on the very runs of the fit: they say nothing of another run."
    )
    return [
        section(f"{name}: median error over {fit.runs} runs (began at {fit.began_at})", Table(columns, rows), note),
        section("What was learned", _changes(fit)),
        section("Runs", _runs(fit, has_left_out)),
    ]


def _changes(fit: EngineLearned) -> Block:
    if not fit.changes:
        return Bullets(("nothing: what ships fits as well",))
    columns = (Column("constant", wraps=True), *Column.of_figures("shipped", "fitted"))
    rows = tuple((_MEANINGS.get(c.name, c.name), f"{c.before:.3g}", f"{c.after:.3g}") for c in fit.changes)
    return Table(columns, rows)


def _runs(fit: EngineLearned, has_left_out: bool) -> Table:
    names = ("measured", "shipped", "fitted", *(("left out",) if has_left_out else ()))
    rows = tuple(
        (
            run.run,
            _FIGURES.get(run.figure, run.figure),
            *(
                figure_of(value)
                for value in (run.measured, run.before, run.after, *((run.left_out,) if has_left_out else ()))
            ),
        )
        for run in fit.figures
    )
    return Table((Column("run"), Column("figure"), *Column.of_figures(*names)), rows)


def _notes(title: str, notes: Sequence[str]) -> Section:
    if not notes:
        return section(title, None)
    shown = [one_line(note) for note in notes[:NOTES_SHOWN]]
    if len(notes) > NOTES_SHOWN:
        shown.append(f"and {len(notes) - NOTES_SHOWN} more (--format json has all)")
    return section(title, Bullets(tuple(shown)))
