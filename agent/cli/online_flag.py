"""`--online`: models that are named by an id of the Hugging Face Hub may be fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..hub.online import VARIABLE, online


def _allow(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        context.with_resource(online(is_allowed=True))


def online_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--online`, which holds for the whole command and is no parameter of it."""
    return click.option(
        "--online",
        is_flag=True,
        expose_value=False,
        callback=_allow,
        help="Fetch the config.json of a model (org/name) that neither the catalogue nor the local Hugging Face cache "
        f"has.  [env: {VARIABLE}]",
    )(command)
