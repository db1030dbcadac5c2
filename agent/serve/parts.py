"""What the routes of one server share: its gates, its sessions, its counts, and the language model, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from ...tools.errors import ServiceError
from .jobs import Gate
from .observed import Counts
from .refusals import RefusalError
from .sessions import Sessions
from .settings import Settings

if TYPE_CHECKING:
    from ..agent import Agent

T = TypeVar("T")


@dataclass
class Parts:
    """The parts of one server. `long` lets work of seconds run, `short` what must not wait behind it.

    `talks` are conversations that are known by what was said in them, `sessions` those that have an id.
    """

    settings: Settings
    agent: Agent | None = None
    log: Callable[[str], None] | None = None
    counts: Counts = field(default_factory=Counts)
    long: Gate = field(init=False)
    short: Gate = field(init=False)
    sessions: Sessions = field(init=False)
    talks: Sessions = field(init=False)

    def __post_init__(self) -> None:
        limits = self.settings.limits
        self.long = Gate(limits.running, limits.waiting, limits.job_s, limits.wait_s)
        self.short = Gate(limits.short_running, limits.short_waiting, limits.job_s, limits.wait_s)
        half = replace(limits, all_session_bytes=limits.all_session_bytes // 2)
        self.sessions, self.talks = Sessions(half, self.agent), Sessions(half, self.agent)

    async def run(self, work: Callable[[], T], *, is_long: bool) -> T:
        """What `work` comes to, for applications that are mounted beside the routes.

        Raises:
            ServiceError: it was not taken on, or took too long.
        """
        try:
            return await (self.long if is_long else self.short).run(work)
        except RefusalError as refusal:
            raise ServiceError(refusal.message) from None

    def stop(self) -> None:
        """The server ends: what still runs is stopped."""
        self.long.stop()
        self.short.stop()

    def close(self) -> None:
        """Nothing runs any more: give everything back."""
        self.sessions.close_all()
        self.talks.close_all()
