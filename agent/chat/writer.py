"""Writes one turn of a chat down and then shows it: what is shown is on the disk before, with all that it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..model.redaction import RedactedStream
from ..report.safe import harmless
from ..runs.spent import Spent, spent_together
from .outcome import Outcome, Planned, Speaker
from .record import Record, Turn
from .session import Document, EventKind
from .state import State, Version
from .words import title_of

# Pieces of streamed text are committed and shown when they are this long, or at the end of a line.
_PIECE_CHARACTERS = 60
_NOTHING = Spent()


class TurnWriter:
    """Writes one turn down and then shows it; text that comes in pieces goes through `hidden`, which redacts it."""

    def __init__(
        self,
        state: State,
        record: Record,
        turn: Turn,
        on_text: Callable[[str], None] | None,
        hidden: RedactedStream,
    ) -> None:
        self._state, self._record, self._turn, self._on_text = state, record, turn, on_text
        self._session, self._hidden = state.session, hidden
        self._piece = ""
        self.text = ""
        self.has_put = False

    @property
    def ends_line(self) -> bool:
        """Whether what is shown next begins a line."""
        return not self.text or self.text.endswith("\n")

    def note(self, text: str) -> None:
        """Show what the chat says of a model's words, on a line of its own."""
        self.flush()
        self._put(Outcome("ask", f"{'' if self.ends_line else chr(10)}{text}\n"), [])

    def say(self, piece: str) -> None:
        """Show a model's words, which come in pieces, each when it is long enough to be worth a write to the disk."""
        self._piece += self._hidden.feed(harmless(piece))
        if "\n" in self._piece or len(self._piece) >= _PIECE_CHARACTERS:
            self._show_piece()

    def flush(self) -> None:
        """Show what has come and was not shown yet."""
        self._piece += self._hidden.end()
        self._show_piece()

    def _show_piece(self) -> None:
        text, self._piece = self._piece, ""
        if text:
            self._show(self._written(text, [], by="model"), "model")

    def put(self, outcome: Outcome) -> None:
        """Put the outcome of a tool in force, and show it."""
        self.flush()
        self.has_put = True
        self._put(outcome, [])

    def spend(self, spent: Spent) -> None:
        """Write down what a language model took."""
        if spent != _NOTHING:
            self._session.add(("spent", spent.model_dump(mode="json")))
            self._record.spent = spent_together((self._record.spent, spent))

    def finish(self, outcome: Outcome) -> None:
        """Put the outcome of the turn in force, show it, and end the turn: all of it, or nothing."""
        self.flush()
        self._put(outcome, [("done", {"kind": outcome.kind})])
        self._turn.ending = outcome.kind

    def _put(self, outcome: Outcome, more: Sequence[tuple[EventKind, dict[str, Any]]]) -> None:
        state = self._state
        documents: list[Document] = []
        events: list[tuple[EventKind, dict[str, Any]]] = []
        versions: list[tuple[EventKind, Version]] = []
        named: tuple[tuple[EventKind, Planned | None], ...] = (("version", outcome.planned), ("aside", outcome.aside))
        for kind, planned in named:
            if planned is not None:
                version, needed = state.version_of(planned, title_of(planned.result))
                versions.append((kind, version))
                documents += needed
                changed = {"changes": outcome.changes, "title": version.title}
                events.append((kind, {"version": version.model_dump(mode="json"), **changed}))
        if outcome.moved_to is not None:
            title = state.versions[outcome.moved_to].title
            events.append(("moved", {"at": outcome.moved_to, "changes": outcome.changes, "title": f"back to {title}"}))
        text = self._written(harmless(outcome.text), [*events, *more], documents, outcome.speaker)
        for kind, version in versions:
            if kind == "version":
                state.push(version)
            else:
                state.aside = version
        if outcome.moved_to is not None:
            state.move(outcome.moved_to)
        for kind, data in events:
            if kind != "aside":
                self._record.decide(data)
        self._show(text, outcome.speaker)

    def _written(
        self,
        text: str,
        events: Sequence[tuple[EventKind, dict[str, Any]]],
        documents: Sequence[Document] = (),
        by: Speaker = "tools",
    ) -> str:
        """Commit what is about to be shown, with what it changes; the text as it may be shown."""
        text = self._session.redacted(text)
        named = {} if by == "tools" else {"by": by}
        shown: list[tuple[EventKind, dict[str, Any]]] = [("shown", {"text": text, **named})] if text else []
        self._session.add(*events[:-1], *shown, *events[-1:], documents=documents)
        return text

    def _show(self, text: str, by: Speaker) -> None:
        if text:
            self._turn.show(text, by)
            self.text += text
            if self._on_text is not None:
                self._on_text(text)
