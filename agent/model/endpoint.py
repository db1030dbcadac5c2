"""A `ModelClient` for an OpenAI-compatible server, and the one place where requests are repeated.

A request is repeated after transient faults (408, 409, 425, 429, 5xx, broken connections, timeouts, unreadable
answers), with growing random pauses or as long as the server asks, never beyond the deadline. It is repeated at once,
without counting as a retry, if the server refuses a part of it that can be left out. The deadline holds whatever the
server does.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..report.safe import one_line
from .answer import read_answer, reply_from, spent_on
from .client import EndpointError, OnText
from .connection import Connection, checked_client
from .deadline import Deadline
from .faults import FaultError
from .features import Features, refuses_request_part
from .messages import ModelRequest, Reply, Usage
from .redaction import guard_logs
from .retries import patiently
from .schema_check import schema_faults
from .settings import EndpointSettings
from .stream import StreamedAnswer
from .wire import request_body
from .worker import Line, OverdueError, work_until

T = TypeVar("T")
# Most parts left out in one try, so that a server that always refuses is not asked for ever.
MOST_CONCESSIONS = 8
# Nobody waits for a longer pause; its exact length does not matter.
_LONGEST_PAUSE_TOLD_S = 86_400.0


class _Telling:
    """Passes text on as it comes, with a note where a try begins after another one had shown some."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text, self._has_shown = on_text, False

    def begin(self) -> None:
        """Mark the beginning of another try."""
        if self._has_shown:
            self._on_text("\n(the answer broke off; asked again)\n")

    def __call__(self, piece: str) -> None:
        self._has_shown = self._has_shown or bool(piece)
        self._on_text(piece)


