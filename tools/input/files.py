"""Files: those of strangers read within bounds, our own written whole or not at all."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import InputError

# Streams that a caller hands over by a name: standard input, what a shell writes for `<(command)`, and the empty file.
_STREAM = re.compile(r"/dev/(?:stdin|null|fd/\d+)|/proc/(?:self|thread-self)/fd/\d+")
# Longer paths are shortened in messages.
_SHOWN_LETTERS = 300
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device")
)  # fmt: skip

_IS_SHUT: ContextVar[bool] = ContextVar("shardwright_files_are_shut", default=False)


@contextmanager
def without_files() -> Generator[None]:
    """Inside, no named file is opened, written or looked for: for requests that strangers send over a wire."""
    token = _IS_SHUT.set(True)
    try:
        yield
    finally:
        _IS_SHUT.reset(token)


def check_open(name: str) -> None:
    """See that files may be used here; errors call the file `name`.

    Raises InputError: they may not (`without_files`).
    """
    if _IS_SHUT.get():
        raise InputError(f"{name}: no file is opened here; send the content itself")


def is_there(path: str | Path, *, or_no_file: bool = False) -> bool:
    """Whether there is a file at `path`; with `or_no_file` a folder, a pipe or a broken link counts too.

    False where files may not be used, or `path` can be no path.
    """
    try:
        return not _IS_SHUT.get() and (os.path.lexists(path) if or_no_file else Path(path).is_file())
    except (OSError, ValueError):
        return False


def read_bounded(path: Path, most_bytes: int, name: str, hint: str = "", *, is_own: bool = False) -> bytes:
    """The bytes of the file at `path`, which errors call `name`; `hint` ends the line where it is too large.

    A file, or a stream that the caller holds open (`/dev/stdin`, `/dev/fd/63`): another named pipe may never be written
    to, and a device may never end. `is_own`: nobody named the path, it is one of ours. Raises InputError: it cannot be
    read, is no file, is larger than `most_bytes`, or files may not be used here.
    """
    with opened(path, name, is_own=is_own) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        size = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes:,} bytes"
        raise InputError(f"{name}: larger than {size}{hint}")
    return data


@contextmanager
def opened(path: Path, name: str, *, is_own: bool = False) -> Generator[io.BufferedIOBase]:
    """The file at `path`, to be read as it comes; else as `read_bounded`.

    Raises InputError: it cannot be read, is no file, or files may not be used here.
    """
    if not is_own:
        check_open(name)
    try:
        with io.BufferedReader(io.FileIO(path, opener=_opened_at_once)) as stream:
            kind = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(kind):
                _check_stream(path, kind, name)
                os.set_blocking(stream.fileno(), True)
            yield stream
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _opened_at_once(path: str, flags: int) -> int:
    # Opening a pipe that nobody writes to would wait for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _check_stream(path: Path, kind: int, name: str) -> None:
    """Check that something other than a file is a stream of the caller. Raises InputError: it is not."""
    kind_name = next((word for is_kind, word in _KINDS if is_kind(kind)), "not a file")
    if stat.S_ISBLK(kind) or not _STREAM.fullmatch(os.path.normpath(path.absolute())):
        raise InputError(f"{name}: is {kind_name}; name a file, or - for standard input")


def shipped(module: str, name: str) -> Any:
    """The JSON value in one of our own files: `name` in the folder `data` beside the module of that full name."""
    return json.loads(files(module.rpartition(".")[0]).joinpath("data", name).read_text(encoding="utf-8"))


def utf8_text(data: bytes, name: str) -> str:
    """`data` as text, without a byte order mark; errors call it `name`. Raises InputError: it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text (byte {error.start})") from None


def shown_path(path: Path) -> str:
    """`path` for people, on a line: unprintable characters are replaced, the middle of a long path is left out."""
    name = str(path)
    if len(name) > _SHOWN_LETTERS:
        name = f"{name[: _SHOWN_LETTERS // 2]}…{name[-_SHOWN_LETTERS // 2 :]}"
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def file_place(path: Path) -> Path:
    """Where a file named `path` is put: a link is written through, not replaced.

    Raises InputError: the folder is missing, or the place is a folder.
    """
    return _place(path, lambda target: "is a folder; name a file in it" if target.is_dir() else None)


def _place(path: Path, fault: Callable[[Path], str | None]) -> Path:
    """The resolved `path`, unless `fault` gives a reason against it.

    Raises InputError: it does, or the folder around it is missing.
    """
    name = shown_path(path)
    check_open(name)
    try:
        target = path.resolve()
        reason = fault(target)
        if reason is None and not target.parent.is_dir():
            reason = f"the folder {shown_path(target.parent)} does not exist"
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if reason is not None:
        raise InputError(f"{name}: {reason}")
    return target


def is_special(target: Path) -> bool:
    """Whether `target` is there and no file: a device or a named pipe, which can be written to but not replaced."""
    return target.exists() and not target.is_file()


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`: a file whole or not at all, a device or a named pipe as it comes.

    Raises InputError: the folder is missing, the place cannot be written, or nobody reads the pipe.
    """
    target = file_place(path)
    try:
        if is_special(target):
            _write_special(target, data)
            return
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is write-protected")
        replace_file(target, data)
    except OSError as error:
        is_unread = error.errno in (errno.ENXIO, errno.EPIPE)
        reason = "nobody reads this pipe" if is_unread else error.strerror or str(error)
        raise InputError(f"{shown_path(path)}: cannot be written: {reason}") from None


def folder_place(path: Path) -> Path:
    """Where a folder named `path` is put: nothing is there, or an empty folder.

    Raises InputError: something else is there, or the folder around it is missing.
    """

    def fault(target: Path) -> str | None:
        is_taken = target.exists() and not (target.is_dir() and not any(target.iterdir()))
        return "is there already; name a new folder" if is_taken else None

    return _place(path, fault)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files by their paths in it, so that it appears whole or not at all.

    Raises InputError: there is something at `path`, or it cannot be written.
    """
    target = folder_place(path)
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(6).hex()}.tmp")
    try:
        for name, data in contents.items():
            place = temporary / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        if target.exists():
            target.rmdir()
        temporary.rename(target)
    except OSError as error:
        raise InputError(f"{shown_path(path)}: cannot be written: {error.strerror or error}") from None
    finally:  # an interrupt, too, must leave no temporary folder
        shutil.rmtree(temporary, ignore_errors=True)


def _write_special(target: Path, data: bytes) -> None:
    # Opening a pipe that nobody reads would wait for ever.
    handle = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "wb") as stream:
        os.set_blocking(handle, True)
        stream.write(data)


def replace_file(target: Path, data: bytes) -> None:
    """Write `data` to `target` so that it appears whole or not at all: a temporary file beside it, then a rename.

    Raises OSError: the place cannot be written.
    """
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:  # an interrupt, too, must leave no temporary file
        temporary.unlink(missing_ok=True)
        raise
