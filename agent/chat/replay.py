"""A recorded chat played again without its model: each turn anew, the model's answers out of the recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from pydantic import ValidationError

from ...tools.calibration.custom import parse_calibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.language.said import Said
from ..loop.planner import ModelPlanner
from ..loop.replay import RecordedModel
from ..loop.shorten import short_text
from ..loop.transcript import Step
from ..model.client import EndpointError, OnText
from ..model.deadline import Deadline
from ..model.messages import ModelRequest, Reply
from .chat import Chat
from .commands import ALIASES
from .outcome import ChatAnswer
from .transcript import ChatTranscript, answer_data, without_fence
from .turn_input import Given

# Commands whose turns write files, which a replay does not write again.
_NOT_PLAYED = "export"


class ChatReplay(Frozen):
    """What playing a chat again found. `differences` is empty where each turn came to the same."""

    same: bool
    differences: tuple[str, ...]
    turns: int
    plan: str | None


class _Turn(Struct):
    """One recorded turn: what was said, and the steps after it."""

    data: dict[str, Any]
    steps: list[Step] = field(default_factory=list[Step])

    @property
    def answer(self) -> dict[str, Any] | None:
        return next((step.data for step in self.steps if step.kind == "answer"), None)

    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))


class _Player:
    """A client that answers each turn as recorded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin(())

    def begin(self, steps: tuple[Step, ...]) -> None:
        self.model = RecordedModel(steps, self.name)
        self._answers = iter([step for step in steps if step.kind in ("reply", "fault")])

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        words = getattr(next(self._answers, None), "data", {}).get("said")
        try:
            return self.model.complete(without_fence(request), deadline, on_text)
        except EndpointError:
            if on_text is not None and isinstance(words, str):
                on_text(words)
            raise


def replay_chat(transcript: ChatTranscript) -> ChatReplay:
    """Play the chat of `transcript` again; nothing is written.

    Raises:
        InputError: a turn or an answer in it cannot be read.
    """
    setup, turns = transcript.setup, tuple(_turns(transcript.steps))
    custom = setup.calibration
    calibration = (
        None if custom is None else parse_calibration(custom.model_dump_json(), "the calibration of the recording")
    )
    player, differences = _Player(setup.model), list[str]()
    planner = ModelPlanner(player, setup.options())
    with Chat(agent=planner, calibration=calibration, width=setup.width, time_limit_s=setup.time_limit_s) as chat:
        for number, turn in enumerate(turns, start=1):
            differences += (
                f"turn {number} ({short_text(turn.text, 60)!r}): {line}" for line in _played(chat, player, turn)
            )
        plan = None if chat.plan is None else chat.plan.model.name
    return ChatReplay(same=not differences, differences=tuple(differences), turns=len(turns), plan=plan)


def _played(chat: Chat, player: _Player, turn: _Turn) -> Iterator[str]:
    """Play one turn and yield what differs."""
    recorded = turn.answer
    if recorded is None:
        yield "it was cut off, and is not played"
        return
    name = turn.text[1:].partition(" ")[0].lower() if turn.text.startswith("/") else ""
    if ALIASES.get(name, name) == _NOT_PLAYED:
        return
    player.begin(tuple(turn.steps))
    now = answer_data(_played_in(chat, turn))
    yield from player.model.differences
    if player.model.unplayed:
        yield f"{player.model.unplayed} recorded answers were not asked for"
    for name in ("kind", "error"):
        if recorded.get(name) != now[name]:
            yield f"{name}: recorded {short_text(str(recorded.get(name)))}, now {short_text(str(now[name]))}"
    if recorded.get("plan") != now["plan"]:
        yield "the plan is another"
    before, after = str(recorded.get("text", "")).splitlines(), str(now["text"]).splitlines()
    if before != after:
        pairs = zip([*before, ""], [*after, ""], strict=False)
        old, new = next((old_line, new_line) for old_line, new_line in pairs if old_line != new_line)
        yield f"the text: recorded {short_text(old, 100)!r}, now {short_text(new, 100)!r}"


def _played_in(chat: Chat, turn: _Turn) -> ChatAnswer:
    try:
        said = tuple(Said.model_validate(statement) for statement in turn.data.get("said", ()))
        given = None if "given" not in turn.data else Given.model_validate(turn.data["given"])
    except (ValidationError, TypeError):
        raise InputError(f"the recorded turn {short_text(turn.text, 60)!r} states what cannot be read") from None
    if given is not None:
        return chat.give(turn.text, given)
    return chat.begin(turn.text, said) if said else chat.say(turn.text)


def _turns(steps: tuple[Step, ...]) -> Iterator[_Turn]:
    turn: _Turn | None = None
    for step in steps:
        if step.kind == "turn":
            if turn is not None:
                yield turn
            turn = _Turn(step.data)
        elif turn is not None:
            turn.steps.append(step)
    if turn is not None:
        yield turn
