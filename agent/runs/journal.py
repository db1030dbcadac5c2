"""Keeps what a long run has finished on disk, so that a run that ends early goes on where it was.

One JSON object a line: a header that names the run, then a row for each finished case under the hash of what was
asked. A line that was cut short is dropped, and its case runs again. A file that is no journal is never touched, and
two runs never write one journal.
"""

from __future__ import annotations

import os
import stat
from importlib.metadata import version
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Generic, Literal, Self, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from ...tools.errors import InputError
from ...tools.frozen import Frozen

Row = TypeVar("Row", bound=BaseModel)


class Form(Struct, Generic[Row], frozen=True):
    """The kind of a journal ("sweep"), the type of its rows, and the longest line of it."""

    of: str
    row: type[Row]
    most_line_bytes: int

    @property
    def name(self) -> str:
        """The `format` of its first line."""
        return f"shardwright/{self.of}-journal"

    @property
    def opening(self) -> bytes:
        """How the first line of every such journal begins."""
        return f'{{"format":"{self.name}"'.encode()


class _Header(Frozen):
    format: str
    version: Literal["1"] = "1"
    package: str
    run: str


class _Entry(Frozen, Generic[Row]):
    case: str
    row: Row


class Journal(Generic[Row]):
    """The journal at `path` for the run with this `digest`; a context manager that holds its lock.

    `rows` are the finished cases by key; `changed`: the last run was another one, of which the cases that
    are asked again are kept. Results of another version of the package are dropped.

    Raises:
        InputError: the file cannot be written, is no journal of this form, or another run is writing it.
    """

    def __init__(self, path: Path, form: Form[Row], digest: str, *, fresh: bool = False) -> None:
        self.path = path
        self.form = form
        self.rows: dict[str, Row] = {}
        self.changed = False
        self._entry = _Entry[form.row]
        self._header = _Header(format=form.name, package=version("shardwright"), run=digest)
        self._file = self._open()
        try:
            self._lock()
            last = None if fresh else self._read()
            if fresh:
                self._header_at_start()
                self._cut(0)
            if last != self._header:
                self.changed = last is not None
                self._write(self._header)
        except OSError as error:
            self._file.close()
            raise self._refusal(error) from None
        except BaseException:  # an interrupt, too, must leave no lock behind
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as fault:
            if error is None:
                raise self._refusal(fault) from None
        finally:
            self._file.close()

    def keep(self, key: str, row: Row) -> None:
        """Put the row of a finished case on disk."""
        self.rows[key] = row
        self._write(self._entry(case=key, row=row))

    def _open(self) -> BufferedReader:
        """The file, to read from; what is written goes behind its end, and into no buffer that could fail later."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise self._refusal(error) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise InputError(f"{self.path}: a journal is a file that can be read again, no device and no pipe")
        return os.fdopen(handle, "rb")

    def _refusal(self, error: OSError) -> InputError:
        return InputError(f"{self.path}: cannot be written: {error.strerror or error}")

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows has no such lock
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{self.path}: another {self.form.of} is writing here; wait for it, or name another output"
            ) from None

    def _write(self, entry: BaseModel) -> None:
        line = entry.model_dump_json().encode() + b"\n"
        try:
            # What has left this process is not lost when the process ends.
            while line:
                line = line[os.write(self._file.fileno(), line) :]
        except OSError as error:
            raise self._refusal(error) from None

    def _cut(self, length_bytes: int) -> None:
        os.ftruncate(self._file.fileno(), length_bytes)

    def _header_at_start(self) -> _Header | None:
        """The header at the start of the file, or `None` where the file is empty.

        Raises:
            InputError: the file holds something else.
        """
        self._file.seek(0)
        line = self._file.readline(self.form.most_line_bytes)
        if not line.endswith(b"\n") and (self.form.opening.startswith(line) or line.startswith(self.form.opening)):
            # Nothing yet, or a first line that was cut short.
            self._file.seek(0)
            return None
        header = self._header_in(line)
        if header is None:
            raise InputError(f"{self.path}: is no {self.form.of} journal; move it away, or name another output")
        return header

    def _header_in(self, line: bytes) -> _Header | None:
        """The header in a line, or `None` if the line is no header of this form."""
        try:
            header = _Header.model_validate_json(line)
        except ValidationError:
            return None
        return header if header.format == self.form.name else None

    def _read(self) -> _Header | None:
        """Read the rows on disk and return the last header; what stands behind the last whole line is cut off."""
        header = self._header_at_start()
        whole = self._file.tell()
        while line := self._file.readline(self.form.most_line_bytes):
            if not line.endswith(b"\n") and len(line) < self.form.most_line_bytes:
                break
            whole = self._file.tell()
            header = self._take(line, header)
        self._cut(whole)
        return header

    def _take(self, line: bytes, header: _Header | None) -> _Header | None:
        """Take in a line: a row, or the header of a later run; a line that cannot be read is a case that runs again."""
        try:
            entry = self._entry.model_validate_json(line)
        except ValidationError:
            return self._header_in(line) or header
        if header is not None and header.package == self._header.package:
            self.rows[entry.case] = entry.row
        return header
