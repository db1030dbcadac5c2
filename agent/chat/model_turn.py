"""A turn that a language model answers: it calls tools, its words are shown as they come, and budgets end it.

The model changes nothing by itself: what becomes the current plan was planned and validated by the tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ...tools.checkpoint import until
from ..loop.fence import random_fence
from ..loop.progress import MOST_SAME_CALLS, Progress
from ..model.client import EndpointError
from ..model.messages import Message, ModelRequest, Reply
from ..runs.spent import Spent
from ..runs.time_limit import within
from .grounding import Heard, statements
from .memory import MEMORY_TOKENS, messages_for
from .model_tools import chat_toolset
from .outcome import Outcome
from .record import Record
from .turn_budget import TurnBudget
from .turns.work import Work

_WHY_STOPPED = {
    "time_spent": "the time allowed for a turn was spent",
    "tool_calls_spent": "the tool calls allowed for a turn were spent",
    "tokens_spent": "the tokens allowed for a turn were spent",
    "cost_spent": "the money allowed for a turn was spent",
    "no_progress": "the model repeated itself",
}
# Longer answers in words than this are cut: nobody reads them.
_MOST_CHARACTERS = 20_000
# A memory of less than this is not what makes a conversation too long for a server.
_LEAST_MEMORY_TOKENS = 500

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
# How the answer of a tool that failed begins.
_TROUBLE = '{"error":'


class ModelTurn(Struct, frozen=True):
    """The end of a model's turn: whether anything was shown, and why it failed or stopped, if it did.

    `is_checked`: a tool of ours answered something in it. `has_no_tools`: the server refuses tools, so that no further
    turn need be tried. `words` are the model's own, `unchecked` the figures in them that nobody said in the session,
    `called` the tools that it called.
    """

    has_answered: bool
    failure: str | None = None
    has_no_tools: bool = False
    is_checked: bool = False
    words: str = ""
    unchecked: tuple[str, ...] = ()
    called: frozenset[str] = frozenset()


class _Talk:
    """One turn while it goes on."""

    def __init__(
        self,
        turn_budget: TurnBudget,
        work: Work,
        words: str,
        put: Callable[[Outcome], None],
        say: Callable[[str], None],
    ) -> None:
        self.turn_budget = turn_budget
        self.progress = Progress()
        self.has_answered = False
        self.words = ""
        self.called = frozenset[str]()
        self._answers: list[str] = []
        self._put, self._say, self._session = put, say, work.state.session
        self.toolset = chat_toolset(work, self._show, words, self.heard)

    def heard(self) -> Heard:
        """All that was said up to now, with the answers of tools that were not shown."""
        return Heard.of(self._session.events(), self._answers)

    def ended(self, failure: str | None, *, has_no_tools: bool = False) -> ModelTurn:
        """How it went."""
        unchecked, is_checked = self.heard().unchecked(self.words), bool(self._answers)
        return ModelTurn(self.has_answered, failure, has_no_tools, is_checked, self.words, unchecked, self.called)

    def _show(self, outcome: Outcome) -> None:
        self.has_answered = True
        self._put(outcome)

    def text(self, piece: str) -> None:
        """Show a piece of the model's words."""
        piece = piece[: max(0, _MOST_CHARACTERS - len(self.words))]
        if piece:
            self.words += piece
            self.has_answered = self.has_answered or bool(piece.strip())
            self._say(piece)

    def ask(self, messages: Sequence[Message]) -> Reply | str:
        """The model's next answer, or why it is not asked; its words are shown, also where they are not streamed.

        Raises:
            EndpointError: no usable answer came.
        """
        request = self.turn_budget.budget.fitted(
            ModelRequest(
                messages=tuple(messages),
                tools=self.toolset.specs,
                max_output_tokens=self.turn_budget.options.max_output_tokens,
            )
        )
        if isinstance(request, str):
            return _WHY_STOPPED[request]
        before = self.words
        reply = self.turn_budget.client.complete(request, self.turn_budget.budget.deadline, self.text)
        if self.words == before:
            self.text(reply.text)
        return reply

    def why_stop(self) -> str | None:
        """Which limit of the turn was reached, in words."""
        stopped = self.turn_budget.budget.exhausted()
        return None if stopped is None else _WHY_STOPPED[stopped]

    def take(self, reply: Reply) -> tuple[Message, ...] | str:
        """The answers to the calls of `reply`, or why the talk ends with them."""
        self.turn_budget.charge(Spent(tool_calls=len(reply.tool_calls)))
        stopped = self.why_stop()
        if stopped is None and self.progress.times_called(reply.tool_calls) >= MOST_SAME_CALLS:
            stopped = _WHY_STOPPED["no_progress"]
        if stopped is not None:
            return stopped
        self.called |= {call.name for call in reply.tool_calls}
        if reply.text and not reply.text.endswith("\n"):
            self.text("\n")
        answered = self.toolset.answer_all(
            reply.tool_calls, lambda done: self.why_stop(), working=lambda done: self._working()
        ).messages
        self._answers += [message.content for message in answered if not message.content.startswith(_TROUBLE)]
        # A run that a tool began may have taken all that was left.
        return self.why_stop() or answered

    @contextmanager
    def _working(self) -> Generator[None]:
        """One call of a tool: it ends with the time of the turn, and its searches after the time limit of a search."""
        with until(self.turn_budget.budget.deadline.is_over), within(self.turn_budget.options.time_limit_s):
            yield


