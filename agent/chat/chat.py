"""A conversation about one deployment: a request, changes of it, questions about the plan.

Without a language model every turn is read deterministically; with one, free text goes to the model, which works with
the same turns as tools. Whatever is shown was committed to the session before: a chat that is killed at any moment is
resumed with everything that had been shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ...tools.calibration.custom import CustomCalibration, own_calibration
from ...tools.checkpoint import StoppedError
from ...tools.errors import InputError, ShardwrightError
from ...tools.language.request import MAX_REQUEST_CHARACTERS
from ...tools.language.said import Said
from ...tools.plan.document import Plan
from ..intent.intent import Intent
from ..languages.of_text import language_of
from ..languages.say import say, speaking
from ..pipeline import plan_intent
from ..report.safe import harmless, one_line
from ..results import PlanResult
from ..runs.awaited import awaited
from ..runs.spent import Spent
from ..runs.time_limit import TIME_LIMIT_S, within
from .commands import ALIASES, Call, run_command
from .grounding import asked_in
from .known_secrets import Keeper
from .lead import led
from .outcome import ChatAnswer, Outcome
from .places import name_of
from .reading import answer
from .record import Record, Turn, shown_before
from .session import Session
from .spoken import spoken_command
from .state import State
from .transcript import answer_data, chat_log
from .turn_budget import TurnBudget
from .turn_input import Given
from .turns.change import begin
from .turns.launch import asks_to_launch
from .turns.wordless import given
from .turns.work import Work
from .writer import TurnWriter

if TYPE_CHECKING:
    from ..loop.planner import ModelPlanner
    from .model_turn import ModelTurn


class Chat:
    """One conversation. `say` answers a text; `plan` is the current plan.

    `session` is where it is kept (a path; an open session; nothing: in memory only). What it holds already is taken up
    again. With `agent` a language model answers free text and proposes plans. The searches of a turn (of one tool of a
    model, where one answers) end after `time_limit_s` seconds with the best that they have.

    Raises:
        InputError: the session cannot be used, or the calibration cannot be read.
    """

    def __init__(
        self,
        session: Session | str | Path | None = None,
        *,
        agent: ModelPlanner | None = None,
        calibration: CustomCalibration | str | Path | None = None,
        width: int = 100,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        # A turn that was cancelled may still be on its way to its next step.
        self._one_turn = Lock()
        self._agent = agent
        self._keeper = Keeper(None if agent is None else agent.client)
        if not isinstance(session, Session):
            session = Session(None if session is None else Path(session), self._keeper.text)
        self.session = session
        self._calibration = own_calibration(calibration)
        self._width = width
        self._time_limit_s = time_limit_s
        # A model that cannot call tools proposes plans, but what is said is read without it.
        self._model_talks = agent is not None and agent.options.mode in ("auto", "tools")
        self._load()
        self._log = chat_log(agent, width, self._calibration, self.session.redacted, self.record.count)

    def _load(self) -> None:
        self.state, self.record = State(self.session), Record()
        for event in self.session.events():
            self.state.replay(event.kind, event.data)
            self.record.take(event)
        current = self.state.current
        if self._calibration is None and current is not None:
            self._calibration = current.intent.calibration

    @property
    def plan(self) -> Plan | None:
        """The current plan; `None` before there is one, and where the current request has none."""
        return None if self.result is None else self.result.plan

    @property
    def result(self) -> PlanResult | None:
        """The current plan with its report."""
        now = self.state.now
        return None if now is None else now.result

    @property
    def cut_off(self) -> Turn | None:
        """The last turn, where it was cut off before it was answered; "/again" does it again."""
        return self.record.cut_off

    @property
    def spent(self) -> Spent:
        """What a language model took in this session."""
        return self.record.spent

    def shown_before(self) -> str:
        """Everything that was said and shown so far."""
        return shown_before(self.session)

    def begin(self, text: str, said: Sequence[Said], on_text: Callable[[str], None] | None = None) -> ChatAnswer:
        """Plan for a request: its words are `text`, and briefs and options state more of it as `said`.

        Raises:
            InputError: the session cannot be written.
        """
        with self._one_turn:
            return self._turn(text, on_text, tuple(said))

    def give(self, text: str, what: Given, on_text: Callable[[str], None] | None = None) -> ChatAnswer:
        """Answer what was set or opened beside the words of the chat; `text` is what a person calls it.

        Raises:
            InputError: the session cannot be written.
        """
        with self._one_turn:
            return self._turn(text, on_text, (), what)

    def say(self, text: str, on_text: Callable[[str], None] | None = None) -> ChatAnswer:
        """Answer `text`: a request, a change of it, a question, or a command that begins with "/".

        `on_text` is given the answer piece by piece, each when it is on the disk. What is wrong with `text` is in the
        answer's `error`.

        Raises:
            InputError: the session cannot be written.
        """
        with self._one_turn:
            return self._turn(text, on_text, ())

    async def asay(self, text: str, on_text: Callable[[str], None] | None = None) -> ChatAnswer:
        """As `say`, awaited; where the task is cancelled the turn is broken off, and the next one waits for that.

        Raises:
            InputError: as `say`.
        """
        return await awaited(lambda: self.say(text, on_text))

    def close(self) -> None:
        """Give the session back, and end the transcript."""
        if self._log is not None:
            self._log.renew()
        self.session.close()

    @property
    def transcript_failure(self) -> str | None:
        """Why the transcript is not whole; `None` where it is, or none was wanted."""
        return None if self._log is None else self._log.failure

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _turn(
        self, text: str, on_text: Callable[[str], None] | None, said: tuple[Said, ...], what: Given | None = None
    ) -> ChatAnswer:
        text = self.session.redacted(harmless(text.strip()))
        bounded = text[:MAX_REQUEST_CHARACTERS]
        at = self.state.at
        earlier = self.record.turns[-1] if self.record.turns else None
        stated: dict[str, object] = {}
        if said:
            stated["said"] = [statement.model_dump(mode="json", exclude_defaults=True) for statement in said]
        if what is not None:
            stated["given"] = what.model_dump(mode="json", exclude_defaults=True)
        # A document is kept once, with its outcome.
        is_kept = what is None or what.plan is None
        self.session.add(("turn", {"text": bounded, "at": at, **(stated if is_kept else {})}))
        turn = self.record.begin(bounded, at, said, what)
        if self._log is not None:
            self._log.add("turn", {"text": text, **stated})
        writer = TurnWriter(self.state, self.record, turn, on_text, self._keeper.stream())
        error: str | None = None
        try:
            with speaking(language_of(text, [past.text for past in self.record.turns[:-1]])):
                try:
                    with within(self._time_limit_s):
                        outcome = led(self._outcome(turn, text, writer, earlier))
                    writer.finish(outcome)
                except ShardwrightError as refused:
                    error = self.session.redacted(one_line(str(refused)))
                    outcome = led(Outcome("refused", f"{error}\n"))
                    writer.finish(outcome)
        except (KeyboardInterrupt, StoppedError):
            # What is in force is what is on the disk.
            self._load()
            self.session.add(("done", {"kind": "interrupted"}))
            self.record.turns[-1].ending = "interrupted"
            raise
        return self._answer(turn, outcome, writer.text, error)

    def _outcome(self, turn: Turn, text: str, writer: TurnWriter, earlier: Turn | None) -> Outcome:
        turn_budget = None if self._agent is None else TurnBudget(self._agent, writer.spend, self._log)
        work = self._work(turn_budget)
        if turn.given is not None:
            return given(work, text, turn.given)
        if turn.said:
            return begin(work, text, turn.said)
        if not text:
            prompt = say('Say what to plan, such as "Llama-3.1-70B on 8 H100"; /help lists what can be said.')
            return Outcome("ask", f"{prompt}\n")
        if len(text) > MAX_REQUEST_CHARACTERS:
            too_long = "the text has {length:,} characters; at most {most:,} are read"
            raise InputError(say(too_long, length=len(text), most=MAX_REQUEST_CHARACTERS))
        talker = turn_budget if self._model_talks else None
        outcome = self._command(text, work)
        if outcome is not None and outcome.is_repeat:
            return self._again(earlier, writer)
        if outcome is not None:
            return outcome
        return answer(work, text) if talker is None else self._modelled(text, work, writer, talker)

    def _command(self, text: str, work: Work) -> Outcome | None:
        """The outcome of a command, said with "/" or in words; `None` where `text` is none.

        Words that may answer the model ("yes, do that") are for the model, whatever command they sound like.
        """
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            name, rest = name.strip(), rest.strip()
        else:
            spoken = spoken_command(text)
            is_answer = self._model_talks and (spoken == "take" or bool(self.record.turns[-1].asked))
            if spoken is None or is_answer or (spoken == "take" and self.state.aside is None):
                return None
            name, _, rest = spoken.partition(" ")
        if not name:
            return Outcome("ask", say("/help lists the commands.") + "\n")
        return run_command(name, Call(work, rest, self.spent, self.shown_before))

    def _again(self, earlier: Turn | None, writer: TurnWriter) -> Outcome:
        """The turn before this one, from where the chat stood then."""
        if earlier is None:
            raise InputError(say("there is no turn to do again"))
        if earlier.text.startswith("/") and ALIASES.get(earlier.text[1:], earlier.text[1:]) == "again":
            raise InputError(say("the last turn was /again itself: say it in words"))
        if self.state.at != earlier.at:
            self.session.add(("moved", {"at": earlier.at}))
            self.state.move(earlier.at)
        self.record.turns[-1].asked = earlier.asked
        writer.note(say("Again: {text}", text=earlier.text))
        return self._outcome(earlier, earlier.text, writer, None)

    def _modelled(self, text: str, work: Work, writer: TurnWriter, turn_budget: TurnBudget) -> Outcome:
        """The turn of a language model; where it fails before it said anything, the deterministic answer."""
        from .model_turn import model_turn, unchecked_note

        done = model_turn(turn_budget, work, self.record, text, put=writer.put, say=writer.say)
        writer.flush()
        note = unchecked_note(text, done)
        if note is not None and (done.failure is None or writer.has_put):
            writer.note(note)
        start = "" if writer.ends_line else "\n"
        if done.failure is None:
            return self._left_to_tools(text, done) or Outcome("model", start)
        if writer.has_put:
            stopped = say("The model went no further: {why}", why=one_line(done.failure))
            return Outcome("model", f"{start}{stopped}\n")
        writer.note(say("Answered without the model: {why}", why=one_line(done.failure)))
        if done.has_no_tools:
            self._model_talks = False
        spoken = spoken_command(text)
        if spoken is not None and (spoken != "take" or self.state.aside is not None):
            return Outcome("ask", say("Say /{name} if that is meant, or the change itself.", name=spoken) + "\n")
        with within(self._time_limit_s):
            return answer(work if done.has_no_tools else self._unaided(), text)

    def _left_to_tools(self, text: str, done: ModelTurn) -> Outcome | None:
        """The plan for a first request, or the command, that the model only talked about; `None` if it asks back."""
        wants_command = asks_to_launch(text) and "launch" not in done.called
        wants_plan = self.result is None and not done.is_checked
        if asked_in(done.words) or not (wants_plan or wants_command):
            return None
        try:
            with within(self._time_limit_s):
                unaided = answer(self._unaided(), text)
        except InputError:
            return None
        return unaided if unaided.planned is not None or wants_command else None

    def _unaided(self) -> Work:
        """What a turn works with when no model is asked."""
        return Work(self.state, _built_in, self._calibration, self._width)

    def _work(self, turn_budget: TurnBudget | None) -> Work:
        if turn_budget is None:
            return self._unaided()
        reads = turn_budget.options.reader == "model"
        reader = turn_budget.reader() if reads and not self._model_talks else None
        return Work(self.state, turn_budget.plan, self._calibration, self._width, reads=reads, reader=reader)

    def _answer(self, turn: Turn, outcome: Outcome, text: str, error: str | None = None) -> ChatAnswer:
        session = None if self.session.path is None else name_of(self.session.path)
        turn_fields = {"turn": turn.number, "input": turn.text, "text": text, "error": error, "session": session}
        answer = ChatAnswer.of(outcome, self.result if outcome.is_of_plan else None, turn_fields)
        if self._log is not None:
            self._log.add("answer", answer_data(answer))
        return answer


def _built_in(intent: Intent, words: str) -> PlanResult:
    del words
    return plan_intent(intent)
