"""Who proposes: `--proposer` and what goes with a language model, alike for every command that may ask one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from .endpoint_flags import endpoint_flags, endpoint_options
from .flags import FILE, LIMIT, SECONDS, with_options

if TYPE_CHECKING:
    from ..agent import Agent
    from ..reading.reader import ModelReader

# What `--reader` takes.
READERS = ("model", "rules")
reader_option = click.option(
    "--reader",
    type=click.Choice(READERS),
    help="Who reads the request: a language model beside the rules (where one is asked), or the rules alone.",
)
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
    reader_option,
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
    return partial(with_options, options=options)


proposer_options = proposer_options_of("in all")


def agent_of(options: dict[str, Any]) -> tuple[Agent | None, ModelReader | None]:
    """The agent that proposes, and the reader beside the rules; `None`: the tools alone.

    Raises:
        InputError: a language model is asked for and no endpoint or no model is named, or a setting cannot be.
    """
    from ..model.settings import HOW_TO_PRICE, configured, read_settings

    flags = endpoint_flags(options)
    asked, reader = options["proposer"], options.pop("reader")
    proposes = asked == "llm" or (asked == "auto" and configured(flags))
    if not proposes and reader != "model":
        return None, None
    from ..agent import Agent
    from ..loop.agent_options import AgentOptions
    from ..loop.budget import Limits
    from ..model.endpoint import EndpointClient

    settings = read_settings(flags)
    usd = options["max_usd"]
    if usd is not None and settings.prices is None:
        raise InputError(f"--max-usd needs the prices of the model: {HOW_TO_PRICE}")
    stated = {
        "corrections": options["corrections"],
        "seconds": options["max_seconds"],
        "tokens": options["max_tokens"],
        "usd": usd,
    }
    limits = Limits(**{name: value for name, value in stated.items() if value is not None})
    agent = Agent(
        EndpointClient(settings),
        options=AgentOptions(
            limits=limits,
            prices=settings.prices,
            feedback=options["feedback"],
            mode=settings.mode,
            transcript=options["transcript"],
            time_limit_s=options["time_limit"],
            reader=reader or "model",
        ),
    )
    return (agent if proposes else None), agent.reader()


def reader_of(options: dict[str, Any]) -> ModelReader | None:
    """The reader beside the rules, for a command in which no model proposes; takes its options out of `options`.

    Raises:
        InputError: `--reader model` with no endpoint or no model named, or a setting cannot be.
    """
    reader = options.pop("reader")
    agent = None if reader == "rules" else usual_agent(options, must_be=reader == "model")
    return None if agent is None else agent.reader()


def usual_agent(options: dict[str, Any], *, must_be: bool = False) -> Agent | None:
    """The agent of the endpoint that the options name, with the usual budget; `None` where none is named.

    Raises:
        InputError: none is named and one `must_be`, or a setting cannot be.
    """
    from ..model.settings import configured, read_settings

    flags = endpoint_flags(options)
    if not must_be and not configured(flags):
        return None
    from ..agent import Agent
    from ..loop.agent_options import AgentOptions
    from ..model.endpoint import EndpointClient

    settings = read_settings(flags)
    return Agent(EndpointClient(settings), options=AgentOptions(prices=settings.prices, mode=settings.mode))
