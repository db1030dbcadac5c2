"""The tools of a language model in a chat: the same turns that words have, and look-ups. None writes or reads a file.

What a tool answers is shown to the person as the tools print it; the model is told it in short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from pydantic import Field

from ...tools.errors import InputError
from ..loop.desk import Desk
from ..reading.answer import ReadingAnswer, StatedFact
from ..reading.reader import read_by_both
from ..reading.source import Source
from ..toolset.look_up_accelerator import LOOK_UP_ACCELERATOR
from ..toolset.look_up_model import LOOK_UP_MODEL
from ..toolset.tool import Answer, Arguments, Bench, Tool
from ..toolset.toolset import Toolset
from .heard import Heard
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


def chat_toolset(
    work: Work, put: Callable[[Outcome], None], said: str = "", heard: Callable[[], Heard] | None = None
) -> Toolset:
    """The tools of one turn; `put` puts in force what a tool came to and shows it.

    `said` is what the person said, where it stands by itself; `heard` is all that was said in the session:
    what enters a request has to stand in it.
    """

    def borne_out(words: str) -> str:
        unsaid = None if heard is None else heard().unsaid(words)
        if unsaid is not None:
            raise InputError(f"{unsaid!r} was said neither by the person nor by a tool: use his own words, or ask him")
        return words

    def answered(outcome: Outcome | None, otherwise: str) -> Answer:
        if outcome is None:
            raise InputError(otherwise)
        put(outcome)
        return Answer(
            {"kind": outcome.kind, "shown_to_the_person": True, "readings": list(outcome.readings), **outcome.told}
        )

    def replan(_: Bench, arguments: ReplanArguments) -> Answer:
        is_new = arguments.is_new_request or work.state.current is None
        if is_new and arguments.facts and work.reads and said:
            # Facts are held against what the person wrote, never against what the model says that he did.
            source = Source(kind="words", texts=(("the request", said),))
            stated = ReadingAnswer(facts=arguments.facts)
            return answered(begin(work, said, read=lambda: read_by_both(source, source.rules(), stated)), "")
        made = begin if arguments.is_new_request else change
        return answered(
            made(work, borne_out(arguments.words)), "no change of the request was understood in these words"
        )

    def suppose(_: Bench, arguments: WordsArguments) -> Answer:
        supposed = what_if(work, borne_out(arguments.words))
        return answered(supposed, "no change of the request was understood in these words")

    def move(_: Bench, arguments: MoveArguments) -> Answer:
        return answered({"looked_at": take, "before": undo, "after": redo}[arguments.to](work), "")

    def set_beside(_: Bench, arguments: WordsArguments) -> Answer:
        return answered(compare_with(work, arguments.words, may_read_files=False), "")

    def reasons(_: Bench, arguments: WordsArguments) -> Answer:
        found = why_not_words(work, arguments.words) if arguments.words.strip() else why(work)
        return answered(found or why(work), "")

    def start(_: Bench, arguments: WordsArguments) -> Answer:
        return answered(launch(work, arguments.words), "")

    def teach(_: Bench, arguments: WordsArguments) -> Answer:
        return answered(explain_words(work, arguments.words), "")

    def show(_: Bench, arguments: ShowArguments) -> Answer:
        shown = {
            "plan": show_plan,
            "request": show_request,
            "estimate": show_estimate,
            "validation": show_validation,
        }[arguments.what]
        return answered(shown(work), "")

    tools: tuple[Tool[Any], ...] = (
        Tool("replan", "Plan for a request, or change the current request and plan again.", ReplanArguments, replan),
        Tool("what_if", "Plan a change on the side; the current plan stays.", WordsArguments, suppose),
        Tool(
            "move",
            "Make another plan that there is the current one, where the person asks for it.",
            MoveArguments,
            move,
        ),
        Tool("why", "Why this plan; with words (TP16, PP) why not that one.", WordsArguments, reasons),
        Tool(
            "compare",
            "The current plan beside TP4 PP2, or a launch command.",
            WordsArguments,
            set_beside,
        ),
        Tool(
            "launch",
            "What starts the plan, for the engine in the words.",
            WordsArguments,
            start,
        ),
        Tool("explain", "A rule, a topic or a question, from the knowledge base.", WordsArguments, teach),
        Tool("show", "The plan, the request, the estimate or the validation.", ShowArguments, show),
        LOOK_UP_MODEL,
        LOOK_UP_ACCELERATOR,
    )
    # None of these works on documents of a run: there is no desk.
    return Toolset(Bench(cast(Desk, None)), tools)
