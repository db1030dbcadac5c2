"""The report of `export`: what was written and what to see to, or why the engine cannot run the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import Bullets, count_text, render, section

if TYPE_CHECKING:
    from ...tools.export.result import Export


def render_export(found: Export, *, title: str, width: int, bold: bool = False) -> str:
    """The report of `export FILE --to TARGET`."""
    engine = f"{found.engine} {found.engine_version}"
    what = f"{title} ({found.strategy})"
    if found.refused:
        sections = [
            section("", f"Not exported: {engine} cannot {'trace' if found.target == 'chakra' else 'run'} {what}"),
            section("Why", Bullets(found.refused)),
            section("The nearest that it can run", found.nearest),
        ]
        return render(sections, width=width, bold=bold)
    parts = count_text(len(found.folder), "file") if found.folder else count_text(len(found.launches), "command")
    sections = [
        section("", f"Exported: {what} as {parts} of {engine}"),
        section("What to see to", Bullets(found.remarks)),
        section("What the engine does by itself", Bullets(found.by_itself)),
    ]
    return render(sections, width=width, bold=bold)