class EndpointClient:
    """A model at an endpoint. It remembers the server's refusals; requests run one after another."""

    def __init__(
        self,
        settings: EndpointSettings,
        client: object | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        seed: int | None = None,
    ) -> None:
        """`client` is the user's own `openai.OpenAI`; `sleep` and `seed` make pauses repeatable.

        Raises:
            InputError: `client` is not usable.
        """
        self.settings = settings
        self.features = Features()
        self.requests_made = 0
        self._connection = Connection(settings, None if client is None else checked_client(client))
        self._sleep = sleep
        self._random = random.Random(seed)
        # Usage of unusable answers to the current request.
        self._lost: list[Usage] = []
        guard_logs(self._connection.redactor)

    @classmethod
    def wrapping(cls, client: object, model: str, **fields: Any) -> EndpointClient:
        """A client around the user's `openai.OpenAI`, `client`; `fields` are further settings.

        Raises:
            InputError: `client` is not usable.
        """
        url = str(checked_client(client).base_url)
        return cls(EndpointSettings(base_url=url, model=model, **fields), client)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._connection.redactor.text(self.settings.model)

    def redact(self, text: str) -> str:
        """`text` without the secrets of this endpoint."""
        return self._connection.redactor.text(text)

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The answer to `request`, streamed with `on_text` or if the settings say so; after a broken stream, the next
        try shows the text again from its beginning.

        Raises:
            EndpointError: no usable answer came before `deadline`.
        """
        stream = self.settings.stream or on_text is not None
        before = self.requests_made

        telling = None if on_text is None else _Telling(on_text)

        def ask(within: Deadline) -> Reply:
            if telling is not None:
                telling.begin()
            return self._ask(request, within, telling, stream=stream)

        reply = self._retried(ask, deadline)
        usage = sum(self._lost, reply.usage)
        return reply.model_copy(update={"attempts": self.requests_made - before, "usage": usage})

    def models(self, deadline: Deadline) -> list[dict[str, Any]]:
        """The server's list of models, as it describes them, without secrets.

        Raises:
            EndpointError: there is no such list before `deadline`.
        """
        connection = self._connection

        def ask(within: Deadline) -> list[dict[str, Any]]:
            self.requests_made += 1
            data = self._within(within, lambda line: connection.models(line, within), None)
            listed = connection.redactor.value(read_answer(data, connection.redactor)).get("data")
            return [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []

        return self._retried(ask, deadline)

    def _retried(self, ask: Callable[[Deadline], T], deadline: Deadline) -> T:
        """The result of `ask`, repeated while that is useful.

        Raises:
            EndpointError: it never succeeded.
        """
        before = self.requests_made
        self._lost.clear()
        retrying = patiently(self.settings.transport_attempts, deadline, self._sleep, self._random)
        try:
            return retrying(lambda: ask(deadline.sooner(self.settings.request_timeout_s)))
        except FaultError as fault:
            failed = fault
        # Raised outside the handler, so that no exception of the SDK, and no secret, is chained to it.
        raise self._error(failed, self.requests_made - before)

    def _ask(self, request: ModelRequest, within: Deadline, on_text: OnText, *, stream: bool) -> Reply:
        """One try: a request, repeated at once without parts that the server refuses."""
        for tries_left in reversed(range(MOST_CONCESSIONS)):
            body = request_body(request, self.settings.model, self.features, stream=stream)
            try:
                return self._reply(request, body, within, on_text)
            except FaultError as fault:
                if tries_left and fault.said and self.features.give_way(fault.said, body):
                    continue
                if refuses_request_part(fault.said, body):
                    raise FaultError("not_supported", fault.words, may_retry=False, said=fault.said) from None
                raise
        raise AssertionError("the last try returns or raises")

    def _reply(self, request: ModelRequest, body: dict[str, Any], within: Deadline, on_text: OnText) -> Reply:
        """One HTTP request with its answer checked."""
        shown: list[str] = []

        def show(piece: str) -> None:
            shown.append(piece)
            if on_text is not None:
                on_text(piece)

        self.requests_made += 1
        redactor, streams = self._connection.redactor, list[StreamedAnswer]()
        sent = len(json.dumps(body, ensure_ascii=False).encode())
        try:
            answer = self._within(within, lambda line: self._exchange(body, line, within, streams), show)
            self.features.recognise(answer)
            reply = reply_from(answer, redactor, input_bytes=sent)
        except FaultError as fault:
            # A broken stream is paid for as far as it came.
            lost = fault.usage or next((spent_on(answer.so_far(), sent) for answer in streams), None)
            if lost is not None:
                self._lost.append(lost)
            raise
        if on_text is not None and reply.text and not shown:
            on_text(reply.text)  # a server that does not stream
        return reply.model_copy(update={"schema_faults": schema_faults(request.answer, reply)})

    def _exchange(
        self, body: dict[str, Any], line: Line, within: Deadline, streams: list[StreamedAnswer]
    ) -> dict[str, Any]:
        """In the worker's thread: one HTTP request and its complete answer; a streamed one is in `streams` too."""
        redactor = self._connection.redactor
        streamed, buffer = StreamedAnswer(redactor, line.say), bytearray()
        streams.append(streamed)
        is_stream: list[bool] = []

        def take(chunk: bytes) -> bool:
            if not is_stream:
                # A server without streaming answers in one piece.
                buffer.extend(chunk)
                start = buffer.lstrip()[:1]
                if not start:
                    return False
                is_stream.append(bool(body.get("stream")) and start not in (b"{", b"<", b"["))
                chunk = bytes(buffer)
                buffer.clear()
            if is_stream[0]:
                streamed.feed(chunk)
            else:
                buffer.extend(chunk)
            return streamed.is_done

        self._connection.chat(body, line, within, take)
        if is_stream and is_stream[0]:
            return streamed.end()
        return read_answer(bytes(buffer), redactor)

    def _within(self, within: Deadline, work: Callable[[Line], Any], on_text: OnText) -> Any:
        try:
            return work_until(within, work, on_piece=on_text, on_drop=self._connection.drop)
        except OverdueError:
            raise FaultError("timeout", "no answer in time", may_retry=True) from None

    def _error(self, fault: FaultError, attempts: int) -> EndpointError:
        times = "" if attempts == 1 else f" (after {attempts} requests)"
        words = f"{self.settings.base_url}: {fault.words}{times}{self._hint(fault)}"
        usage = sum(self._lost[1:], self._lost[0]) if self._lost else None
        return EndpointError(fault.kind, one_line(self._connection.redactor.text(words)), attempts, usage)

    def _hint(self, fault: FaultError) -> str:
        """How a person can mend the fault; empty if they cannot."""
        if fault.kind == "key_refused":
            if self.settings.basic_auth is not None:
                return "; the user in the URL is sent in place of the key"
            return "; set OPENAI_API_KEY" if self.settings.api_key is None else "; check OPENAI_API_KEY"
        if fault.kind == "unknown_model":
            return (
                f"; check that the model is {self.settings.model!r} and that the address ends as the API's does (/v1)"
            )
        if fault.kind == "unreachable":
            return "; check that the server runs, and OPENAI_BASE_URL"
        if fault.kind == "rate_limited" and fault.retry_after_s is not None:
            pause_s = min(fault.retry_after_s, _LONGEST_PAUSE_TOLD_S)
            than = "more than " if pause_s < fault.retry_after_s else ""
            return f"; the server asks to wait {than}{pause_s:.0f} s"
        if fault.kind == "too_large":
            return "; raise SHARDWRIGHT_LLM_MAX_ANSWER_BYTES to read it"
        return ""
