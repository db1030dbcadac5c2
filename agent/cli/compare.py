"""`compare`: two plan documents, or one and a strategy in words, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..report.text import value_text
from .documents import DOCUMENT, read_plan_text, title_of, typed_plan, typed_text
from .flags import PRICE, TEXT, output_format, own_calibration, take_stdin
from .online_flag import online_option
from .streams import STANDARD, may_style, named_path, text_width, write_json, write_stdout

if TYPE_CHECKING:
    from ...tools.plan.document import Plan
    from ..compare import Words


_MOST_TITLE = 60


@click.command("compare", short_help="Two plans, or a plan and what runs today, side by side.")
@DOCUMENT
@click.argument("other", metavar="OTHER", type=TEXT)
@click.option("--usd-per-gpu-hour", type=PRICE, help="Price, for the cost per million tokens.")
@own_calibration
@online_option
@output_format
def compare_command(
    document: Path, other: str, usd_per_gpu_hour: float | None, calibration: Path | None, output_format: str
) -> int:
    """Set the plan document FILE (A) beside OTHER (B): another plan, a strategy in words, or launch commands.

    Words and commands are laid out under A's model, hardware and load where they name none. Exit 1 where one of the two
    is not valid.

    \b
      shardwright compare today.json plan.json
      shardwright compare plan.json "DP2 of TP4"
      shardwright compare plan.json "vllm serve Qwen/Qwen3-32B -tp 8"
    """
    if other == STANDARD:
        take_stdin("OTHER", click.get_current_context())
    first = typed_plan(document)
    second = _other(other)
    from ..compare import compare

    titles = (title_of(document), title_of(Path(STANDARD)) if other == STANDARD else value_text(other, _MOST_TITLE))
    found = compare(first, second, titles=titles, calibration=calibration, usd_per_gpu_hour=usd_per_gpu_hour)
    if output_format == "json":
        write_json(found)
    else:
        from ..report.compare import render_comparison

        write_stdout(render_comparison(found, width=text_width(), bold=may_style()))
    return found.exit_status


def _other(text: str) -> Plan | Words:
    from ..compare import Words, is_words

    if text != STANDARD and is_words(text):
        return Words(text)
    path = named_path(text)
    written = read_plan_text(path)
    from ...tools.importing.launch import is_launch

    return Words(written) if is_launch(written) else typed_text(written, path)
