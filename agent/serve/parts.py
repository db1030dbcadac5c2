"""What the routes of one server share: its gates, its sessions, its counts, and the language model, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .jobs import Gates
from .observed import Counts
from .sessions import Sessions
from .settings import Settings

if TYPE_CHECKING:
    from ..agent import Agent


@dataclass
class Parts:
    """The parts of one server.

    `talks` are conversations that are known by what was said in them, `sessions` those that have an id.
    """

    settings: Settings
    agent: Agent | None = None
    log: Callable[[str], None] | None = None
    counts: Counts = field(default_factory=Counts)
    gates: Gates = field(init=False)
    sessions: Sessions = field(init=False)
    talks: Sessions = field(init=False)

    def __post_init__(self) -> None:
        limits = self.settings.limits
        self.gates = Gates(limits)
        half = replace(limits, all_session_bytes=limits.all_session_bytes // 2)
        self.sessions, self.talks = Sessions(half, self.agent), Sessions(half, self.agent)

    def close(self) -> None:
        """Nothing runs any more: give everything back."""
        self.sessions.close_all()
        self.talks.close_all()
