"""Standard streams and files: bounded reading, whole-or-nothing writing.

It refuses input over its limit, text that is not UTF-8, and to leave a half-written file behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tools.errors import InputError
from ...tools.input import files
from ...tools.input.files import utf8_text
from .progress import make_way

if TYPE_CHECKING:
    from pydantic import BaseModel

STANDARD = "-"
# Options whose file grows while the command runs.
KEPT_OPEN = ("--journal", "--transcript")
MAX_REQUEST_BYTES = 1 << 20
DEFAULT_WIDTH = 100
# Narrower than this no table is legible; wider than this no line is.
WIDTH_LIMITS = (60, 140)


def is_standard(path: Path) -> bool:
    """Whether it is `-`: standard input where it is read, standard output where it is written."""
    return str(path) == STANDARD


def named_path(text: str) -> Path:
    """The path that `text` names: `./-` is a file, though `Path` alone takes it for `-`.

    Raises:
        InputError: it is a file in a folder that is gone.
    """
    path = Path(text)
    if not is_standard(path) or text == STANDARD:
        return path
    try:
        return path.absolute()
    except OSError as error:
        raise InputError(f"{text}: {error.strerror}") from None


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


def write_piece(text: str | bytes) -> None:
    """Write `text` as it is, without a newline, as `write_stdout` does.

    Raises:
        InputError: standard output cannot be written.
    """
    if isinstance(text, str):
        make_way(text)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", errors="replace") if isinstance(text, str) else text)
    sys.stdout.buffer.flush()


def write_json(model: BaseModel) -> None:
    """Write a result model as JSON and nothing else."""
    write_stdout(model.model_dump_json(indent=2))


def write_answer(answer: BaseModel, output_format: str, render: Callable[..., str], **told: Any) -> None:
    """Write the answer of a command: as JSON, or as the report that `render` makes of it, `told` more."""
    if output_format == "json":
        write_json(answer)
    else:
        write_stdout(render(answer, width=text_width(), bold=may_style(), **told))


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


def write_files(contents: Mapping[Path, str | bytes | None], report: Callable[[frozenset[Path]], None]) -> None:
    """Write each file, then call `report` with those that could not be written: a report is shown without them, too.

    `-` is standard output, which then has that document and nothing else: where there is none (`None`), the report is
    on standard error.

    Raises:
        InputError: the first of what could not be written.
    """
    unwritten: dict[Path, InputError] = {}
    for path, content in contents.items():
        try:
            if content is not None and not is_standard(path):
                write_file(path, content)
        except InputError as error:
            unwritten[path] = error
    promised = [content for path, content in contents.items() if is_standard(path)]
    if not promised:
        report(frozenset(unwritten))
    elif promised[0] is None:
        with redirect_stdout(sys.stderr):
            report(frozenset(unwritten))
    else:
        write_piece(promised[0])
    for error in unwritten.values():
        raise error


def write_saved(
    answer: BaseModel,
    output_format: str,
    render: Callable[..., str],
    place: Path | None,
    content: str | None,
    **told: Any,
) -> None:
    """Write `content` to `place`, if one is named, and the answer, whose report tells where that is (`saved_as`).

    Raises:
        InputError: as `write_files`.
    """

    def report(unwritten: frozenset[Path]) -> None:
        write_answer(answer, output_format, render, saved_as=None if place in unwritten else place, **told)

    write_files({} if place is None else {place: content}, report)


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
        if is_standard(path) and option in KEPT_OPEN:
            raise InputError(f"{option} {STANDARD}: is written to as the work goes on; name a file")
        target = path if is_standard(path) else files.file_place(path)
        if not is_standard(path) and files.is_special(target):  # what is written to a device replaces nothing
            continue
        if target in taken:
            raise InputError(f"{taken[target]} and {option} name one file: give each its own")
        taken[target] = option
    for path in inputs:
        read = None if path is None or is_standard(path) else _real_path(path)
        if read in taken and read.is_file():
            raise InputError(f"{taken[read]} {files.shown_path(read)}: is read here; name another file")


def _real_path(path: Path) -> Path | None:
    """Where a file that is read lies; `None` if that is not known, which opening it reports."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return None
