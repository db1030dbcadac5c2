"""One server put together: the routes, what guards them, and what they share.

From outside to inside: every request is counted, and what is refused becomes an answer (`observed.py`); who may not ask
is turned away (`guard.py`); bodies are bounded (`bodies.py`); then comes a route.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ... import __version__
from ..operations.all_operations import OPERATIONS
from .answering import NO_STORE, packed
from .bodies import BodyBounds
from .guard import Guard
from .observed import Observed, resident_bytes
from .operation_routes import API, add_operations, path_of, takes_documents
from .page_files import add_page
from .parts import Parts
from .refusals import RefusalError, broken, no_route
from .session_routes import SESSIONS, TURNS, add_sessions
from .settings import Limits
from .talk_routes import add_talk


def make_app(parts: Parts, mounted: Mapping[str, Starlette] | None = None) -> ASGIApp:
    """The server over `parts`, and further applications at a path each (`/mcp`), guarded like everything else.

    These work by `parts.gates.run`, so that the same gates bound them.
    """
    mounted = mounted or {}

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for application in mounted.values():
                await stack.enter_async_context(application.router.lifespan_context(application))
            yield
            parts.gates.stop()
            await parts.gates.long.idle(parts.settings.limits.stop_s)
            parts.close()

    app = FastAPI(
        title="shardwright", version=__version__, lifespan=life, docs_url=None, redoc_url=None, openapi_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(RefusalError, _refused)
    app.add_exception_handler(Exception, _broken)
    add_page(app)
    add_operations(app, parts)
    add_sessions(app, parts)
    add_talk(app, parts)
    _add_state(app, parts)
    for path, application in mounted.items():
        app.router.routes.append(Route(path, application, include_in_schema=False))
    limits = parts.settings.limits
    bounded = BodyBounds(app, limits, _most_bytes(limits, mounted))
    return Observed(Guard(bounded, parts.settings), parts.counts, parts.log, mounted.keys())


_TURNS = TURNS.rpartition("/")[2]


def _most_bytes(limits: Limits, mounted: Iterable[str]) -> Callable[[str], int]:
    """The largest body of each path."""
    known = {
        path_of(operation): limits.document_bytes if takes_documents(operation) else limits.brief_bytes
        for operation in OPERATIONS
    }
    folders = tuple(mounted)

    def most_bytes(path: str) -> int:
        is_turn = path.startswith(f"{SESSIONS}/") and path.endswith(_TURNS)
        return limits.document_bytes if is_turn or path.startswith(folders) else known.get(path, limits.text_bytes)

    return most_bytes


def _add_state(app: FastAPI, parts: Parts) -> None:
    """Add the routes that say how the server is: health, metrics and the OpenAPI document."""

    async def health(request: Request) -> Response:
        del request
        needs_token = parts.settings.token is not None
        body = packed({"status": "ok", "version": __version__, "token": needs_token})
        return Response(body, headers=NO_STORE, media_type="application/json")

    async def metrics(request: Request) -> Response:
        del request
        gauges = {
            "shardwright_jobs_running": ("Jobs that run.", parts.gates.long.running + parts.gates.short.running),
            "shardwright_jobs_waiting": ("Jobs that wait.", parts.gates.long.waiting + parts.gates.short.waiting),
            "shardwright_sessions": ("Conversations in memory.", len(parts.sessions) + len(parts.talks)),
            "process_resident_memory_bytes": ("Memory that the process holds.", resident_bytes()),
        }
        return PlainTextResponse(parts.counts.text(gauges), headers=NO_STORE)

    async def openapi(request: Request) -> Response:
        del request
        from .openapi import openapi_of

        return Response(packed(openapi_of(app)), headers=NO_STORE, media_type="application/json")

    app.add_api_route(f"{API}/health", health, methods=["GET"], operation_id="health", summary="Whether it lives.")
    app.add_api_route("/metrics", metrics, methods=["GET"], operation_id="metrics", summary="Counts for Prometheus.")
    app.add_api_route("/api/openapi.json", openapi, methods=["GET"], include_in_schema=False)


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    headers = error.headers if isinstance(error, HTTPException) else None
    return no_route(status).response(request.url.path, headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)
    return error.response(request.url.path)


async def _broken(request: Request, error: Exception) -> Response:
    del error  # it goes on to who logs it
    return broken().response(request.url.path)
