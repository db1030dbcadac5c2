"""What a server is started with: where it listens, who may ask, and how much it takes on."""

from __future__ import annotations

import os

from msgspec import Struct, field

from ..runs.time_limit import TIME_LIMIT_S

MIB = 1 << 20


class Limits(Struct, frozen=True):
    """How much is taken on at once, how large and how long it may be. Times are seconds.

    `running` and `waiting` count long work, `short_running` and `short_waiting` what takes milliseconds.
    """

    running: int = field(default_factory=lambda: max(1, os.cpu_count() or 1))
    waiting: int = 100
    short_running: int = 4
    short_waiting: int = 512
    job_s: float = 180.0
    wait_s: float = 120.0
    document_bytes: int = 16 * MIB
    brief_bytes: int = 4 * MIB
    text_bytes: int = MIB
    # All bodies that are being read or wait for their work.
    held_bytes: int = 256 * MIB
    body_s: float = 30.0
    send_s: float = 60.0
    header_s: float = 20.0
    header_bytes: int = 32 << 10
    connections: int = 500
    stop_s: float = 5.0
    sessions: int = 64
    # For the searches of one turn, which then end with the best that they have.
    turn_s: float = TIME_LIMIT_S
    session_age_s: float = 24 * 3600.0
    session_turns: int = 400
    session_bytes: int = 64 * MIB
    all_session_bytes: int = 512 * MIB
    replayed_turns: int = 20


class Settings(Struct, frozen=True):
    """Where a server listens and who may ask it.

    `token`: what has to be shown in `Authorization: Bearer`; none is wanted where it is `None`. `names`: the names of
    hosts under which it is asked, beside addresses and those of this machine's own loopback.
    """

    is_loopback: bool = True
    token: str | None = None
    names: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)

    def __repr__(self) -> str:
        # Without the token.
        return f"{type(self).__name__}(is_loopback={self.is_loopback}, names={self.names}, limits={self.limits})"
