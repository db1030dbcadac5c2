"""`mcp`: the tools as a Model Context Protocol server on standard input and output."""

from __future__ import annotations

import signal
from typing import Any

import click

from .endpoint_flags import endpoint_options
from .online_flag import online_option
from .process import EXIT_INTERRUPTED
from .proposing import usual_agent


@click.command("mcp", short_help="Serve the tools to a coding agent, over the Model Context Protocol.")
@endpoint_options
@online_option
def mcp_command(**options: Any) -> int:
    """Serve the tools as a Model Context Protocol server on standard input and output, until the input ends.

    A client starts it itself: {"command": "shardwright", "args": ["mcp"]}. The options name a language model that the
    plan tool may ask where a call wants that; nothing else needs one.
    """
    from ..mcp.stdio import serve_stdio

    ended_by = serve_stdio(usual_agent(options))
    return EXIT_INTERRUPTED if ended_by == signal.SIGINT else 0
