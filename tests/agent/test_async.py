"""Calls that may ask a model can be awaited, several at a time, and stop when their task is cancelled."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import openai
import pytest

import shardwright
from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.agent.model.scripted import ScriptedModel, calls
from shardwright.tools.checkpoint import checkpoint

from .loop.questions import SMALL

OPTIONS = AgentOptions(reader="rules", knowledge_tokens=0, mode="tools")
# The model is asked before anything else is done.
READS = AgentOptions(reader="model", knowledge_tokens=0, mode="tools")
TAKES_IT = calls(("submit_dag", {"handle": "reference"}))


class Waiting:
    """A client that waits forever, at checkpoints."""

    name = "waiting"

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """Never return.

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


@pytest.fixture
def silent_endpoint() -> Iterator[tuple[openai.OpenAI, threading.Event]]:
    """A server that accepts a connection and never answers; the event is set on the first one."""
    connected = threading.Event()
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    connections.append(server.accept()[0])
                    connected.set()
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        yield openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none"), connected
        for connection in connections:
            connection.close()


async def cancelled(work: Coroutine[Any, Any, object], begun: threading.Event) -> None:
    """Start `work`, and cancel it once it has `begun`."""
    task = asyncio.ensure_future(work)
    assert await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_several_runs_are_awaited_together_and_come_to_what_each_comes_to_alone() -> None:
    alone = Agent(ScriptedModel([TAKES_IT]), options=OPTIONS).run(SMALL)

    async def together() -> list[str]:
        runs = [Agent(ScriptedModel([TAKES_IT]), options=OPTIONS).arun(SMALL) for _ in range(3)]
        return [result.model_dump_json() for result in await asyncio.gather(*runs)]

    assert asyncio.run(together()) == [alone.model_dump_json()] * 3


def test_what_is_awaited_is_what_the_call_gives() -> None:
    agent = Agent(ScriptedModel([]), options=OPTIONS)
    answer = asyncio.run(agent.asearch(SMALL, top=1))
    assert answer.candidates == agent.search(SMALL, top=1).candidates
    with agent.chat() as first, agent.chat() as second:
        assert asyncio.run(first.asay("/help")).text == second.say("/help").text


@pytest.mark.parametrize("way", ["run", "search", "say"])
def test_where_the_task_is_cancelled_the_work_stops(way: str) -> None:
    client = Waiting()
    agent = Agent(client, options=READS)
    begin = {"run": agent.arun, "search": agent.asearch, "say": agent.chat().asay}[way]
    asyncio.run(cancelled(begin(SMALL), client.begun))
    assert client.ended.wait(60)


def test_a_chat_goes_on_after_a_turn_that_was_cancelled() -> None:
    client = Waiting()
    with Agent(client, options=READS).chat() as chat:
        asyncio.run(cancelled(chat.asay(SMALL), client.begun))
        assert client.ended.wait(60)
        assert chat.say("/help").error is None and chat.plan is None


def test_a_request_that_is_under_way_is_not_waited_for_where_the_task_is_cancelled(
    silent_endpoint: tuple[openai.OpenAI, threading.Event],
) -> None:
    client, connected = silent_endpoint
    started = time.monotonic()
    # It ends when the threads of its tasks have.
    asyncio.run(cancelled(Agent(client, "m", READS).arun(SMALL), connected))
    assert time.monotonic() - started < READS.limits.seconds / 3


def test_an_evaluation_is_awaited_and_leaves_no_process_where_it_is_cancelled(tmp_path: Any) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"request": "Llama-3.1-8B on 2 H100, 1k in / 64 out", "strategy": "TP2"}\n')
    evaluation = asyncio.run(shardwright.aevaluate(cases, jobs=1))
    assert len(evaluation.results) == 1
    begun = threading.Event()

    async def until_workers() -> None:
        task = asyncio.ensure_future(shardwright.aevaluate(cases, jobs=2, epochs=50))
        while not multiprocessing.active_children():
            await asyncio.sleep(0.01)
        begun.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(until_workers())
    end = time.monotonic() + 60
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.05)
    assert multiprocessing.active_children() == []
