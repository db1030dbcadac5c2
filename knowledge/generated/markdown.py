"""Markdown that generated pages are made of; whatever is put into a table or a line is text, never markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def plain(text: str) -> str:
    """`text` with what Markdown would read as markup escaped; code in backquotes stays as it is."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return "".join(f"\\{sign}" if sign in "*<>`" else sign for sign in text)
    for place in range(0, len(parts), 2):
        parts[place] = "".join(f"\\{sign}" if sign in "*<>" else sign for sign in parts[place])
    return "`".join(parts)
