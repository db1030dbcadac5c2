"""`serve`: the page, the HTTP API and the OpenAI-compatible endpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ...tools.errors import InputError
from .flags import TEXT, time_limit_option
from .process import EXIT_INTERRUPTED
from .proposing import agent_of, proposer_options_of

if TYPE_CHECKING:
    from ..serve.settings import Settings

TOKEN_VARIABLE = "SHARDWRIGHT_SERVE_TOKEN"
_LEAST_TOKEN_LETTERS = 16
DEFAULT_PORT = 8765
# Where the Model Context Protocol is spoken.
MCP_PATH = "/mcp"
_AFTER_A_RUN_S = 60.0


@click.command("serve", short_help="A web page and an HTTP API, on this machine alone by default.")
@click.option("--host", type=TEXT, default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 is any free one, which is printed.",
)
@click.option(
    "--token",
    type=TEXT,
    help=f"What clients have to show (Authorization: Bearer); others see it in the list of processes.  "
    f"[env: {TOKEN_VARIABLE}]",
)
@click.option(
    "--allow-host", "names", multiple=True, type=TEXT, help="A name under which it is asked, too; may be repeated."
)
@click.option("--open/--no-open", "opens", default=False, help="Open the page in a browser.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Plans and searches at once.  [default: one a core]")
@click.option("--quiet", is_flag=True, help="No line on stderr for each request.")
@proposer_options_of("in one request")
@time_limit_option(" each turn")
def serve_command(host: str, port: int, token: str | None, opens: bool, **options: Any) -> int:
    """Serve a web page, an HTTP API, an OpenAI-compatible endpoint and MCP until Ctrl-C.

    It listens on this machine alone; any other --host demands a token. Sessions are in memory. No file is read or
    written for who asks. What can be asked is in /api/openapi.json; chat programs take URL/v1 as their base URL,
    MCP clients URL/mcp.
    The exit status is 0 where it was ended, by SIGTERM or Ctrl-C; 130 by a second Ctrl-C.

    \b
      shardwright serve --open
      curl -s localhost:8765/api/v1/plan -H 'content-type: application/json' \\
        -d '{"request": "Llama-3.1-70B on 8 H100, 2k in / 256 out"}'
    """
    from ..serve.listening import bound_socket, is_loopback

    token = _checked_token(token if token is not None else os.environ.get(TOKEN_VARIABLE) or None)
    listener = bound_socket(host, port)
    try:
        if token is None and not is_loopback(listener):
            raise InputError(f"--host {host}: others reach this; name a token with --token or {TOKEN_VARIABLE}")
        settings = _settings(host, token, is_loopback=is_loopback(listener), options=options)
        return _served(listener, settings, options, opens=opens)
    finally:
        listener.close()


def _checked_token(token: str | None) -> str | None:
    """The token, if there is one.

    Raises:
        InputError: it is short enough to be guessed, or no header can hold it.
    """
    if token is None:
        return None
    if len(token) < _LEAST_TOKEN_LETTERS or not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError(
            f"the token is too short or has letters that no header holds: {_LEAST_TOKEN_LETTERS} letters or more "
            "without spaces are expected, such as those of: openssl rand -hex 24"
        )
    return token


def _settings(host: str, token: str | None, *, is_loopback: bool, options: dict[str, Any]) -> Settings:
    import socket

    from ..serve.settings import Limits, Settings

    names = {host, *options["names"], *(() if is_loopback else (socket.gethostname(), socket.getfqdn()))}
    limits = Limits(turn_s=options["time_limit"])
    if options["jobs"] is not None:
        limits = replace(limits, running=options["jobs"])
    return Settings(is_loopback, token, frozenset(name.lower().rstrip(".") for name in names), limits)


def _served(listener: Any, settings: Settings, options: dict[str, Any], *, opens: bool) -> int:
    from ..mcp.over_http import mcp_app
    from ..serve.app import make_app
    from ..serve.listening import url_of
    from ..serve.observed import log_line
    from ..serve.parts import Parts
    from ..serve.server import server_of

    agent, _ = agent_of(options)
    if agent is not None:
        # A run with a model ends by its own limit, and with the best that it has.
        seconds = max(settings.limits.job_s, agent.options.limits.seconds + _AFTER_A_RUN_S)
        settings = replace(settings, limits=replace(settings.limits, job_s=seconds))
    parts = Parts(settings, agent, None if options["quiet"] else log_line)

    def started() -> None:
        click.echo(f"shardwright serve: {url_of(listener)} (Ctrl-C ends it)", err=True)
        if opens:
            import threading
            import webbrowser

            # A browser on a terminal would hold the server.
            threading.Thread(target=webbrowser.open, args=(url_of(listener),), daemon=True).start()

    mounted = {MCP_PATH: mcp_app(parts.gates.run, agent, settings.limits.document_bytes)}
    server = server_of(make_app(parts, mounted), parts, started)
    server.run(sockets=[listener])
    return EXIT_INTERRUPTED if server.force_exit else 0
