"""A run can be awaited, several at a time, and stops where its task is cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.loop.planner import AgentOptions
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.agent.model.scripted import ScriptedModel, calls
from shardwright.tools.checkpoint import checkpoint

from .loop.questions import SMALL

OPTIONS = AgentOptions(reader="rules", knowledge_tokens=0, mode="tools")
TAKES_IT = calls(("submit_dag", {"handle": "reference"}))


class Waiting:
    """A client that waits for what never comes, at checkpoints."""

    name = "waiting"

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """Nothing.

        Raises:
            StoppedError: the run was stopped.
        """
        self.begun.set()
        try:
            while True:
                checkpoint()
                time.sleep(0.005)
        finally:
            self.ended.set()


def test_several_runs_are_awaited_together_and_come_to_what_each_comes_to_alone() -> None:
    alone = Agent(ScriptedModel([TAKES_IT]), options=OPTIONS).run(SMALL)

    async def together() -> list[str]:
        runs = [Agent(ScriptedModel([TAKES_IT]), options=OPTIONS).arun(SMALL) for _ in range(3)]
        return [found.model_dump_json() for found in await asyncio.gather(*runs)]

    assert asyncio.run(together()) == [alone.model_dump_json()] * 3


def test_a_cancelled_run_stops() -> None:
    client = Waiting()

    async def cancelled() -> None:
        task = asyncio.create_task(Agent(client, options=OPTIONS).arun(SMALL))
        await asyncio.to_thread(client.begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert client.ended.wait(60)
