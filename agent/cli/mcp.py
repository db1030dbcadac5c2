"""`mcp`: the tools as a Model Context Protocol server on standard input and output."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import click

from . import EXIT_INTERRUPTED
from .endpoint_flags import endpoint_flags, endpoint_options
from .online_flag import online_option

if TYPE_CHECKING:
    from ..agent import Agent


@click.command("mcp", short_help="Serve the tools to a coding agent, over the Model Context Protocol.")
@endpoint_options
@online_option
def mcp_command(**options: Any) -> int:
    """Serve the tools as a Model Context Protocol server on standard input and output, until the input ends.

    A client starts it itself: {"command": "shardwright", "args": ["mcp"]}. The options name a language model that the
    plan tool may ask where a call wants that; nothing else needs one.
    """
    from ..mcp.stdio import serve_stdio

    ended_by = serve_stdio(_agent(options))
    return EXIT_INTERRUPTED if ended_by == signal.SIGINT else 0


def _agent(options: dict[str, Any]) -> Agent | None:
    """Who is asked where a call wants a language model; `None` where none is named."""
    from ..model.settings import configured, read_settings

    flags = endpoint_flags(options)
    if not configured(flags):
        return None
    from ..agent import Agent
    from ..loop.planner import AgentOptions
    from ..model.endpoint import EndpointClient

    settings = read_settings(flags)
    return Agent(EndpointClient(settings), options=AgentOptions(prices=settings.prices, mode=settings.mode))
