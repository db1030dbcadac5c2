"""What was said and shown in a chat, turn by turn, as it is read back from a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...tools.language.said import Said
from ..spent import Spent
from .session import Event, Session

# Of a turn's text, what is kept at hand; the session has all of it.
_MOST_KEPT_CHARACTERS = 4_000
# Turns that are kept at hand.
MOST_TURNS = 40


@dataclass
class Turn:
    """One turn: its number, what the person said, the place in the history when he said it, what was shown.

    `said` is what briefs and options stated beside the words of a first turn.
    `ending` is how it ended; `None` where it was cut off, or has not ended yet.
    """

    number: int
    text: str
    at: int
    said: tuple[Said, ...] = ()
    shown: str = ""
    ending: str | None = None

    def show(self, piece: str) -> None:
        """Add what was shown, as far as it is kept at hand."""
        self.shown += piece[: max(0, _MOST_KEPT_CHARACTERS - len(self.shown))]


@dataclass
class Record:
    """The last turns of a chat, how many there were, and what a language model took in all."""

    turns: list[Turn] = field(default_factory=list[Turn])
    count: int = 0
    spent: Spent = field(default_factory=Spent)

    def take(self, event: Event) -> None:
        """Read one event; those that are no turn's are passed over."""
        data = event.data
        if event.kind == "turn":
            said = tuple(Said.model_validate(one) for one in data.get("said", ()))
            self.begin(str(data.get("text", "")), int(data.get("at", -1)), said)
        elif event.kind == "shown" and self.turns:
            self.turns[-1].show(str(data.get("text", "")))
        elif event.kind == "done" and self.turns:
            self.turns[-1].ending = str(data.get("kind", ""))
        elif event.kind == "spent":
            self.spent = summed(self.spent, Spent.model_validate(data))

    def begin(self, text: str, at: int, said: tuple[Said, ...] = ()) -> Turn:
        """Begin a turn."""
        self.count += 1
        self.turns.append(Turn(self.count, text, at, said))
        del self.turns[:-MOST_TURNS]
        return self.turns[-1]

    @property
    def cut_off(self) -> Turn | None:
        """The last turn, where it was cut off."""
        last = self.turns[-1] if self.turns else None
        return last if last is not None and last.ending is None else None


def summed(one: Spent, other: Spent) -> Spent:
    """What two runs took together; money is known only where it is of all that cost any."""
    counts = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("turns", "corrections", "tool_calls", "input_tokens", "output_tokens", "cached_input_tokens",
                     "requests")
    }  # fmt: skip
    priced = [spent for spent in (one, other) if spent.requests or spent.turns]
    usd = (
        None if any(spent.usd is None for spent in priced) or not priced else sum(spent.usd or 0.0 for spent in priced)
    )
    return Spent(**counts, tokens_estimated=one.tokens_estimated or other.tokens_estimated, usd=usd)


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
