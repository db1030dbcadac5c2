"""Standard streams and files: bounded reading, whole-or-nothing writing.

It refuses input over its limit, text that is not UTF-8, and to leave a half-written file behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools import files
from ...tools.errors import InputError
from ...tools.files import utf8_text

if TYPE_CHECKING:
    from pydantic import BaseModel

STANDARD = "-"
MAX_REQUEST_BYTES = 1 << 20
DEFAULT_WIDTH = 100
# Narrower than this no table is legible; wider than this no line is.
WIDTH_LIMITS = (60, 140)


def check_stdin() -> None:
    """Whether there is a standard input, before anything is done with what it will say.

    Raises:
        InputError: it is closed.
    """
    if sys.stdin is None:
        raise InputError("standard input: is closed")


def stdin_bytes(most_bytes: int, *, is_line: bool = False) -> bytes:
    """So many bytes of standard input, or less where it (or, with `is_line`, the line) ends before.

    Raises:
        InputError: it cannot be read.
    """
    check_stdin()
    try:
        return sys.stdin.buffer.readline(most_bytes) if is_line else sys.stdin.buffer.read(most_bytes)
    except OSError as error:
        raise InputError(f"standard input: cannot be read: {error.strerror or error}") from None


def read_stdin(limit_bytes: int) -> str:
    """All of standard input as text.

    Raises:
        InputError: it cannot be read, is longer than `limit_bytes` or is not UTF-8.
    """
    data = stdin_bytes(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise InputError(f"standard input: larger than {limit_bytes:,} bytes")
    return utf8_text(data, "standard input")


def write_stdout(text: str) -> None:
    """Write `text` as UTF-8 and a newline; a reader that has gone away is no error.

    Raises:
        InputError: standard output cannot be written (a full disk).
    """
    write_piece(text if text.endswith("\n") else text + "\n")


def write_piece(text: str) -> None:
    """Write `text` as it is, whose line may go on, as `write_stdout`.

    Raises:
        InputError: standard output cannot be written.
    """
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", errors="replace"))
    sys.stdout.buffer.flush()


def write_json(model: BaseModel) -> None:
    """Write a result model as JSON and nothing else."""
    write_stdout(model.model_dump_json(indent=2))


def text_width() -> int:
    """Columns that a report may use: the terminal's (or $COLUMNS), else 100."""
    import shutil

    columns = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return max(WIDTH_LIMITS[0], min(WIDTH_LIMITS[1], columns))


def may_style() -> bool:
    """Whether headings may be bold: a terminal that did not ask for plain text (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and "NO_COLOR" not in os.environ
        and os.environ.get("TERM") != "dumb"
    )


def write_file(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` so that it appears whole or not at all (a temporary file beside it, then a rename).

    Raises:
        InputError: the folder is missing, or the place cannot be written.
    """
    files.write_file(path, content.encode("utf-8") if isinstance(content, str) else content)


def write_files(contents: Mapping[Path, str | bytes], report: Callable[[frozenset[Path]], None]) -> None:
    """Write each file, then `report` with those that were not to be written: a report is shown without them, too.

    Raises:
        InputError: the first of what could not be written.
    """
    unwritten: dict[Path, InputError] = {}
    for path, content in contents.items():
        try:
            write_file(path, content)
        except InputError as error:
            unwritten[path] = error
    report(frozenset(unwritten))
    for error in unwritten.values():
        raise error


def check_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Whether a file can be put at each of `outputs`, by option, before anything is computed for it.

    Raises:
        InputError: a folder is missing, a place is a folder, two options name one file, or one of `inputs` would be
            written over.
    """
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        target = files.file_place(path)
        if files.is_special(target):  # what is written to a device replaces nothing
            continue
        if target in taken:
            raise InputError(f"{taken[target]} and {option} name one file: give each its own")
        taken[target] = option
    for path in inputs:
        read = None if path is None or str(path) == STANDARD else os.path.realpath(path)
        if read is not None and Path(read) in taken and Path(read).is_file():
            raise InputError(f"{taken[Path(read)]} {files.shown_path(Path(read))}: is read here; name another file")
