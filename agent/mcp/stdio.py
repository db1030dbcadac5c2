"""The protocol over standard input and output, until the input ends or a signal ends the process."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import anyio

from ..serve.jobs import Gates
from ..serve.settings import Limits
from .server import mcp_server
from .shelf import Shelf
from .tools import Bench
from .wire import Wire

if TYPE_CHECKING:
    from ..agent import Agent

# Seconds that one call may take, and may wait for others.
_CALL_S = 300.0
_SIGNALS = () if sys.platform == "win32" else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_stdio(agent: Agent | None = None) -> int:
    """Serve the one client at the other end until it closes standard input; returns the signal that ended it, or 0.

    It takes the standard streams of the process and gives them back never: the process has nothing to do after it.
    """
    return anyio.run(_serve, _wire(), agent)


async def _serve(wire: tuple[int, int], agent: Agent | None) -> int:
    server = mcp_server(Gates(Limits(job_s=_CALL_S, wait_s=_CALL_S)).run, Bench(Shelf(), agent))
    # The parent process may have this one ignore some signals.
    signals = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    ended_by = 0
    with anyio.open_signal_receiver(*signals) as received:
        async with anyio.create_task_group() as tasks:

            async def end_at_signal() -> None:
                nonlocal ended_by
                async for number in received:
                    ended_by = int(number)
                    tasks.cancel_scope.cancel()

            tasks.start_soon(end_at_signal)
            async with Wire(*wire).streams() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()
    return ended_by


def _wire() -> tuple[int, int]:
    """Standard input and output for the protocol alone, for good: whatever else reads finds nothing, or prints to
    standard error."""
    sys.stdout.flush()
    source, sink, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return source, sink
