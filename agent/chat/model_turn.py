"""A turn that a language model answers: it calls tools, its words are shown as they come, and budgets end it.

The model changes nothing by itself: what becomes the current plan was planned and validated by the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..loop.agent import Agent
from ..loop.budget import Budget, Spent
from ..loop.context import random_fence
from ..loop.progress import MOST_SAME_CALLS, Progress
from ..model.client import EndpointError
from ..model.messages import Message, ModelRequest, Reply
from .memory import messages_for
from .model_tools import chat_toolset
from .outcome import Outcome
from .record import Turn
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


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """How it went: what it took, whether anything was shown, and why it failed or stopped, if it did.

    `has_no_tools`: the server refuses tools, so that no further turn need be tried.
    """

    spent: Spent
    has_answered: bool
    failure: str | None = None
    has_no_tools: bool = False


class _Talk:
    """One turn while it goes on."""

    def __init__(self, agent: Agent, work: Work, put: Callable[[Outcome], None], say: Callable[[str], None]) -> None:
        self.agent = agent
        self.budget = Budget.start(agent.options.limits, agent.options.prices)
        self.progress = Progress()
        self.has_answered = False
        self._put, self._say, self._said = put, say, 0
        self.toolset = chat_toolset(work, self._show)

    def _show(self, outcome: Outcome) -> None:
        self.has_answered = True
        self._put(outcome)

    def text(self, piece: str) -> None:
        """Show a piece of the model's words."""
        piece = piece[: max(0, _MOST_CHARACTERS - self._said)]
        if piece:
            self._said += len(piece)
            self.has_answered = self.has_answered or bool(piece.strip())
            self._say(piece)

    def ask(self, messages: Sequence[Message]) -> Reply:
        request = ModelRequest(
            messages=tuple(messages),
            tools=self.toolset.specs,
            max_output_tokens=self.agent.options.max_output_tokens,
        )
        try:
            reply = self.agent.client.complete(request, self.budget.deadline, self.text)
        except EndpointError as fault:
            self.budget.charge_requests(fault.attempts)
            raise
        self.budget.charge_answer(reply.usage, reply.attempts)
        return reply


def model_turn(
    agent: Agent,
    work: Work,
    turns: Sequence[Turn],
    words: str,
    *,
    put: Callable[[Outcome], None],
    say: Callable[[str], None],
) -> ModelTurn:
    """Let the model answer `words`; `put` shows what a tool came to, `say` a piece of the model's own words."""
    talk = _Talk(agent, work, put, say)
    messages = messages_for(work.state, turns, words, random_fence())
    while True:
        try:
            reply = talk.ask(messages)
        except EndpointError as fault:
            return ModelTurn(talk.budget.spent, talk.has_answered, str(fault), fault.kind == "not_supported")
        if reply.finish == "refusal":
            return ModelTurn(talk.budget.spent, talk.has_answered, "the model refused to answer")
        if not reply.tool_calls:
            cut = "its answer was cut off at the limit of tokens" if reply.finish == "length" else None
            silent = None if talk.has_answered else "the model said nothing"
            return ModelTurn(talk.budget.spent, talk.has_answered, cut or silent)
        messages.append(Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls))
        talk.budget.charge_tool_calls(len(reply.tool_calls))
        stopped = talk.budget.exhausted()
        if stopped is None and talk.progress.times_called(reply.tool_calls) >= MOST_SAME_CALLS:
            stopped = "no_progress"
        if stopped is not None:
            return ModelTurn(talk.budget.spent, talk.has_answered, _WHY_STOPPED[stopped])
        if reply.text and not reply.text.endswith("\n"):
            talk.text("\n")
        messages += talk.toolset.answer_all(reply.tool_calls).messages
