"""Asks a fault server through the real client, and records the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import Message, ModelRequest, Reply, ToolSpec
from shardwright.agent.model.settings import EndpointSettings

from .fault_server import FaultServer, Step

HELLO = ModelRequest(messages=(Message(role="system", content="be brief"), Message(role="user", content="hi")))
LOOK = ToolSpec(name="look", description="looks", parameters={"type": "object", "properties": {}, "required": []})
WITH_TOOLS = HELLO.model_copy(update={"tools": (LOOK,)})


class Asked(Struct):
    """The outcome of a question: a reply or a fault, the requests that the server got, the pauses between them."""

    bodies: list[Any]
    wall_s: float
    reply: Reply | None = None
    fault: EndpointError | None = None
    pauses_s: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    @property
    def answered(self) -> Reply:
        """The reply, which must exist."""
        assert self.reply is not None, self.fault
        return self.reply

    @property
    def failed(self) -> EndpointError:
        """The fault, which must exist."""
        assert self.fault is not None, self.reply
        return self.fault


def ask(
    *steps: Step,
    request: ModelRequest = HELLO,
    seconds: float = 30.0,
    stream: bool = False,
    wrap: Callable[[str], object] | None = None,
    **fields: Any,
) -> Asked:
    """Ask a server of `steps`; pauses are recorded, not slept. `wrap` makes the user's client for a URL."""
    pauses: list[float] = []
    shown: list[str] = []
    with FaultServer(*steps) as server:
        settings = EndpointSettings.model_validate({"base_url": server.url, "model": "m", **fields})
        client_given = None if wrap is None else wrap(server.url)
        client = EndpointClient(settings, client_given, sleep=pauses.append, seed=7)
        start = time.monotonic()
        reply, fault = None, None
        try:
            reply = client.complete(request, Deadline.after(seconds), shown.append if stream else None)
        except EndpointError as error:
            fault = error
        return Asked(server.bodies, time.monotonic() - start, reply, fault, pauses, shown)
