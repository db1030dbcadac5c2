"""Who proposes: `--proposer` and what goes with a language model, alike for every command that may ask one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from .endpoint_flags import endpoint_flags, endpoint_options
from .flags import FILE, LIMIT, SECONDS

if TYPE_CHECKING:
    from ..agent import Agent

LEVELS = ("none", "bit", "codes", "full", "patch")
_WHO = (
    click.option(
        "--proposer",
        type=click.Choice(["auto", "builtin", "llm"]),
        default="auto",
        show_default=True,
        help="Who proposes; auto asks a language model where an endpoint and a model are configured.",
    ),
    endpoint_options,
    click.option(
        "--feedback", type=click.Choice(LEVELS), default="patch", help="How much a model is told of its faults."
    ),
)


def proposer_options_of(span: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of this module, for a command that gives a model its budget anew for each `span`."""
    options = (
        *_WHO,
        click.option(
            "--corrections",
            type=click.IntRange(0, 100),
            help=f"Proposals after the first that a model may make {span}.",
        ),
        click.option("--max-seconds", type=SECONDS, help=f"The longest that a model may take {span}, tools included."),
        click.option("--max-tokens", type=click.IntRange(1), help=f"The most tokens that a model may use {span}."),
        click.option("--max-usd", type=LIMIT, help=f"The most that a model may cost {span}; needs its prices."),
        click.option(
            "--transcript",
            type=FILE,
            help="Write the run with a model to this file, step by step.",
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


proposer_options = proposer_options_of("in all")


def agent_of(options: dict[str, Any]) -> Agent | None:
    """The agent that the call asks for; `None` where the built-in proposer is to plan.

    Raises:
        InputError: a language model is asked for and no endpoint or no model is named, or a setting cannot be.
    """
    from ..model.settings import configured, read_settings

    flags = endpoint_flags(options)
    asked = options["proposer"]
    if asked == "builtin" or (asked == "auto" and not configured(flags)):
        return None
    from ..agent import Agent
    from ..loop.budget import Limits
    from ..loop.planner import AgentOptions
    from ..model.endpoint import EndpointClient

    settings = read_settings(flags)
    usd = options["max_usd"]
    if usd is not None and settings.prices is None:
        raise InputError("--max-usd needs the prices of the model: set them in the settings file or the environment")
    said = {
        "corrections": options["corrections"],
        "seconds": options["max_seconds"],
        "tokens": options["max_tokens"],
        "usd": usd,
    }
    limits = Limits(**{name: value for name, value in said.items() if value is not None})
    return Agent(
        EndpointClient(settings),
        options=AgentOptions(
            limits=limits,
            prices=settings.prices,
            feedback=options["feedback"],
            mode=settings.mode,
            transcript=options["transcript"],
            time_limit_s=options["time_limit"],
        ),
    )
