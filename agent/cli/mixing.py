"""`--mix FILE` of `plan` and `search`: several kinds of requests at once, one strategy for all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .flags import INPUT
from .streams import write_saved

if TYPE_CHECKING:
    from ..intent.intent import Intent

mix_option = click.option(
    "--mix",
    type=INPUT,
    metavar="FILE",
    help="Several kinds of requests at once (YAML or JSON): name, weight, input_tokens, output_tokens, limits of each.",
)


def deliver_mix(
    intent: Intent, mix: Path, *, top: int, output_format: str, is_strict: bool, output: Path | None = None
) -> int:
    """Print the best strategy for the kinds in the file `mix`, and write its plan to `output`; the exit status.

    `is_strict`: it is 1 too where words were not acted on.

    Raises:
        InputError: the kinds cannot be read, the hardware is left open, or something is stated that a mix cannot have.
    """
    from ..mix import answer_mix, read_kinds
    from ..report.mix import render_mix

    answer = answer_mix(intent, read_kinds(mix))
    document = None if answer.plan is None else answer.plan.model_dump_json(indent=2) + "\n"
    write_saved(answer, output_format, render_mix, output, document, top=top)
    return answer.exit_status or int(is_strict and bool(answer.not_acted_on))
