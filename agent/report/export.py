"""The report of `export`: what was written and what to see to, or why the engine cannot run the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import Bullets, count_text, render, section

if TYPE_CHECKING:
    from ...tools.export.result import Export


def render_export(exported: Export, *, title: str, width: int, bold: bool = False) -> str:
    """The report of `export FILE --to TARGET`."""
    engine = f"{exported.engine} {exported.engine_version}"
    subject = f"{title} ({exported.strategy})"
    if exported.refused:
        sections = [
            section("", f"Not exported: {engine} cannot {'trace' if exported.target == 'chakra' else 'run'} {subject}"),
            section("Why", Bullets(exported.refused)),
            section("The nearest that it can run", exported.nearest),
        ]
        return render(sections, width=width, bold=bold)
    parts = (
        count_text(len(exported.folder), "file") if exported.folder else count_text(len(exported.launches), "command")
    )
    sections = [
        section("", f"Exported: {subject} as {parts} of {engine}"),
        section("What to see to", Bullets(exported.remarks)),
        section("What the engine does by itself", Bullets(exported.by_itself)),
    ]
    return render(sections, width=width, bold=bold)
