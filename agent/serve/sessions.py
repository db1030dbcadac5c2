"""Conversations in memory: bounded in number, age, turns and bytes, each under an id that nobody guesses."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...tools.input.files import without_files
from ..chat.chat import Chat
from ..chat.known_secrets import Keeper
from ..chat.outcome import ChatAnswer
from ..chat.session import Session
from ..chat.turn_input import Given
from .answering import packed
from .refusals import RefusalError
from .settings import Limits
from .turns import Current, TurnQuestion

if TYPE_CHECKING:
    from ..agent import Agent

_ID_BYTES = 24
_SHOWN_WORDS = 120


class Held:
    """One conversation. One turn is taken at a time; `shown` is what was said and the current plan, as JSON."""

    def __init__(self, limits: Limits, agent: Agent | None) -> None:
        self.id = secrets.token_urlsafe(_ID_BYTES)
        self.begun = self.used = time.time()
        self.first = ""
        self._limits = limits
        keeper = Keeper(None if agent is None else agent.client)
        session = Session(None, keeper.text, limits.session_bytes)
        self._chat = Chat(session, agent=agent, time_limit_s=limits.turn_s)
        self._taken = threading.Lock()
        self.bytes, self.turns, self.shown = 0, 0, b""
        self._show()

    @property
    def is_busy(self) -> bool:
        """Whether a turn is being taken."""
        return self._taken.locked()

    def take(self) -> None:
        """Take the next turn; `leave` has to follow.

        Raises:
            RefusalError: one is being taken, or there were too many.
        """
        if self.turns >= self._limits.session_turns:
            raise RefusalError(400, "input", f"this session has had its {self.turns} turns; begin another one")
        if not self._taken.acquire(blocking=False):
            raise RefusalError(409, "busy", "a turn of this session is under way; wait for its answer", retry_after_s=1)

    def leave(self) -> None:
        """End the turn."""
        self.used = time.time()
        self._taken.release()

    def say(self, text: str, on_text: Callable[[str], None] | None = None, given: Given | None = None) -> ChatAnswer:
        """The answer to `text`, or to what is `given` by that name, in the thread of a job that has taken the turn."""
        self.first = self.first or " ".join(text.split())[:_SHOWN_WORDS]
        try:
            with without_files():
                return self._chat.say(text, on_text) if given is None else self._chat.give(text, given, on_text)
        finally:
            self._show()

    def answer(self, question: TurnQuestion, on_text: Callable[[str], None]) -> bytes:
        """As `say`: the answer as JSON, with the plan that is current from now on.

        Raises:
            InputError: what the turn is given cannot be read; then it is no turn.
        """
        with without_files():
            given = question.given()
        answered = self.say(question.text, on_text, given).model_dump_json().encode()
        return answered[:-1] + b"," + self._current()[1:]

    def listed(self) -> dict[str, Any]:
        """A line of the list of sessions."""
        return {"id": self.id, "first": self.first, "begun": self.begun, "used": self.used, "turns": self.turns}

    def close(self) -> None:
        """Give its memory back."""
        self._chat.close()

    def _current(self) -> bytes:
        return Current.after(self._chat.state.now, len(self._chat.record.decisions)).model_dump_json().encode()

    def _show(self) -> None:
        record = self._chat.record
        turns = [
            {"turn": turn.number, "input": turn.text, "text": "".join(part.text for part in turn.parts),
             "kind": turn.ending, "is_given": turn.given is not None}
            for turn in record.turns
        ]  # fmt: skip
        self.turns, self.bytes = record.count, self._chat.session.size_bytes()
        self.shown = packed(turns) + b"," + self._current()[1:]

    def whole(self) -> bytes:
        """Everything that is shown of it."""
        return packed({**self.listed(), "busy": self.is_busy})[:-1] + b',"said":' + self.shown


class Sessions:
    """The conversations of one server. The one that was left alone longest gives way to a new one."""

    def __init__(self, limits: Limits, agent: Agent | None) -> None:
        self._limits, self._agent = limits, agent
        self._by_id: dict[str, Held] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, *, is_taken: bool = False) -> Held:
        """A new conversation, its first turn taken where that is wanted.

        Raises:
            RefusalError: there are too many, and turns are being taken in all of them.
        """
        new = Held(self._limits, self._agent)
        if is_taken:
            new.take()
        with self._lock:
            while not self._has_room():
                idle = [session for session in self._by_id.values() if not session.is_busy]
                if not idle:
                    new.close()
                    raise RefusalError(429, "busy", f"{len(self._by_id)} sessions are at work", retry_after_s=5)
                self._drop(min(idle, key=lambda session: session.used))
            self._by_id[new.id] = new
        return new

    def find(self, name: str) -> Held:
        """The conversation with that id.

        Raises:
            RefusalError: there is none, or none any more.
        """
        with self._lock:
            return self._existing(name)

    def taken(self, name: str) -> Held:
        """As `find`, and its next turn is taken (`Held.take`) before it could give way to others.

        Raises:
            RefusalError: as `find` and `Held.take`.
        """
        with self._lock:
            session = self._existing(name)
            session.take()
            return session

    def delete(self, name: str) -> None:
        """End a conversation.

        Raises:
            RefusalError: there is none, or a turn of it is under way.
        """
        with self._lock:
            session = self._existing(name)
            if session.is_busy:
                raise RefusalError(409, "busy", "a turn of this session is under way", retry_after_s=1)
            self._drop(session)

    def _existing(self, name: str) -> Held:
        self._drop_old()
        session = self._by_id.get(name)
        if session is None:
            raise RefusalError(404, "not_found", "there is no such session, or it was too old; begin another one")
        return session

    def listed(self) -> list[dict[str, Any]]:
        """All of them, the last used first."""
        with self._lock:
            self._drop_old()
            return [session.listed() for session in sorted(self._by_id.values(), key=lambda session: -session.used)]

    def close_all(self) -> None:
        """End all of them in which no turn is being taken."""
        with self._lock:
            for session in list(self._by_id.values()):
                if not session.is_busy:
                    self._drop(session)

    def _has_room(self) -> bool:
        self._drop_old()
        used = sum(session.bytes for session in self._by_id.values())
        return len(self._by_id) < self._limits.sessions and used < self._limits.all_session_bytes

    def _drop_old(self) -> None:
        oldest = time.time() - self._limits.session_age_s
        for session in [session for session in self._by_id.values() if session.used < oldest and not session.is_busy]:
            self._drop(session)

    def _drop(self, session: Held) -> None:
        del self._by_id[session.id]
        session.close()