def model_turn(
    turn_budget: TurnBudget,
    work: Work,
    record: Record,
    words: str,
    *,
    put: Callable[[Outcome], None],
    say: Callable[[str], None],
) -> ModelTurn:
    """Let the model answer `words`; `put` shows the outcome of a tool, `say` a piece of the model's own words."""
    # The answer to a question states nothing by itself.
    talk = _Talk(turn_budget, work, "" if record.turns[-1].asked else words, put, say)
    fence, budget = random_fence(), min(MEMORY_TOKENS, turn_budget.options.limits.tokens // 4)
    messages = messages_for(work.state, record, words, fence, budget)
    while True:
        try:
            reply = talk.ask(messages)
        except EndpointError as fault:
            if fault.kind == "too_long" and len(messages) == 2 and budget >= _LEAST_MEMORY_TOKENS:
                budget //= 4
                messages = messages_for(work.state, record, words, fence, budget)
                continue
            return talk.ended(str(fault), has_no_tools=fault.kind == "not_supported")
        if isinstance(reply, str):
            return talk.ended(reply)
        if reply.finish == "refusal":
            return talk.ended("the model refused to answer")
        if not reply.tool_calls:
            cut = "its answer was cut off at the limit of tokens" if reply.finish == "length" else None
            silent = None if talk.has_answered else "the model said nothing"
            return talk.ended(cut or silent)
        messages.append(Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls))
        taken = talk.take(reply)
        if isinstance(taken, str):
            return talk.ended(taken)
        messages += taken


def unchecked_note(asked: str, done: ModelTurn) -> str | None:
    """A note in the person's language that a model's words or figures were not checked; `None` if they were."""
    is_chinese = _CHINESE.search(asked) is not None
    named = ("、" if is_chinese else ", ").join(done.unchecked)
    if not done.is_checked and statements(done.words).strip():
        if is_chinese:
            return f"(没有问过任何工具：这是模型自己的话，未经核对{f'；这里没有人说过 {named}' if named else ''}。)"
        heard = f"; nobody said {named} here" if named else ""
        return f"(No tool was asked for this: it is the model's own word, not checked{heard}.)"
    if not named:
        return None
    return f"(未经核对：这里没有工具说过 {named}。)" if is_chinese else f"(Not checked: no tool said {named} here.)"
