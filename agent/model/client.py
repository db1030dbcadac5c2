"""The loop's interface to a language model: an endpoint, a script, or a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, cast

from ...tools.errors import InputError, ServiceError
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

# Gets the text of an answer as it comes; `None`: it comes at the end.
OnText = Callable[[str], None] | None


class EndpointError(ServiceError):
    """No usable answer came, after the retries that were worth it. The message holds no secret.

    `attempts` counts HTTP requests; `usage` is what answers that could not be used took, `None` where there were none.
    """

    def __init__(self, kind: FaultKind, message: str, attempts: int = 1, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.attempts = attempts
        self.usage = usage


class ModelClient(Protocol):
    """Something that answers a conversation: whoever has these two is a client.

    One without tools answers in words (`AgentOptions(mode="text")`), or says `not_supported` where tools are offered.
    """

    @property
    def name(self) -> str:
        """What answers, for people and transcripts: the model's name; never a secret."""
        ...

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The answer to `request`; `on_text` is given its text piece by piece where the client streams.

        An `EndpointError` ends a run with the best plan so far. Any other exception is a fault of the client's own: it
        ends the run and reaches the caller as it is.

        Raises:
            EndpointError: no usable answer came before `deadline`.
        """
        ...


def checked_client(client: object) -> ModelClient:
    """`client`, made by the user, if it has what a `ModelClient` has.

    Raises:
        InputError: it has no name, or the name is no text.
    """
    name = getattr(client, "name", None)
    if not callable(getattr(client, "complete", None)) or not isinstance(name, str) or not name.strip():
        raise InputError(
            f"client: {type(client).__name__} is none: it needs a `name` in text and a method `complete`, "
            "as shardwright.ModelClient describes"
        )
    return cast(ModelClient, client)


def asked(client: ModelClient, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
    """The answer of `client` to `request`.

    Raises:
        EndpointError: no usable answer came before `deadline`.
        InputError: it returned something else than a `Reply`: the client is at fault.
    """
    reply: object = client.complete(request, deadline, on_text)
    if not isinstance(reply, Reply):
        raise InputError(
            f"client: {type(client).__name__} ({client.name}) answered with {type(reply).__name__}: "
            "its `complete` has to return a shardwright.Reply"
        )
    return reply
