"""Files: those of strangers read within bounds, our own written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from .errors import InputError


def read_bounded(path: Path, most_bytes: int, name: str, hint: str = "") -> bytes:
    """The bytes of the file at `path`, which errors call `name`; `hint` ends the line where it is too large.

    Raises:
        InputError: it cannot be read, or is larger than `most_bytes`.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most_bytes:
        raise InputError(f"{name}: larger than {most_bytes >> 20} MiB{hint}")
    return data


def utf8_text(data: bytes, name: str) -> str:
    """`data` as text, without a byte order mark; errors call it `name`.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text (byte {error.start})") from None


def replace_file(target: Path, data: bytes) -> None:
    """Write `data` to `target` so that it appears whole or not at all: a temporary file beside it, then a rename.

    Raises:
        OSError: the place cannot be written.
    """
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:  # an interrupt, too, must leave no temporary file
        temporary.unlink(missing_ok=True)
        raise
