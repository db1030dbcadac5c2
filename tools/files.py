"""Files of strangers as bytes and text: never more than was asked for, one line where that is not possible."""

from __future__ import annotations

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
