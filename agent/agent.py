"""`Agent`: any OpenAI-compatible endpoint, or any other client, as a proposer whose plans the tools guard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tools.checkpoint import stoppable
from ..tools.errors import InputError
from ..tools.language.said import Said
from .loop.planner import AgentOptions, ModelPlanner
from .model.client import ModelClient, checked_client
from .pipeline import intent_of
from .results import PlanResult
from .time_limit import within

if TYPE_CHECKING:
    from openai import OpenAI

    from .chat.chat import Chat
    from .search_results import SearchAnswer


class Agent(ModelPlanner):
    """A planner that asks a language model and returns only what the tools call valid.

    `client` is an `openai.OpenAI`, or anything with the `complete` of `ModelClient`; without one the endpoint of the
    environment (OPENAI_BASE_URL, OPENAI_API_KEY) is used. `model` is the name that the endpoint knows.

    Raises:
        InputError: no endpoint or no model is named, or the client is none that can be used.
    """

    def __init__(
        self,
        client: OpenAI | ModelClient | None = None,
        model: str | None = None,
        options: AgentOptions | None = None,
    ) -> None:
        super().__init__(_client_of(client, model), options or AgentOptions())

    def run(self, request: str, *, brief: Sequence[str | Path] = (), flags: Said | None = None) -> PlanResult:
        """Plan for a request in words, a brief, flags, or all of them together.

        Raises:
            InputError: as `shardwright.plan`, or the client returned what is no `Reply`.
        """
        reader = self.reader()
        return self.run_intent(intent_of(request, brief=brief, flags=flags, reader=reader), request, reader)

    async def arun(self, request: str, *, brief: Sequence[str | Path] = (), flags: Said | None = None) -> PlanResult:
        """As `run`, in a thread of its own, for servers. Where the task is cancelled the work stops at its next step; a
        request to the model that is under way ends with its own time limit.

        Raises:
            InputError: as `run`.
        """
        is_over = threading.Event()

        def work() -> PlanResult:
            with stoppable(is_over.is_set):
                return self.run(request, brief=brief, flags=flags)

        try:
            return await asyncio.to_thread(work)
        finally:
            is_over.set()

    def search(
        self, request: str, *, brief: Sequence[str | Path] = (), flags: Said | None = None, top: int | None = None
    ) -> SearchAnswer:
        """Rank every legal strategy for what the model and the rules read, as `shardwright.search`.

        Raises:
            InputError: as `shardwright.search`.
        """
        from .search_api import search_intent

        intent = intent_of(request, brief=brief, flags=flags, reader=self.reader())
        with within(self.options.time_limit_s):
            return search_intent(intent, top=top)

    def chat(self, session: str | Path | None = None) -> Chat:
        """A conversation in which the model answers free text and proposes plans; kept at `session`, if it is given.

        Raises:
            InputError: the session cannot be used.
        """
        from .chat.chat import Chat

        return Chat(session, agent=self, time_limit_s=self.options.time_limit_s)


def _client_of(client: Any, model: str | None) -> ModelClient:
    """`client` as the loop asks it.

    Raises:
        InputError: no endpoint or no model is named, or it is no client that can be used.
    """
    if client is not None and hasattr(client, "complete"):
        return checked_client(client)
    from .model.endpoint import EndpointClient

    if client is None:
        from .model.settings import EndpointFlags, read_settings

        return EndpointClient(read_settings(EndpointFlags(model=model)))
    if model is None:
        raise InputError("name the model as the endpoint knows it: Agent(client=…, model=…)")
    return EndpointClient.wrapping(client, model)
