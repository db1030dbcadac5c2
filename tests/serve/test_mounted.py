"""Mounted applications are guarded as the routes are, live as long, and share their gates for work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from shardwright.agent.serve.parts import Parts
from shardwright.agent.serve.settings import Settings
from shardwright.tools.errors import ServiceError

from .served import in_thread

TOKEN = "correct-horse-battery-staple"


def test_one_that_is_mounted_is_guarded_lives_and_works_behind_the_gates() -> None:
    seen: list[str] = []

    def mounted(parts: Parts) -> dict[str, Starlette]:
        @asynccontextmanager
        async def life(app: Starlette) -> AsyncIterator[None]:
            seen.append("begun")
            yield
            seen.append("ended")

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await Request(scope, receive).body()
            try:
                response = PlainTextResponse(
                    await parts.gates.run(lambda: f"{parts.gates.long.running} runs", is_long=True)
                )
            except ServiceError as error:
                response = PlainTextResponse(str(error), 503)
            await response(scope, receive, send)

        return {"/mcp": Starlette(routes=[Mount("/", answer)], lifespan=life)}

    with in_thread(Settings(token=TOKEN), mounted=mounted) as server:
        with server.client() as client:
            assert client.post("/mcp", json={}).status_code == 401
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            for method in ("POST", "DELETE"):
                assert client.request(method, "/mcp", json={}).text == "1 runs"
            assert client.get("/mcp", headers={"Accept": "text/event-stream"}).text == "1 runs"
            assert client.post("/mcp", content="{}").status_code == 415
            assert client.post("/mcp", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
            assert client.post("/mcp", json={"x": "x" * (17 << 20)}).status_code == 413
        server.parts.gates.stop()
        with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            assert client.post("/mcp", json={}).text == "the server is stopping"
        assert [line for line in server.log if line.startswith("POST /mcp 200")], server.log
    assert seen == ["begun", "ended"]
