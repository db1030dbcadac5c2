"""Standard streams and files: bounded reading, whole-or-nothing writing, no traceback on a closed pipe.

It refuses input over its limit, text that is not UTF-8, and to leave a half-written file behind.
"""

from __future__ import annotations

import os
import sys
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


def read_stdin(limit_bytes: int) -> str:
    """All of standard input as text.

    Raises:
        InputError: it is longer than `limit_bytes` or is not UTF-8.
    """
    data = sys.stdin.buffer.read(limit_bytes + 1)
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
    data = text.encode("utf-8", errors="replace")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _abandon_stdout()
    except OSError as error:
        _abandon_stdout()
        raise InputError(f"standard output: {error.strerror or error}") from None


def _abandon_stdout() -> None:
    # What is left in the buffer would be written, and fail, once more when the interpreter ends.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


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


def check_place(path: Path) -> None:
    """Whether a file can be put at `path`, before anything is computed for it.

    Raises:
        InputError: the folder is missing, or the place is a folder.
    """
    files.file_place(path)
