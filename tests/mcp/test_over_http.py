"""Streamable HTTP: the server on a real socket, mounted as by `serve`, called by the official client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.routing import Route

from shardwright.agent.mcp.over_http import mcp_app
from shardwright.agent.serve.jobs import Gates
from shardwright.agent.serve.settings import Limits

from ..agent.operations.asked import SMALL, long_question
from .talk import Talk, connected


class Counted(Gates):
    """Gates that count the calls under way."""

    under_way = 0

    async def run(self, work: Any, *, is_long: bool) -> Any:
        """As `Gates`."""

        def counted() -> Any:
            self.under_way += 1
            try:
                return work()
            finally:
                self.under_way -= 1

        return await super().run(counted, is_long=is_long)


THREADS = Counted(Limits())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    inner = mcp_app(THREADS.run, most_bytes=1 << 20)

    @asynccontextmanager
    async def life(app: Starlette) -> Any:
        async with inner.router.lifespan_context(inner):
            yield

    app = Starlette(routes=[Route("/mcp", endpoint=inner)], lifespan=life)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module", params=["auto", "legacy"])
def web(request: pytest.FixtureRequest, address: str) -> Iterator[Talk]:
    with connected(address, mode=request.param) as client:
        yield client


def test_clients_of_either_protocol_are_told_what_handles_are(web: Talk) -> None:
    assert web.client.protocol_version in ("2025-11-25", "2026-07-28")
    assert "shardwright://plan/HASH" in web.client.instructions


def test_a_plan_goes_from_call_to_call_by_its_handle(web: Talk) -> None:
    planned = web.answered("plan", **SMALL)
    handle = planned["kept"]["answer.plan"]
    assert web.answered("validate", plan=handle)["answer"]["valid"] is True
    (plan,) = web.ask(web.client.read_resource, handle).contents
    assert json.loads(plan.text)["strategy"]


def test_plans_of_others_are_listed_to_nobody(web: Talk) -> None:
    handle = web.answered("plan", **SMALL)["kept"]["answer.plan"]
    cursor, uris = None, []
    while True:
        page = web.ask(web.client.list_resources, cursor=cursor)
        uris += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert uris and handle not in uris


def test_steps_are_told_and_refusals_are_one_line(web: Talk) -> None:
    steps: list[str | None] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    web.ask(web.client.call_tool, "search", SMALL, progress_callback=show)
    assert steps
    assert web.refused("validate", plan="/etc/passwd").startswith("plan: the object of a plan document")
    with pytest.raises(MCPError, match="there is no tool"):
        web.call("launch")


def test_several_clients_are_answered_at_once(address: str) -> None:
    def ask(number: int) -> str:
        with connected(address) as client:
            return client.answered("plan", **{**SMALL, "output_tokens": 64 + number % 2})["kept"]["answer.plan"]

    with ThreadPoolExecutor(4) as pool:
        kept_plans = list(pool.map(ask, range(4)))
    assert kept_plans[0] == kept_plans[2] != kept_plans[1] == kept_plans[3]


@pytest.mark.one_in(2)
def test_work_ends_when_who_asked_gives_it_up(web: Talk) -> None:
    async def give_up() -> None:
        begun = anyio.Event()

        async def show(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: web.client.call_tool("search", long_question(), progress_callback=show))
            await begun.wait()
            assert THREADS.under_way == 1
            tasks.cancel_scope.cancel()

    web.ask(give_up)
    end = time.monotonic() + 10
    while THREADS.under_way and time.monotonic() < end:
        time.sleep(0.02)
    assert THREADS.under_way == 0


def test_a_body_that_is_too_large_is_refused(web: Talk) -> None:
    with pytest.raises(MCPError):
        web.call("validate", plan="x" * (1 << 20))
