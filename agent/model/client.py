"""What the loop asks of a language model, whoever answers: an endpoint, a script, a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from ...tools.errors import ServiceError
from .deadline import Deadline
from .messages import ModelRequest, Reply, Usage

# `key_refused`: 401, 403. `unknown_model`: 404. `not_supported`: the server refuses a part of the request (tools, a
# schema). `too_long`: the conversation exceeds the context. `bad_request`: any other 4xx. `rate_limited`,
# `server_error`, `unreachable`, `timeout`: after all retries. `unreadable`: an answer that is none. `too_large`: more
# bytes than are read. `unplayed`: a script or a recording that has no such answer.
FaultKind = Literal[
    "key_refused",
    "unknown_model",
    "not_supported",
    "too_long",
    "bad_request",
    "rate_limited",
    "server_error",
    "unreachable",
    "timeout",
    "unreadable",
    "too_large",
    "unplayed",
]


class EndpointError(ServiceError):
    """No usable answer came, after the retries that were worth it. The message holds no secret.

    `usage` is what answers that could not be used took; `None` where there were none.
    """

    def __init__(self, kind: FaultKind, message: str, attempts: int, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.attempts = attempts
        self.usage = usage


class ModelClient(Protocol):
    """Something that answers a conversation."""

    @property
    def name(self) -> str:
        """What answers, for people and transcripts: the model's name; never a secret."""
        ...

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The answer to `request`; `on_text` is given its text piece by piece where the client streams.

        Raises:
            EndpointError: no usable answer came before `deadline`.
        """
        ...
