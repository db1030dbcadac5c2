"""Who may ask: this machine under its own names, others with the token, and only our own pages."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.serve.settings import Settings

from .served import Server, in_thread

TOKEN = "correct-horse-battery-staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "LOCALHOST", "127.0.0.1", "127.1.2.3:80", "[::1]:80"])
def test_this_machine_asks_under_its_own_names(host: str, served: Server) -> None:
    with served.client(headers={"Host": host}) as client:
        assert client.get("/api/v1/rules").status_code == 200


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://localhost:8000"])
def test_our_own_page_may_ask(origin: str, served: Server) -> None:
    headers = {"Host": "localhost:8000", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    with served.client(headers=headers) as client:
        assert client.post("/api/v1/rules", json={}).status_code == 200


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        (Settings(token=TOKEN), "localhost", 200),
        (Settings(token=TOKEN), "planner.example", 403),
        (Settings(token=TOKEN, names=frozenset({"planner.example"})), "planner.example:443", 200),
        (Settings(is_loopback=False, token=TOKEN), "10.1.2.3:8765", 200),
        (Settings(is_loopback=False, token=TOKEN), "planner.example", 403),
        (Settings(is_loopback=False, token=TOKEN, names=frozenset({"planner.example"})), "Planner.example.", 200),
    ],
)
def test_names_are_those_that_were_allowed(settings: Settings, host: str, status: int) -> None:
    with in_thread(settings) as server, server.client(headers={**BEARER, "Host": host}) as client:
        assert client.get("/api/v1/rules").status_code == status


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong-horse-battery-staple"},
     {"Authorization": f"Basic {TOKEN}"}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"},
     {"Authorization": "Bearer \xff"}, {"X-Token": TOKEN}, {"Cookie": f"token={TOKEN}"}],
)  # fmt: skip
def test_nothing_but_the_token_opens(headers: dict[str, Any]) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    with in_thread(Settings(token=TOKEN)) as server, server.client(headers=encoded) as client:
        for path in ("/api/v1/rules", "/api/v1/sessions", "/metrics", "/api/openapi.json", "/v1/models", "/nothing"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/v1/models").json()["error"]["type"] == "authentication_error"
        assert client.get("/api/v1/rules").json()["error"]["kind"] == "unauthorized"


def test_the_token_opens_and_what_is_open_needs_none() -> None:
    with in_thread(Settings(token=TOKEN)) as server, server.client() as client:
        assert client.get("/api/v1/rules", headers=BEARER).status_code == 200
        assert client.get("/api/v1/health").json()["token"] is True
        assert client.get("/").status_code in (200, 404)
        assert TOKEN not in " ".join(server.log) + repr(server.parts)
