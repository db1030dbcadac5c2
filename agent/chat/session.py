"""A chat on disk: everything that was said and shown, in the order in which it was, in one SQLite file.

Events are only ever appended, and each is on the disk before `add` returns: what is shown after that cannot be lost. A
file belongs to one process at a time. It refuses files of a version that it does not know, and holds no secret: every
text goes through `redact` before it is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from msgspec import Struct

from ...tools.errors import InputError
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import MAX_WRAPPED_DEPTH

SCHEMA_VERSION = 1
# "SWch": tells our files from any other SQLite file.
_APPLICATION_ID = 0x53576368
# A session is text and a few plans; beyond this something is wrong, and a new one is begun.
MAX_SESSION_BYTES = 1 << 30
_PAGE_BYTES = 4096
# A document of a plan, unpacked.
MAX_DOCUMENT_BYTES = 256 << 20

# `turn`: what the person said. `shown`: a piece of what was shown. `version`: a request with its plan, the current one
# from then on. `moved`: another of the versions is the current one. `aside`: a plan that was looked at and not taken.
# `spent`: what a language model took. `done`: how a turn ended.
EventKind = Literal["turn", "shown", "version", "moved", "aside", "spent", "done"]

_SCHEMA = (
    "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL) STRICT",
    "CREATE TABLE documents (hash TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT",
)


class Event(Struct, frozen=True):
    """One thing that happened in a chat."""

    seq: int
    kind: EventKind
    data: dict[str, Any]


class Document(Struct, frozen=True):
    """A text that is kept once, under its hash."""

    hash: str
    data: bytes


class Session:
    """The events and documents of one chat, of at most `most_bytes`. It is used by one thread at a time.

    Raises:
        InputError: the file cannot be opened, is no session, is of an unknown version, or another process has it.
    """

    def __init__(
        self, path: Path | None, redact: Callable[[str], str] = str, most_bytes: int = MAX_SESSION_BYTES
    ) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._redact = redact
        self._name = "the session" if path is None else str(path)
        if path is not None:
            _make_private(path)
        try:
            where = ":memory:" if path is None else path
            with self._usable():
                # Turns that are awaited are each answered in a thread of their own, one at a time.
                self._db = sqlite3.connect(where, timeout=0.2, isolation_level=None, check_same_thread=False)
                self._prepare()
        except InputError:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        """Take the file for this process alone, and check that it is ours."""
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(f"PRAGMA max_page_count = {self._most_bytes // _PAGE_BYTES}")
        # The first write takes the lock, which is held until the process ends, however it ends.
        self._db.execute("BEGIN EXCLUSIVE")
        (owner,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner == 0 and version == 0 and tables == 0:
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif owner != _APPLICATION_ID:
            raise InputError(f"{self._name}: not a chat session of shardwright; name another file")
        elif version != SCHEMA_VERSION:
            raise InputError(
                f"{self._name}: version {version} of sessions is not known, this reads {SCHEMA_VERSION}; "
                "use the shardwright that wrote it, or begin a new session"
            )
        self._db.execute("COMMIT")

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Refuse what the database refuses; what it says of a damaged file may itself be no text."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            text = str(error) if isinstance(error, sqlite3.Error) else "it is damaged"
            if "locked" in text or "busy" in text:
                why = "another process has this session open; end that chat or begin a new one"
            elif "full" in text:
                why = "cannot be written: the disk or the session is full; begin a new session"
            else:
                why = f"cannot be used as a session: {text}"
            raise InputError(f"{self._name}: {why}") from None

    def document_of(self, text: str) -> Document:
        """`text` as a document that can be kept."""
        data = self._redact(text).encode()
        return Document(document_hash(data), data)

    def add(self, *events: tuple[EventKind, Mapping[str, Any]], documents: Iterable[Document] = ()) -> None:
        """Append events, all or none; when this returns they are on the disk.

        Raises:
            InputError: they cannot be written.
        """
        rows = [(kind, self._redact(json.dumps(dict(data), ensure_ascii=False))) for kind, data in events]
        packed = [(document.hash, zlib.compress(document.data, 6)) for document in documents]
        try:
            with self._usable():
                self._db.execute("BEGIN")
                try:
                    self._db.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?)", packed)
                    self._db.executemany("INSERT INTO events (kind, data) VALUES (?, ?)", rows)
                except BaseException:  # an interrupt, too, must leave no transaction open
                    if self._db.in_transaction:  # a full one was rolled back already
                        self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
        except UnicodeEncodeError:
            raise InputError("the text is not UTF-8") from None

    def redacted(self, text: str) -> str:
        """`text` as it may be kept and shown."""
        return self._redact(text)

    def events(self) -> Iterator[Event]:
        """All events, in order.

        Raises:
            InputError: the file is damaged.
        """
        with self._usable():
            for seq, kind, data in self._db.execute("SELECT seq, kind, data FROM events ORDER BY seq"):
                text = data if isinstance(data, str) else ""
                value = parse(text, f"{self._name}: damaged event", most_depth=MAX_WRAPPED_DEPTH)
                if not isinstance(value, dict):
                    raise InputError(f"{self._name}: damaged: an event is no object")
                yield Event(seq, kind, value)

    def document(self, name: str) -> bytes:
        """The document whose hash is `name`.

        Raises:
            InputError: there is none, or it is damaged.
        """
        with self._usable():
            row = self._db.execute("SELECT data FROM documents WHERE hash = ?", (name,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise InputError(f"{self._name}: damaged: a plan is missing")
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(row[0], MAX_DOCUMENT_BYTES)
        except zlib.error as error:
            raise InputError(f"{self._name}: damaged: {error}") from None
        if unpacker.unconsumed_tail or document_hash(data) != name:
            raise InputError(f"{self._name}: damaged: a plan is not the one that was kept")
        return data

    def size_bytes(self) -> int:
        """How large it is by now."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        return pages * _PAGE_BYTES

    def close(self) -> None:
        """Give the file back."""
        database = getattr(self, "_db", None)
        if database is not None:
            database.close()


def document_hash(data: bytes) -> str:
    """The name of a document."""
    return hashlib.sha256(data).hexdigest()


def _make_private(path: Path) -> None:
    """Make `path` a file that only its owner may read; WAL and lock files take its mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file that is there is not opened: closing it would give up the locks that this process has on it.
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{path}: cannot be used as a session: {reason}") from None
