"""What all reports are made of: sections, tables, wrapped paragraphs, bars, and figures with their units.

Text from documents and requests is data: control characters in it are replaced before anything reaches a terminal.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .safe import harmless

if TYPE_CHECKING:
    from rich.console import RenderableType

NONE = "–"
# The characters of the parts of a bar, in their order.
MARKS = "█▓▒░"
_INDENT = 2
_GAP = 2
# A column that wraps is never narrower than this, or words become columns of letters.
_LEAST_WRAPPED = 14


class Column(Struct, frozen=True):
    """One column of a table: figures are set to the right; a picture is left out where the width is short."""

    heading: str
    figures: bool = False
    wraps: bool = False
    picture: bool = False

    @classmethod
    def of_figures(cls, *headings: str) -> tuple[Column, ...]:
        """Columns of figures."""
        return tuple(cls(heading, figures=True) for heading in headings)


class Table(Struct, frozen=True):
    """Rows of cells under columns. Columns that wrap give way first; a table that is too wide still becomes a list.

    A figure is never cut: half a number is another number.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


class Bullets(Struct, frozen=True):
    """Paragraphs, each with a mark before it."""

    items: tuple[str, ...]
    mark: str = "•"


Block = str | Table | Bullets


class Section(Struct, frozen=True):
    """A heading (empty for the top of a report) and what stands below it; a section of nothing is not printed."""

    title: str
    blocks: tuple[Block, ...]


def section(title: str, *blocks: Block | None) -> Section:
    """A section of those blocks that hold anything."""
    return Section(title, tuple(block for block in blocks if block is not None and not _is_empty(block)))


def _is_empty(block: Block) -> bool:
    if isinstance(block, Table):
        return not block.rows
    return not block.items if isinstance(block, Bullets) else not block


def render(sections: Iterable[Section], *, width: int, bold: bool = False) -> str:
    """The report as text with lines of at most `width` columns; `bold` marks headings for a terminal."""
    parts: list[str] = []
    for part in sections:
        if not part.blocks:
            continue
        indent = _INDENT if part.title else 0
        body = "\n".join(_spaced(part.blocks, width - indent))
        indented = "\n".join(" " * indent + line if line else "" for line in body.split("\n"))
        if not part.title:
            parts.append(indented)
            continue
        title = harmless(part.title.replace("\n", " "))
        parts.append((f"\x1b[1m{title}\x1b[0m" if bold else title) + "\n" + indented)
    return "\n\n".join(parts) + "\n"


def _spaced(blocks: Sequence[Block], width: int) -> Iterator[str]:
    """The blocks as lines, each table but the first apart from what is above it."""
    tables = 0
    for block in blocks:
        if isinstance(block, Table):
            tables += 1
            if tables > 1:
                yield ""
        yield _lines(block, width)


def _lines(block: Block, width: int) -> str:
    if isinstance(block, str) and len(block) <= width and block.isascii() and block.isprintable():
        return block.rstrip()  # rich, which takes as long to load as some commands to run, leaves it as it is
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    fitting = _fitted(block, width) if isinstance(block, Table) else block
    console.print(_renderable(fitting), highlight=False, markup=False, emoji=False)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))


def _fitted(table: Table, width: int) -> Table | Bullets:
    """`table` as it fits into `width`: whole, else without its pictures, else as a list."""
    if _least_width(table) <= width:
        return table
    shown = [index for index, column in enumerate(table.columns) if not column.picture]
    plain = Table(
        tuple(table.columns[index] for index in shown),
        tuple(tuple(row[index] for index in shown) for row in table.rows),
    )
    return plain if _least_width(plain) <= width else _as_list(plain)


def _least_widths(table: Table) -> list[int]:
    """The least width of each column: at most `_LEAST_WRAPPED` for one that wraps."""
    from rich.cells import cell_len

    widths: list[int] = []
    for index, column in enumerate(table.columns):
        natural = max(cell_len(text) for text in (column.heading, *(row[index] for row in table.rows)))
        widths.append(min(natural, _LEAST_WRAPPED) if column.wraps else natural)
    return widths


def _least_width(table: Table) -> int:
    return sum(_least_widths(table)) + _GAP * (len(table.columns) - 1)


def _as_list(table: Table) -> Bullets:
    items: list[str] = []
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        items.append(", ".join(f"{column.heading}: {cell}" for column, cell in cells))
    return Bullets(tuple(items))


def _renderable(block: Block) -> RenderableType:
    from rich.table import Table as RichTable

    if isinstance(block, str):
        return _text(block)
    if isinstance(block, Bullets):
        marked = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
        marked.add_column(no_wrap=True)
        marked.add_column(overflow="fold")
        for item in block.items:
            marked.add_row(_text(block.mark), _text(item))
        return marked
    grid = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column, least in zip(block.columns, _least_widths(block), strict=True):
        grid.add_column(
            _text(column.heading),
            justify="right" if column.figures else "left",
            no_wrap=not column.wraps,
            overflow="fold",
            min_width=least,
        )
    for row in block.rows:
        grid.add_row(*(_text(cell) for cell in row))
    return grid


def _text(words: str) -> Any:
    from rich.text import Text

    return Text(harmless(words), overflow="fold")


def legend(names: Iterable[str]) -> str:
    """What each of `MARKS` stands for."""
    return "  ".join(f"{mark} {name}" for mark, name in zip(MARKS, names, strict=True))


def bar(parts: Sequence[tuple[str, float]], width: int) -> str:
    """A bar of `width` characters; each part is a character and its share, in order, what is left is `·`.

    A part that is not zero gets at least one character, so that a small term never looks absent; a bar whose parts
    exceed the whole ends in `!`.
    """
    filled = ""
    for mark, share in parts:
        if share > 0:
            filled += mark * max(1, round(share * width))
    # Shares of a whole may add up to a little more than it.
    if sum(share for _, share in parts) > 1 + 1e-9:
        return filled[: width - 1].ljust(width - 1, "█") + "!"
    return filled[:width].ljust(width, "·")


def bytes_text(count_bytes: float) -> str:
    """Bytes in decimal units, as hardware is sold: `17.6 GB`."""
    value = float(count_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{figure(value)} {unit}"


def figure(value: float) -> str:
    """A number with at least three significant digits, no exponent, thousands apart; whole numbers stay whole."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    decimals = 2 - math.floor(math.log10(size))
    return f"{value:.{min(decimals, 12)}f}"


def ms_text(value_ms: float) -> str:
    """A time in the unit that reads best: µs, ms or s."""
    if value_ms == 0:
        return "0 ms"
    if abs(value_ms) < 0.1:
        return f"{figure(value_ms * 1000)} µs"
    if abs(value_ms) >= 10_000:
        return f"{figure(value_ms / 1000)} s"
    return f"{figure(value_ms)} ms"


def ms_of(value: float | None) -> str:
    """The text of `value`, or a dash if it is absent."""
    return NONE if value is None else ms_text(value)


def figure_of(value: float | None) -> str:
    """The text of `value`, or a dash if it is absent."""
    return NONE if value is None else figure(value)


def bytes_of(value: int | None) -> str:
    """The text of `value`, or a dash if it is absent."""
    return NONE if value is None else bytes_text(value)


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """`1 GPU`, `1,024 GPUs`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def value_text(value: Any, limit: int = 120) -> str:
    """A value of a document or an intent, short enough for a line; what is no plain value is shown as JSON."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, float):
        text = f"{value:g}"
    elif isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        text = ", ".join(value) or "none"
    else:
        import json

        text = json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
