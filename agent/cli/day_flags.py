"""The options that ask what a day takes: its rates, and what is kept beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...tools.input.bounds import HEADROOM, RESERVE
from .flags import TEXT, CountType, LimitType, with_options

_DAY = (
    click.option(
        "--rate-curve",
        type=TEXT,
        metavar="RATES|STEPS|WORDS|FILE|trace",
        help="Size the replicas over a day of these requests/s: 24 rates, 0-8=2,8-18=20,18-24=5, 'office hours, 20 at "
        "peak, 6 on average', a CSV file, or trace for the hours of --trace.",
    ),
    click.option(
        "--reserve-replicas",
        type=CountType(RESERVE),
        metavar="N",
        help="Replicas that may be lost over the day without a limit being missed; 1 (N+1) where left out.",
    ),
    click.option(
        "--headroom",
        type=LimitType(HEADROOM),
        metavar="SHARE",
        help="Share of each rate of the day that may come besides; 0.1 where left out.",
    ),
)


def asks_of_day(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a day, as parameters of `command`."""
    return with_options(command, _DAY)
