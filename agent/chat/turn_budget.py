"""What one turn of a chat may spend with a language model: its talk and the runs that its tools begin, together.

Each answer is charged, and written down, as it comes: an interrupt loses nothing that was paid for before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..intent.intent import Intent
from ..loop.budget import Budget, Limits
from ..loop.request_digest import request_digest
from ..loop.transcript import StepLog
from ..model.client import ModelClient, OnText
from ..model.deadline import Deadline
from ..model.messages import ModelRequest, Reply
from ..pipeline import plan_intent
from ..results import PlanResult
from ..runs.spent import Spent, spent_together
from .transcript import without_fence

if TYPE_CHECKING:
    from ..loop.planner import ModelPlanner
    from ..reading.reader import ModelReader


class TurnBudget:
    """The budget of one turn. `client` is the agent's, each answer charged here; `write` keeps what was spent.

    `log` is the transcript of the chat, where one is written.
    """

    def __init__(self, agent: ModelPlanner, write: Callable[[Spent], None], log: StepLog | None = None) -> None:
        self.options = agent.options
        self.budget = Budget.start(self.options.limits, self.options.prices)
        self.client: ModelClient = _Metered(agent.client, self)
        self._write, self.log = write, log

    def charge(self, spent: Spent) -> None:
        """Take `spent` out of the budget, and write it down."""
        self.budget.spent = spent_together((self.budget.spent, spent))
        self._write(spent)

    def reader(self) -> ModelReader:
        """A reader of requests that spends what is left, each answer charged here."""
        from ..reading.reader import ModelReader

        return ModelReader.by(self.client, self.options, self.budget.deadline)

    def plan(self, intent: Intent, words: str) -> PlanResult:
        """The result of a run with what is left to spend; if nothing is, the built-in proposer's plan.

        Raises:
            InputError: as `ModelPlanner.run_intent`.
        """
        from ..loop.planner import ModelPlanner

        limits = self._left()
        if limits is None:
            return plan_intent(intent)
        planner = ModelPlanner(self.client, replace(self.options, limits=limits, transcript=None))
        result = planner.run_intent(intent, words)
        use = result.report.model_use if result.report is not None else None
        if use is not None:
            # Answers and requests were charged as they came.
            self.charge(Spent(corrections=use.corrections, tool_calls=use.tool_calls))
        return result

    def _left(self) -> Limits | None:
        """The limits that are left; `None` if a run could not even begin."""
        spent, limits, seconds = self.budget.spent, self.budget.limits, self.budget.deadline.left_s()
        if self.budget.exhausted() is not None or seconds <= 0:
            return None
        return Limits(
            corrections=max(0, limits.corrections - spent.corrections),
            tool_calls=max(0, limits.tool_calls - spent.tool_calls),
            tokens=limits.tokens - spent.input_tokens - spent.output_tokens,
            usd=None if limits.usd is None else limits.usd - (spent.usd or 0.0),
            seconds=seconds,
        )


class _Metered:
    """A client whose answers and faults are charged before anybody sees them."""

    def __init__(self, client: ModelClient, turn_budget: TurnBudget) -> None:
        self._client, self._turn_budget = client, turn_budget
        self.redact: Callable[[str], str] = getattr(client, "redact", str)

    @property
    def name(self) -> str:
        return self._client.name

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        turn, pieces = self._turn_budget, list[str]()
        budget = Budget.start(turn.options.limits, turn.options.prices)

        def heard(piece: str) -> None:
            pieces.append(piece)
            if on_text is not None:
                on_text(piece)

        def answered(kind: str, data: Mapping[str, Any]) -> None:
            if turn.log is not None:
                turn.log.add(kind, {**data, "said": "".join(pieces)} if kind == "fault" else data)
            turn.charge(budget.spent)

        if turn.log is not None:
            turn.log.add("request", {"digest": request_digest(without_fence(request))})
        return budget.ask(self._client, request, deadline, answered, None if on_text is None else heard)
