"""What was said and shown in a chat, turn by turn, as it is read back from a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ...tools.language.said import Said
from ..runs.spent import Spent, spent_together
from .grounding import asked_in
from .outcome import Speaker
from .session import Event, Session
from .turn_input import Given

# Of a turn's text, what is kept at hand; the session has all of it.
_MOST_KEPT_CHARACTERS = 24_000
# Turns that are kept at hand.
MOST_TURNS = 40


class Part(Struct, frozen=True):
    """A part of what was shown in a turn, and who says it."""

    by: Speaker
    text: str


class Decision(Struct, frozen=True):
    """What the person decided: the turn, their words, the model's question that these answer, and what came of it."""

    turn: int
    words: str
    asked: str
    changes: tuple[str, ...]
    title: str


class Turn(Struct):
    """One turn: its number, what the person said, the place in the history at that time, what was shown.

    `said` is what briefs and options stated beside the words of a first turn, `given` what was set or opened without
    words of the person. `asked` is the model's question that was
    open then, and that its words may answer.
    `ending` is how it ended; `None` where it was cut off, or has not ended yet.
    """

    number: int
    text: str
    at: int
    said: tuple[Said, ...] = ()
    asked: str = ""
    given: Given | None = None
    parts: list[Part] = field(default_factory=list[Part])
    ending: str | None = None

    def show(self, piece: str, by: Speaker = "tools") -> None:
        """Add what was shown, as far as it is kept at hand."""
        piece = piece[: max(0, _MOST_KEPT_CHARACTERS - sum(len(part.text) for part in self.parts))]
        if piece and self.parts and self.parts[-1].by == by:
            piece = self.parts.pop().text + piece
        if piece:
            self.parts.append(Part(by, piece))

    @property
    def is_talk(self) -> bool:
        """Whether it is more than a command that the model had no part in."""
        return not self.text.startswith("/") or any(part.by == "model" for part in self.parts)

    @property
    def question(self) -> str:
        """What the model's last words in it ask; "" where they ask nothing."""
        return asked_in(next((part.text for part in reversed(self.parts) if part.by == "model"), ""))


class Record(Struct):
    """The last turns of a chat, what was decided in all, and what a language model took."""

    turns: list[Turn] = field(default_factory=list[Turn])
    decisions: list[Decision] = field(default_factory=list[Decision])
    count: int = 0
    spent: Spent = field(default_factory=Spent)

    def take(self, event: Event) -> None:
        """Read one event; those that are no turn's are passed over."""
        data = event.data
        if event.kind == "turn":
            said = tuple(Said.model_validate(statement) for statement in data.get("said", ()))
            given = None if "given" not in data else Given.model_validate(data["given"])
            self.begin(str(data.get("text", "")), int(data.get("at", -1)), said, given)
        elif event.kind == "shown" and self.turns:
            self.turns[-1].show(str(data.get("text", "")), data.get("by", "tools"))
        elif event.kind in ("version", "moved") and self.turns and "title" in data:
            self.decide(data)
        elif event.kind == "done" and self.turns:
            self.turns[-1].ending = str(data.get("kind", ""))
        elif event.kind == "spent":
            self.spent = spent_together((self.spent, Spent.model_validate(data)))

    def begin(self, text: str, at: int, said: tuple[Said, ...] = (), given: Given | None = None) -> Turn:
        """Begin a turn."""
        self.count += 1
        self.turns.append(Turn(self.count, text, at, said, self.question, given))
        del self.turns[:-MOST_TURNS]
        return self.turns[-1]

    def decide(self, data: Mapping[str, Any]) -> None:
        """Write down what a turn put in force; `data` is the event that did."""
        turn = self.turns[-1]
        changes = tuple(str(change) for change in data.get("changes", ()))
        self.decisions.append(Decision(turn.number, turn.text, turn.asked, changes, str(data.get("title", ""))))

    @property
    def question(self) -> str:
        """What the model asked last and the next words may answer; commands after it leave it open."""
        last = next((turn for turn in reversed(self.turns) if turn.is_talk), None)
        return "" if last is None else last.question

    @property
    def cut_off(self) -> Turn | None:
        """The last turn, where it was cut off."""
        last = self.turns[-1] if self.turns else None
        return last if last is not None and last.ending is None else None


def log_text(events: Iterable[Event]) -> Iterator[str]:
    """Everything that was said and shown, piece by piece, as it stood on the screen."""
    is_line_start = True
    for event in events:
        text = str(event.data.get("text", ""))
        if event.kind == "turn":
            yield f"{'' if is_line_start else chr(10)}> {text}\n"
            is_line_start = True
        elif event.kind == "shown" and text:
            yield text
            is_line_start = text.endswith("\n")


def shown_before(session: Session) -> str:
    """`log_text` of a whole session."""
    return "".join(log_text(session.events()))
