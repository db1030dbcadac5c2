"""Requests to the server with random damage to bodies, headers and paths, over a real socket.

Each gets an answer in time, with neither status 500 nor a traceback, and in valid JSON if it is JSON; a refusal is one
printable line. The server logs no fault and keeps answering.
"""

from __future__ import annotations

import json
import random
import time
from contextlib import ExitStack
from functools import cache
from typing import Any

import httpx2

from shardwright.agent.cli.serving import MCP_PATH
from shardwright.agent.mcp.over_http import mcp_app

from ..agent.operations.asked import REQUEST, questions
from ..serve.served import Server, in_thread
from .damage import damaged
from .probe import Case, Probe
from .seeds import seed_names, seed_text

# Seconds that a search may use, and that an answer may take on a busy machine.
_JOB_S, _MOST_S = 10.0, 60.0
# Statuses of a job that was ended, and of an overloaded server.
_NO_FAULTS = (502, 503, 504)
_HEADERS: tuple[dict[str, str], ...] = (
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/json; charset=utf-16"},
    {"Content-Encoding": "gzip"},
    {"Accept": "text/event-stream"},
    {"Accept": "application/json, text/event-stream"},
    {"Transfer-Encoding": "chunked"},
    {"Authorization": "Bearer \x7f"},
    {"Origin": "http://elsewhere.example"},
    {"X-Request-Id": "a" * 8000},
)


def _bodies(plan: str) -> dict[str, dict[str, Any]]:
    """An honest body for each path."""
    call = {"name": "validate", "arguments": {"plan": plan}}
    messages = [{"role": "user", "content": REQUEST}, {"role": "assistant", "content": "?"}]
    return {
        **{f"/api/v1/{name}": body for name, body in questions(plan).items()},
        "/api/v1/sessions": {},
        "/api/v1/sessions/none/turns": {"text": REQUEST},
        "/v1/chat/completions": {"model": "shardwright", "messages": messages[:1], "stream": True},
        "/v1/chat/completions?again": {"model": "shardwright", "messages": [*messages, *messages[:1]]},
        MCP_PATH: {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    }


def http_case(seed: int, number: int) -> Case:
    """The damaged request that `seed` and `number` determine; the paths take turns."""
    rng = random.Random(f"http:{seed}:{number}")
    bodies = _bodies(seed_text(rng.choice(seed_names())))
    path = list(bodies)[number % len(bodies)]
    body = damaged(json.dumps(bodies[path]).encode(), rng)
    headers = rng.choice(_HEADERS) if rng.random() < 0.2 else {}
    method = rng.choice(("GET", "PUT", "DELETE", "OPTIONS", "HEAD")) if rng.random() < 0.05 else "POST"
    where = damaged(path.encode(), rng).decode("latin-1") if rng.random() < 0.05 else path
    return Case("http", json.dumps([method, where, headers, body.decode("latin-1")]), path)


# Servers that run until their process ends.
_RUNNING = ExitStack()


@cache
def _server() -> Server:
    """The server of this process."""
    return _RUNNING.enter_context(
        in_thread(mounted=lambda parts: {MCP_PATH: mcp_app(parts.gates.run, None)}, job_s=_JOB_S, turn_s=_JOB_S)
    )


def check_http(case: Case, probe: Probe) -> None:
    """Send the request of `case` and judge the answer."""
    method, path, headers, body = json.loads(case.text)
    server, since = _server(), time.monotonic()
    written = len(server.log)
    with server.client() as client:
        # A path that no URL can hold is never sent.
        try:
            answer = client.request(
                method, path, content=body.encode("latin-1"), headers={"Content-Type": "application/json", **headers}
            )
        except (httpx2.InvalidURL, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol):
            return
        except httpx2.HTTPError as error:
            probe.wrong(case.about, f"no answer: {type(error).__name__}", error)
            return
        _judge(case.about, answer, probe)
    seconds = time.monotonic() - since
    if seconds > _MOST_S:
        probe.fault("slow", case.about, "does not end in time", f"{seconds:.0f} s")
    for line in server.log[written:]:
        if "fault" in line or "Traceback" in line:
            probe.fault("traceback", case.about, line)


def _judge(call: str, answer: httpx2.Response, probe: Probe) -> None:
    text = answer.content.decode("utf-8", "replace")
    if answer.status_code >= 500 and answer.status_code not in _NO_FAULTS:
        probe.wrong(call, f"status {answer.status_code}", text[:300])
    if "Traceback (most recent call last)" in text:
        probe.fault("traceback", call, "a traceback in the answer", text[:300])
    if "json" not in answer.headers.get("content-type", "") or not text:
        return
    try:
        answered = json.loads(text)
    except ValueError:
        probe.wrong(call, "an answer that is no JSON", text[:300])
        return
    error = answered.get("error") if isinstance(answered, dict) else None
    message = error.get("message", "") if isinstance(error, dict) else ""
    # The MCP library words its refusals itself.
    if answer.status_code >= 400 and call != MCP_PATH and not (message and message.isprintable()):
        probe.wrong(call, "a refusal that is not one printable line", text[:300])
