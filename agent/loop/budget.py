"""What a run may spend, by kind: corrections, tool calls, tokens, money, time. Nothing is ever refunded.

A request that would pass a limit by what it says alone is not sent, and an answer gets the room that is left.

HTTP retries are the client's and have a budget there; here they cost only time. Tokens are charged before an answer is
read, so that an unreadable one is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from pydantic import Field

from ...tools.frozen import Frozen
from ..model.client import EndpointError, ModelClient, OnText, asked
from ..model.deadline import MAX_SECONDS, Deadline
from ..model.messages import ModelRequest, Reply, Usage
from ..runs.spent import Spent
from .outcome import Status
from .request_tokens import request_tokens

# An answer with less room than this holds no proposal.
LEAST_ANSWER_TOKENS = 64


class Prices(Frozen):
    """US dollars for a million tokens; cached input costs as input where no price of its own is known."""

    usd_per_million_input: float = Field(ge=0)
    usd_per_million_output: float = Field(ge=0)
    usd_per_million_cached_input: float | None = Field(default=None, ge=0)

    def cost_usd(self, usage: Usage) -> float:
        """The cost of an answer."""
        cached_price = self.usd_per_million_cached_input
        cached = usage.cached_input_tokens if cached_price is not None else 0
        full = (usage.input_tokens - cached) * self.usd_per_million_input
        return (full + cached * (cached_price or 0.0) + usage.output_tokens * self.usd_per_million_output) / 1e6


class Limits(Frozen):
    """The most that a run may spend. A limit on cost needs prices."""

    corrections: int = Field(default=4, ge=0, le=100)
    tool_calls: int = Field(default=32, ge=0, le=1000)
    tokens: int = Field(default=400_000, ge=1)
    usd: float | None = Field(default=None, gt=0)
    seconds: float = Field(default=300.0, gt=0, le=MAX_SECONDS)


_NO_USAGE = Usage(input_tokens=0, output_tokens=0)


class Budget(Struct):
    """The budget of one run."""

    limits: Limits
    prices: Prices | None
    deadline: Deadline
    spent: Spent
    # Tokens that the last request took, by our count and by the server's less ours: the next one differs as much.
    counted: int = 0
    counted_more: int = 0

    @classmethod
    def start(cls, limits: Limits, prices: Prices | None = None, deadline: Deadline | None = None) -> Budget:
        """A full budget; the time runs from now, or to `deadline`."""
        end = deadline or Deadline.after(limits.seconds)
        return cls(limits, prices, end, Spent(usd=0.0 if prices is not None else None))

    def fitted(self, request: ModelRequest) -> ModelRequest | Status:
        """`request`, its answer held to what is left; the limit that its prompt, or an answer, would pass."""
        self.counted = request_tokens(request)
        asked = Usage(input_tokens=max(0, self.counted + self.counted_more), output_tokens=0)
        spent, limits, prices = self.spent, self.limits, self.prices
        room = limits.tokens - spent.input_tokens - spent.output_tokens - asked.input_tokens
        if room < LEAST_ANSWER_TOKENS:
            return "tokens_spent"
        if limits.usd is not None and prices is not None:
            usd = limits.usd - (spent.usd or 0.0) - prices.cost_usd(asked)
            if usd < LEAST_ANSWER_TOKENS * prices.usd_per_million_output / 1e6:
                return "cost_spent"
            if prices.usd_per_million_output:
                room = min(room, int(usd / prices.usd_per_million_output * 1e6))
        return request.model_copy(update={"max_output_tokens": min(request.max_output_tokens, room)})

    def charge_answer(self, usage: Usage, requests: int) -> None:
        """Charge one answer of the model."""
        if requests == 1 and self.counted:
            self.counted_more = usage.input_tokens - self.counted
        self._charge(usage, requests)

    def _charge(self, usage: Usage, requests: int) -> None:
        spent, prices = self.spent, self.prices
        self.spent = spent.model_copy(
            update={
                "turns": spent.turns + 1,
                "requests": spent.requests + requests,
                "input_tokens": spent.input_tokens + usage.input_tokens,
                "output_tokens": spent.output_tokens + usage.output_tokens,
                "cached_input_tokens": spent.cached_input_tokens + usage.cached_input_tokens,
                "tokens_estimated": spent.tokens_estimated or usage.is_estimated,
                "usd": None if prices is None else (spent.usd or 0.0) + prices.cost_usd(usage),
            }
        )

    def charge_requests(self, requests: int, usage: Usage | None = None) -> None:
        """Charge HTTP requests without an answer; `usage` is of answers that could not be used."""
        turns = self.spent.turns
        self._charge(usage or _NO_USAGE, requests)
        self.spent = self.spent.model_copy(update={"turns": turns})

    def charge_tool_calls(self, calls: int) -> None:
        """Charge calls of tools, successful or not."""
        self.spent = self.spent.model_copy(update={"tool_calls": self.spent.tool_calls + calls})

    def charge_correction(self) -> None:
        """Charge a proposal, or an answer without one, that has to be repeated."""
        self.spent = self.spent.model_copy(update={"corrections": self.spent.corrections + 1})

    def ask(
        self,
        client: ModelClient,
        request: ModelRequest,
        deadline: Deadline,
        log: Callable[[str, Mapping[str, Any]], None],
        on_text: OnText = None,
    ) -> Reply:
        """The answer of `client`, charged before it is read; `log` gets it, or the fault in its place.

        Raises:
            EndpointError: no usable answer came.
            InputError: the client returned something else than a `Reply`.
        """
        try:
            reply = asked(client, request, deadline, on_text)
        except EndpointError as fault:
            self.charge_requests(fault.attempts, fault.usage)
            took = {} if fault.usage is None else {"usage": fault.usage.model_dump(mode="json")}
            log("fault", {"kind": fault.kind, "message": str(fault), "attempts": fault.attempts, **took})
            raise
        self.charge_answer(reply.usage, reply.attempts)
        log("reply", reply.model_dump(mode="json", exclude_defaults=True))
        return reply

    @property
    def has_corrections(self) -> bool:
        """Whether another proposal may be asked for."""
        return self.spent.corrections < self.limits.corrections

    def exhausted(self) -> Status | None:
        """The limit that was reached, the most telling first; `None` while the run may go on."""
        return "time_spent" if self.deadline.is_over() else self.overspent()

    def overspent(self) -> Status | None:
        """As `exhausted`, for all limits but the time."""
        spent, limits = self.spent, self.limits
        if spent.tool_calls > limits.tool_calls:
            return "tool_calls_spent"
        if spent.input_tokens + spent.output_tokens >= limits.tokens:
            return "tokens_spent"
        if limits.usd is not None and (spent.usd or 0.0) >= limits.usd:
            return "cost_spent"
        return None
