"""Routes of conversations: begin one, take a turn of it, see it again, end it."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from ...tools.input.strict_json import parse
from ..operations.operation import Question
from .answering import NO_STORE, Tell, answered, in_one, packed
from .operation_routes import API
from .parts import Parts
from .refusals import RefusalError
from .turns import Current, TurnQuestion
from .valid import valid

SESSIONS = f"{API}/sessions"
# Where a turn is taken; it may bring a plan document.
TURNS = f"{SESSIONS}/{{id}}/turns"


class SessionBegun(Question):
    """A new conversation. `model`: the language model that answers in it; none where the built-in reader does."""

    id: str
    model: str | None


class SessionLine(Question):
    """A conversation as a list shows it; times are seconds since 1970."""

    id: str
    first: str
    begun: float
    used: float
    turns: int


class SessionList(Question):
    """The conversations that there are, the last used first."""

    sessions: tuple[SessionLine, ...]
    now: float


class Deleted(Question):
    """A conversation is gone."""

    deleted: bool


class Said(Question):
    """One turn of a conversation; `kind` is how it ended, none while it has not.

    `is_given`: it was no words, but fields that were set or a plan that was opened.
    """

    turn: int
    input: str
    text: str
    kind: str | None
    is_given: bool


class SessionWhole(SessionLine, Current):
    """A conversation with its last turns and the current plan; `busy` while a turn is under way."""

    busy: bool
    said: tuple[Said, ...]


def add_sessions(app: FastAPI, parts: Parts) -> None:
    """The routes of conversations."""
    sessions, model = parts.sessions, None if parts.agent is None else parts.agent.client.name

    async def begin(request: Request) -> Response:
        body = await request.body()

        def work(tell: Tell) -> bytes:
            del tell
            if body.strip() and parse(body, "the body") != {}:
                raise RefusalError(400, "input", "a session is begun with {}: nothing is said of it yet")
            return packed({"id": sessions.open().id, "model": model})

        return await in_one(request, parts.gates.short, work)

    async def listed(request: Request) -> Response:
        del request
        return _json_response({"sessions": sessions.listed(), "now": time.time()})

    async def seen(request: Request) -> Response:
        return _json_response(sessions.find(request.path_params["id"]).whole())

    async def ended(request: Request) -> Response:
        sessions.delete(request.path_params["id"])
        return _json_response({"deleted": True})

    async def turn(request: Request) -> Response:
        body = await request.body()
        session = sessions.taken(request.path_params["id"])

        def work(tell: Tell) -> bytes:
            return session.answer(valid(TurnQuestion, body), lambda piece: tell("text", {"delta": piece}))

        return await answered(request, parts.gates.long, work, session.leave)

    for path, method, endpoint, summary in (
        (SESSIONS, "POST", begin, "Begin a conversation."),
        (SESSIONS, "GET", listed, "The conversations that there are."),
        (f"{SESSIONS}/{{id}}", "GET", seen, "What was said in a conversation, and its current plan."),
        (f"{SESSIONS}/{{id}}", "DELETE", ended, "End a conversation."),
        (TURNS, "POST", turn, "Say something in a conversation."),
    ):
        app.add_api_route(
            path, endpoint, methods=[method], summary=summary, operation_id=f"session_{endpoint.__name__}"
        )


def _json_response(value: Any) -> Response:
    body = value if isinstance(value, bytes) else packed(value)
    return Response(body, headers=NO_STORE, media_type="application/json")
