"""`Agent`: any OpenAI-compatible endpoint, or any other client, as a proposer whose plans the tools guard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..tools.errors import InputError
from ..tools.input.arguments import checks_arguments
from .loop.agent_options import AgentOptions
from .loop.planner import ModelPlanner
from .model.client import ModelClient, checked_client
from .results import PlanResult
from .runs.awaited import awaited
from .runs.time_limit import within
from .stated.arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from .stated.request import stated_intent

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

    @checks_arguments
    def run(
        self,
        request: str | None = None,
        *,
        model: ModelArgument | None = None,
        hardware: HardwareArgument | None = None,
        workload: WorkloadArgument | None = None,
        brief: str | Path | Iterable[str | Path] = (),
        **stated: Unpack[Arguments],
    ) -> PlanResult:
        """Plan for a request in words, a brief, arguments, or all of them together, as `shardwright.plan` takes them.

        Args:
            request: What to plan, in English or Chinese.
            model: The model to be planned for, not the one that is asked.
            hardware: As `plan`.
            workload: As `plan`.
            brief: As `plan`.
            **stated: As `plan`.

        Returns:
            The plan; `report.model_use` says whose it is and what was spent.

        Raises:
            InputError: As `plan`, or the client returned what is no `Reply`.
        """
        reader = self.reader()
        said = said_of_arguments(model, hardware, workload, stated)
        intent = stated_intent(request, said, brief=brief, stated=stated, reader=reader)
        return self.run_intent(intent, request or "", reader)

    async def arun(
        self,
        request: str | None = None,
        *,
        model: ModelArgument | None = None,
        hardware: HardwareArgument | None = None,
        workload: WorkloadArgument | None = None,
        brief: str | Path | Iterable[str | Path] = (),
        **stated: Unpack[Arguments],
    ) -> PlanResult:
        """As `run`, awaited, for servers: the work is done in a thread of its own.

        Where the task is cancelled it stops at its next step, and no longer waits for an endpoint; what a client of
        your own is doing then comes to its end in that thread.

        Raises:
            InputError: As `run`.
        """
        return await awaited(
            lambda: self.run(request, model=model, hardware=hardware, workload=workload, brief=brief, **stated)
        )

    @checks_arguments
    def search(
        self,
        request: str | None = None,
        *,
        model: ModelArgument | None = None,
        hardware: HardwareArgument | None = None,
        workload: WorkloadArgument | None = None,
        brief: str | Path | Iterable[str | Path] = (),
        top: int | None = None,
        **stated: Unpack[Arguments],
    ) -> SearchAnswer:
        """Rank every legal strategy for what the model and the rules read, as `shardwright.search`.

        Args:
            request: What to plan, in English or Chinese.
            model: The model to be planned for, not the one that is asked.
            hardware: As `plan`.
            workload: As `plan`.
            brief: As `plan`.
            top: Keep so many candidates, and the front.
            **stated: As `plan`.

        Raises:
            InputError: As `shardwright.search`.
        """
        from .search_api import search_intent

        said = said_of_arguments(model, hardware, workload, stated)
        intent = stated_intent(request, said, brief=brief, stated=stated, reader=self.reader())
        with within(self.options.time_limit_s):
            return search_intent(intent, top=top)

    async def asearch(
        self,
        request: str | None = None,
        *,
        model: ModelArgument | None = None,
        hardware: HardwareArgument | None = None,
        workload: WorkloadArgument | None = None,
        brief: str | Path | Iterable[str | Path] = (),
        top: int | None = None,
        **stated: Unpack[Arguments],
    ) -> SearchAnswer:
        """As `search`, awaited; cancelled it stops as `arun` does.

        Raises:
            InputError: As `search`.
        """
        return await awaited(
            lambda: self.search(
                request, model=model, hardware=hardware, workload=workload, brief=brief, top=top, **stated
            )
        )

    @checks_arguments
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
