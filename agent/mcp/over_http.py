"""The protocol over streamable HTTP, as an application that `serve` mounts behind its guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

from .server import mcp_server
from .shelf import Shelf
from .tools import Bench
from .wire import MOST_MESSAGE_BYTES
from .work import Run

if TYPE_CHECKING:
    from ..agent import Agent

# Clients of the older protocol that are remembered at once, and for how many seconds of silence.
_MOST_SESSIONS = 256
_SESSION_IDLE_S = 1800.0


def mcp_app(run: Run, agent: Agent | None = None, most_bytes: int = MOST_MESSAGE_BYTES) -> Starlette:
    """The application, which answers at any path, as `Route("/mcp", endpoint=mcp_app(…))`; `run` works off its calls.

    It decides nothing about who may ask: what stands in front of it looks at hosts, origins and tokens. Its lifespan
    has to be entered once, which Starlette does for no application that is mounted.
    """
    server = mcp_server(run, Bench(Shelf(), agent), is_shared=True)
    manager = StreamableHTTPSessionManager(
        server,
        max_request_body_size=most_bytes,
        session_idle_timeout=_SESSION_IDLE_S,
        max_sessions=_MOST_SESSIONS,
    )
    return Starlette(routes=[Mount("/", StreamableHTTPASGIApp(manager))], lifespan=lambda app: manager.run())
