"""The tools of a language model in a chat: the same turns that words have, and look-ups. None writes or reads a file.

What a tool answers is shown to the person as the tools print it; the model gets it in short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import Struct
from pydantic import Field

from ...tools.errors import InputError
from ..loop.desk import Desk
from ..reading.answer import ReadingAnswer, StatedFact
from ..reading.reader import read_by_both
from ..reading.source import Source
from ..toolset.look_up import LOOK_UP
from ..toolset.tool import Answer, Arguments, Bench, Tool
from ..toolset.toolset import Toolset
from .grounding import Heard
from .outcome import Outcome
from .turns.change import begin, change
from .turns.compare import compare_with
from .turns.explain import explain_words
from .turns.launch import launch
from .turns.show import redo, show_estimate, show_plan, show_request, show_validation, take, undo
from .turns.what_if import what_if
from .turns.why import why, why_not_words
from .turns.work import Work

_MOST_WORDS = 4_000


class WordsArguments(Arguments):
    """The words of the person."""

    words: str = Field(description="what the person said, in his words", max_length=_MOST_WORDS)


class ReplanArguments(WordsArguments):
    """A request, or a change of it."""

    is_new_request: bool = Field(default=False, description="true: nothing that was said before holds")
    facts: tuple[StatedFact, ...] = Field(default=(), description="of a first or a new request: what its words state")


class ShowArguments(Arguments):
    """What is shown."""

    what: Literal["plan", "request", "estimate", "validation"]


class MoveArguments(Arguments):
    """Which of the plans that there are becomes the current one."""

    to: Literal["looked_at", "before", "after"] = Field(
        description="looked_at: that of the last what_if; before: undo; after: redo"
    )


def _reasons(work: Work, words: str) -> Outcome:
    return (why_not_words(work, words) if words.strip() else None) or why(work)


def _beside(work: Work, words: str) -> Outcome:
    return compare_with(work, words, may_read_files=False)


# Tools that take the words of the person and answer them as a turn does: name, what it does, the turn.
_TURNS: tuple[tuple[str, str, Callable[[Work, str], Outcome | None]], ...] = (
    ("what_if", "Plan a change on the side; the current plan stays.", what_if),
    ("why", "Why this plan; why not TP16 or PP; what would change the choice; what is risky.", _reasons),
    ("compare", "The current plan beside TP4 PP2, or a launch command.", _beside),
    ("launch", "What starts the plan, for the engine in the words.", launch),
    ("explain", "A rule, a topic or a question, from the knowledge base.", explain_words),
)
# Those of them whose words state something of a request.
_STATING = frozenset({"what_if"})
_SHOWN = {"plan": show_plan, "request": show_request, "estimate": show_estimate, "validation": show_validation}
_MOVES = {"looked_at": take, "before": undo, "after": redo}


class _Turn(Struct, frozen=True):
    """What the tools of one turn share."""

    work: Work
    put: Callable[[Outcome], None]
    said: str
    heard: Callable[[], Heard] | None

    def answered(self, outcome: Outcome | None) -> Answer:
        """Put the outcome of a tool in force, show it, and answer the model."""
        if outcome is None:
            raise InputError("no change of the request was understood in these words")
        self.put(outcome)
        return Answer(
            {"kind": outcome.kind, "shown_to_the_person": True, "readings": list(outcome.readings), **outcome.told}
        )

    def checked_words(self, words: str) -> str:
        """`words`, if all figures and names in them were said."""
        unsaid = None if self.heard is None else self.heard().unsaid(words)
        if unsaid is not None:
            raise InputError(f"{unsaid!r} was said neither by the person nor by a tool: use his own words, or ask him")
        return words

    def replan(self, _: Bench, arguments: ReplanArguments) -> Answer:
        work, said = self.work, self.said
        if (arguments.is_new_request or work.state.current is None) and arguments.facts and work.reads and said:
            # Facts are checked against what the person wrote, never against what the model says they did.
            source = Source(kind="words", texts=(("the request", said),))
            stated = ReadingAnswer(facts=arguments.facts)
            return self.answered(begin(work, said, read=lambda: read_by_both(source, source.rules(), stated)))
        run = begin if arguments.is_new_request else change
        return self.answered(run(work, self.checked_words(arguments.words)))

    def tool(self, name: str, does: str, run: Callable[[Work, str], Outcome | None]) -> Tool[WordsArguments]:
        def answer(_: Bench, arguments: WordsArguments) -> Answer:
            words = self.checked_words(arguments.words) if name in _STATING else arguments.words
            return self.answered(run(self.work, words))

        return Tool(name, does, WordsArguments, answer)


def chat_toolset(
    work: Work, put: Callable[[Outcome], None], said: str = "", heard: Callable[[], Heard] | None = None
) -> Toolset:
    """The tools of one turn; `put` puts the outcome of a tool in force and shows it.

    `said` is what the person said, where it stands by itself; `heard` is all that was said in the session:
    what enters a request has to stand in it.
    """
    turn = _Turn(work, put, said, heard)

    def move(_: Bench, arguments: MoveArguments) -> Answer:
        return turn.answered(_MOVES[arguments.to](work))

    def show(_: Bench, arguments: ShowArguments) -> Answer:
        return turn.answered(_SHOWN[arguments.what](work))

    tools: tuple[Tool[Any], ...] = (
        Tool(
            "replan", "Plan for a request, or change the current request and plan again.", ReplanArguments, turn.replan
        ),
        *(turn.tool(*row) for row in _TURNS),
        Tool("move", "Make another plan that there is the current one, where the person asks.", MoveArguments, move),
        Tool("show", "The plan, the request, the estimate or the validation.", ShowArguments, show),
        LOOK_UP,
    )
    # None of these works on documents of a run: there is no desk.
    return Toolset(Bench(cast(Desk, None)), tools)
