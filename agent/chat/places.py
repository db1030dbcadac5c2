"""Where sessions are kept, and which there are.

A session is a file in the folder `chats` of $SHARDWRIGHT_HOME or of the platform's usual place for data.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from pathlib import Path

from msgspec import Struct

from ...tools.errors import InputError
from ...tools.input.files import shown_path
from .session import Session

HOME = "SHARDWRIGHT_HOME"
SUFFIX = ".sqlite"
_MOST_LISTED = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Listed(Struct, frozen=True):
    """A session as a list shows it; `note` says why nothing more is known of it."""

    id: str
    changed: str
    turns: int = 0
    first: str = ""
    note: str = ""


def data_folder() -> Path:
    """Where sessions are kept.

    Raises:
        InputError: no place is known.
    """
    home = os.environ.get(HOME)
    if home:
        return Path(home).expanduser() / "chats"
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        else:
            base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    except RuntimeError:
        raise InputError(f"there is no home folder; name a folder for sessions in {HOME}") from None
    return base / "shardwright" / "chats"


def new_path() -> Path:
    """The path of a session that does not exist yet."""
    return data_folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}{SUFFIX}"


def path_of(name: str) -> Path:
    """The path of the session `name`: an id, or a file where it looks like one.

    Raises:
        InputError: it is neither.
    """
    if os.sep in name or (os.altsep and os.altsep in name) or name.endswith(SUFFIX):
        return Path(name)
    if not _ID.fullmatch(name):
        raise InputError(
            f"{name[:80]!r} is no name of a session: letters, digits, - and _, or a file ending in {SUFFIX}"
        )
    return data_folder() / f"{name}{SUFFIX}"


def name_of(path: Path) -> str:
    """The name by which `path_of` finds the session again: an id if it lies among all others, else its file.

    Raises:
        InputError: the folder in which it was named is gone.
    """
    try:
        if path.suffix == SUFFIX and _ID.fullmatch(path.stem) and path_of(path.stem).absolute() == path.absolute():
            return path.stem
        return str(path.absolute())
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}") from None


def existing_path(name: str | None) -> Path:
    """The path of a session that exists: `name`, or else the one that was used last.

    Raises:
        InputError: there is none.
    """
    if name is None:
        newest = next(iter(_files()), None)
        if newest is None:
            raise InputError(f"there is no session in {data_folder()} yet; begin one with: shardwright chat")
        return newest
    path = path_of(name)
    try:
        is_there = path.is_file()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        known = ", ".join(file.stem for file in _files()[:5])
        raise InputError(f"there is no session {name[:80]!r}" + (f"; the newest are: {known}" if known else ""))
    return path


def sessions() -> list[Listed]:
    """The sessions that there are, the newest first."""
    return [_listed(path) for path in _files()[:_MOST_LISTED]]


def _files() -> list[Path]:
    folder = data_folder()
    try:
        dated = [(path.stat().st_mtime, path) for path in folder.glob(f"*{SUFFIX}")]
    except OSError:
        return []
    return [path for _, path in sorted(dated, reverse=True)]


def _listed(path: Path) -> Listed:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
    try:
        with Session(path) as session:
            texts = [str(event.data.get("text", "")) for event in session.events() if event.kind == "turn"]
    except InputError as error:
        note = "in use" if "another process" in str(error) else "cannot be read"
        return Listed(path.stem, changed, note=note)
    first = " ".join(texts[0].split()) if texts else ""
    return Listed(path.stem, changed, len(texts), first[:80])
