"""`--time-limit`: how long a command may search before it answers with the best that it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import click

from ...tools.checkpoint import best_so_far
from .flags import SECONDS

DEFAULT_SECONDS = 30.0


def time_limit_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option, as the parameter `time_limit` of `command`."""
    return click.option(
        "--time-limit",
        type=SECONDS,
        default=DEFAULT_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Answer with the best found so far after this time, and say what was not looked at.",
    )(command)


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Searches inside end with what they have once `seconds` have gone by."""
    end = time.monotonic() + seconds
    with best_so_far(lambda: time.monotonic() >= end):
        yield
