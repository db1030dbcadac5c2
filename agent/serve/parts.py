"""What the routes of one server share: its gates, its sessions, its counts, and the language model, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .jobs import Gates
from .observed import Counts
from .sessions import Sessions
from .settings import Settings

if TYPE_CHECKING:
    from ..agent import Agent


class Parts:
    """The parts of one server.

    `talks` are conversations that are recognised by their messages, `sessions` those that have an id.
    """

    def __init__(self, settings: Settings, agent: Agent | None = None, log: Callable[[str], None] | None = None):
        self.settings = settings
        self.agent = agent
        self.log = log
        self.counts = Counts()
        self.gates = Gates(settings.limits)
        half = replace(settings.limits, all_session_bytes=settings.limits.all_session_bytes // 2)
        self.sessions, self.talks = Sessions(half, agent), Sessions(half, agent)

    def close(self) -> None:
        """Nothing runs any more: give everything back."""
        self.sessions.close_all()
        self.talks.close_all()
