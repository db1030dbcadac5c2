"""The report of `export`: what was written and what to see to, or why the engine cannot run the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import Bullets, count_text, render, section

if TYPE_CHECKING:
    from ...tools.export.result import Export


def render_export(export: Export, *, title: str, width: int, bold: bool = False) -> str:
    """The report of `export FILE --to TARGET`."""
    engine = f"{export.engine} {export.engine_version}"
    subject = f"{title} ({export.strategy})"
    if export.refused:
        sections = [
            section("", f"Not exported: {engine} cannot {'trace' if export.target == 'chakra' else 'run'} {subject}"),
            section("Why", Bullets(export.refused)),
            section("The nearest that it can run", export.nearest),
        ]
        return render(sections, width=width, bold=bold)
    parts = count_text(len(export.folder), "file") if export.folder else count_text(len(export.launches), "command")
    sections = [
        section("", f"Exported: {subject} as {parts} of {engine}"),
        section("What to see to", Bullets(export.remarks)),
        section("What the engine does by itself", Bullets(export.by_itself)),
    ]
    return render(sections, width=width, bold=bold)
