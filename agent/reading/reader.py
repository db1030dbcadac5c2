"""The reader: one question to a model, its answer verified and laid beside the rules' reading.

Where no answer comes the rules read alone. Every step is recorded as those of a run are, and what it takes is charged
to the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ...prompts.render import render
from ...tools.checkpoint import doing
from ...tools.language.errors import RequestError
from ...tools.language.said import Said
from ..loop.budget import Budget, Limits, Prices
from ..loop.fence import random_fence
from ..loop.outcome import Status
from ..loop.request_digest import request_digest
from ..loop.transcript import RecordedReading, Step
from ..model.client import EndpointError, ModelClient
from ..model.deadline import Deadline
from ..model.messages import Message, ModelRequest
from .answer import READING_ANSWER, ReadingAnswer, read_answer
from .found import Verified
from .merged import merged
from .source import Source
from .verified import verified

if TYPE_CHECKING:
    from ..loop.agent_options import AgentOptions

# Longer texts are read by the rules alone.
MOST_CHARACTERS = 60_000


class ModelReader(Struct, dict=True):
    """Reads requests and briefs with `client`, each within half of the time to `deadline`.

    `with_schema`: ask for a strict schema, and for text if the server refuses that.
    """

    client: ModelClient
    limits: Limits
    deadline: Deadline
    prices: Prices | None = None
    with_schema: bool = True
    max_output_tokens: int = 4096
    fence: Callable[[], str] = random_fence
    records: list[RecordedReading] = field(default_factory=list[RecordedReading])

    @classmethod
    def by(cls, client: ModelClient, options: AgentOptions, deadline: Deadline) -> ModelReader:
        """The reader of an agent with these options."""
        return cls(
            client,
            options.limits,
            deadline,
            prices=options.prices,
            with_schema=options.mode != "text",
            max_output_tokens=options.max_output_tokens,
        )

    @cached_property
    def budget(self) -> Budget:
        """The budget that is left to ask the model with: all of it, at first."""
        return Budget.start(self.limits, self.prices, self.deadline)

    def read(self, source: Source, why_not: str | None = None) -> Said:
        """What the words of `source` state; `why_not` says why no model is asked, where none is.

        Raises:
            RequestError: as the rules refuse it, or both readings differ (`AmbiguousError`).
            InputError: a name in it leads to what cannot be read, or the client returned what is no `Reply`.
        """
        source = source.redacted(getattr(self.client, "redact", str))
        rules, fence, steps = source.rules(), self.fence(), list[Step]()
        why_not = why_not or self._why_not(source)
        answer = why_not or self._answer(source.text, fence, steps)
        said: Said | None = None
        refusal: RequestError | None = None
        try:
            said = read_by_both(source, rules, answer)
        except RequestError as error:
            refusal = error
        self.records.append(
            RecordedReading(
                source=source,
                fence=fence,
                with_schema=self.with_schema,
                why_not=why_not,
                steps=tuple(steps),
                said=said,
                refusal=None if refusal is None else str(refusal),
            )
        )
        if said is None:
            assert refusal is not None
            raise refusal
        return said

    def _why_not(self, source: Source) -> str | None:
        if len(source.text) > MOST_CHARACTERS:
            return f"it is longer than {MOST_CHARACTERS:,} characters"
        stopped = self.budget.exhausted()
        return None if stopped is None else _without(stopped)

    def _answer(self, text: str, fence: str, steps: list[Step]) -> ReadingAnswer | str:
        """The model's reading, or why there is none."""

        def log(kind: str, data: Mapping[str, Any]) -> None:
            steps.append(Step(kind=kind, data=dict(data)))

        content = render("read_request", fields=render("read_fields"), fence=fence, text=text)
        within = self.deadline.sooner(self.deadline.left_s() / 2)
        for with_schema in (True, False) if self.with_schema else (False,):
            request = self.budget.fitted(
                ModelRequest(
                    messages=(Message(role="user", content=content),),
                    answer=READING_ANSWER if with_schema else None,
                    max_output_tokens=self.max_output_tokens,
                )
            )
            if isinstance(request, str):
                return _without(request)
            doing(f"asking {self.client.name} to read the request")
            log("request", {"messages": 1, "digest": request_digest(request)})
            try:
                reply = self.budget.ask(self.client, request, within, log)
            except EndpointError as fault:
                if fault.kind == "not_supported" and with_schema:
                    continue
                return str(fault)
            return read_answer(reply.text) or f"the answer of {self.client.name} is no reading ({reply.finish})"
        raise AssertionError("the last way to ask returns")


def read_by_both(source: Source, rules: Said | RequestError, answer: ReadingAnswer | str) -> Said:
    """The rules' reading with the model's; the rules' alone where `answer` says why there is no other.

    Raises:
        RequestError: as `merged`.
    """
    if not isinstance(answer, str):
        reading = verified(answer, source.text)
        said = merged(rules, reading, source.text, _read_on(source, rules, reading))
        if said.model is None and source.kind == "request":
            raise RequestError("the request names no model; name one (`shardwright models` lists them)")
        return said
    if isinstance(rules, RequestError):
        raise rules
    return rules.model_copy(update={"readings": (*rules.readings, f"read by the rules alone: {answer[:300]}")})


def _read_on(source: Source, rules: Said | RequestError, reading: Verified) -> Said | None:
    """What the rules read of a text that they refused for its model, if the text has the name that the model reads.

    `None` if they refused nothing, or that does not help. The name itself is left to the model's reading.
    """
    name = reading.fields.get("model")
    if not isinstance(rules, RequestError) or name is None:
        return None
    again = source.saying(name.value, name.quote).rules()
    if isinstance(again, RequestError):
        return None
    words = {field: text for field, text in again.words.items() if field != "model"}
    return again.model_copy(update={"model": None, "words": words})


def _without(limit: Status) -> str:
    return f"the budget of the model: {limit.replace('_', ' ')}"
