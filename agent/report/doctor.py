"""The report of `doctor`: what was tried, what came of it, and what to set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.dialects.openai import OPENAI
from .text import NONE, Bullets, Column, Table, render, section

if TYPE_CHECKING:
    from ..model.doctor import DoctorReport

_VERDICTS = {0: "works", 1: "works, not well enough", 3: "is down"}


def render_doctor(report: DoctorReport, *, width: int, bold: bool = False) -> str:
    """The whole report."""
    rows = tuple(
        (check.name, check.state, NONE if check.ms is None else f"{check.ms:,.0f}", check.detail)
        for check in report.checks
    )
    columns = (Column("check"), Column("found"), Column("ms", figures=True), Column("detail", wraps=True))
    dialect = "" if report.dialect == OPENAI.name else f" ({report.dialect})"
    mode = "" if report.suits is None else f"; mode {report.suits} suits it"
    sections = [
        section("", f"{report.model} at {report.endpoint}{dialect} {_VERDICTS[report.exit_status]}{mode}"),
        section(f"Checks ({report.requests} requests)", Table(columns, rows)),
        section("What to do", Bullets(report.advice)),
    ]
    return render(sections, width=width, bold=bold)
