"""The report of an ablation as text: its variants side by side, then what changed against the first."""

from __future__ import annotations

from collections.abc import Iterator

from ...report.text import NONE, Bullets, Column, Section, Table, render, section
from ..ablations.ablate import AblationReport, VariantReport
from ..results import FINAL
from .head import percent
from .text import change_line

_SHOWN = (("rules", "at_once"), ("rules", "after_fix"), ("rules", FINAL), ("equivalent", FINAL), ("regret", FINAL))


def render_ablation(report: AblationReport, *, width: int, bold: bool = False) -> str:
    """The report of `eval --ablate`."""
    head = (
        f"Ablation {report.name}: {report.question}",
        f"{report.dataset}, solver {report.solver}; dataset {report.dataset_hash[:16]}",
    )
    return render(
        [section("", *head), section("Variants", _table(report), _LEGEND), *_changes(report)], width=width, bold=bold
    )


_LEGEND = (
    "Of runs in which a model was asked: accepted is the share whose proposal was accepted, own that whose plan is "
    "the model's; corrections, tokens and gain (over the built-in plan, of all objectives) are means of a run. Rungs "
    "are of all cases; where no proposal of the model stands, a user gets the built-in proposer's plan."
)


def _table(report: AblationReport) -> Table:
    columns = (
        Column("variant"),
        *Column.of_figures("asked", "accepted", "own", "corrections", "tokens", "gain"),
        *(Column(f"{rung} {stage.replace('_', ' ')}", figures=True) for rung, stage in _SHOWN),
    )
    return Table(columns, tuple(_row(variant) for variant in report.variants))


def _row(variant: VariantReport) -> tuple[str, ...]:
    rates = [variant.rungs.get(rung, {}).get(stage) for rung, stage in _SHOWN]
    return (
        variant.name,
        str(variant.asked),
        percent(variant.accepted),
        percent(variant.own),
        f"{variant.corrections:.2f}",
        f"{variant.tokens:,.0f}" + ("*" if variant.tokens_estimated else ""),
        f"{variant.gains[-1].mean_pct:+.1f}%" if variant.gains else NONE,
        *(NONE if rate is None else percent(rate.rate) for rate in rates),
    )


def _changes(report: AblationReport) -> Iterator[Section]:
    for variant in report.variants[1:]:
        lines = tuple(change_line(change) for change in variant.changes if change.lost or change.gained)
        yield section(f"{variant.name} against {report.variants[0].name}", Bullets(lines))
