"""The options that name an endpoint, alike for every command that asks a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .flags import LIMIT, TEXT, with_options

if TYPE_CHECKING:
    from ..model.settings import EndpointFlags

_OPTIONS = (
    click.option("--llm-model", type=TEXT, help="The model to ask.  [env: SHARDWRIGHT_LLM_MODEL]"),
    click.option("--llm-url", type=TEXT, help="Base URL of the endpoint.  [env: OPENAI_BASE_URL]"),
    click.option(
        "--llm-mode",
        type=click.Choice(["auto", "tools", "schema", "text"]),
        help="How it is asked: by tools, in a schema, as text.  [env: SHARDWRIGHT_LLM_MODE]",
    ),
    click.option("--llm-timeout", type=LIMIT, help="Seconds for one request.  [env: SHARDWRIGHT_LLM_TIMEOUT_S]"),
)


def endpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; `endpoint_flags` reads them."""
    return with_options(command, _OPTIONS)


def endpoint_flags(options: dict[str, Any]) -> EndpointFlags:
    """The flags of the call for the endpoint; takes its options out of `options`."""
    from ..model.settings import EndpointFlags

    return EndpointFlags(
        model=options.pop("llm_model"),
        base_url=options.pop("llm_url"),
        mode=options.pop("llm_mode"),
        request_timeout_s=options.pop("llm_timeout"),
    )
