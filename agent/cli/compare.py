"""`compare`: two deployments side by side, plan documents or launch commands, or one of them a strategy in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..report.text import value_text
from .asking import said_of_options, says_setting
from .documents import read_plan_text, title_of, typed_text
from .flags import PRICE, SAID_HARDWARE, TEXT, output_format, take_stdin
from .streams import STANDARD, named_path, write_answer

if TYPE_CHECKING:
    from ...tools.plan.document import Plan
    from ..compare import Words


_MOST_TITLE = 60


@click.command("compare", short_help="Two plans, or a plan and what runs today, side by side.")
@click.argument("first", metavar="FILE|COMMAND", type=TEXT)
@click.argument("second", metavar="FILE|COMMAND|STRATEGY", type=TEXT)
@says_setting
@click.option(
    "--hardware-b",
    type=SAID_HARDWARE,
    metavar="NODESxGPUS:ACCELERATOR",
    help="B's, where it is another than --hardware.",
)
@click.option("--usd-per-gpu-hour-b", type=PRICE, help="Price of B's GPUs, where it is another one.")
@output_format
def compare_command(
    first: str,
    second: str,
    calibration: Path | None,
    hardware_b: tuple[str, dict[str, Any]] | None,
    usd_per_gpu_hour_b: float | None,
    output_format: str,
    **options: Any,
) -> int:
    """Set one deployment (A) beside another (B): plan documents, launch commands, or strategies in words.

    What words and commands leave open is as in the other side; a plan that names no engine is judged on that of the
    other. The load that options state is that of both; --hardware is that of words and commands, --model and the rest
    are for commands that leave them open, or where both sides are words. Exit 1 where one of the two is not valid.

    \b
      shardwright compare today.json plan.json
      shardwright compare plan.json "DP2 of TP4"
      shardwright compare plan.json "TP4" --hardware 1x4:b200-sxm
      shardwright compare plan.json "vllm serve Qwen/Qwen3-32B -tp 8"
      shardwright compare h100.json h200.json --usd-per-gpu-hour 2.5 --usd-per-gpu-hour-b 3.4
      shardwright compare old.sh new.sh --hardware 1x8:h100-sxm --concurrency 64
    """
    for name, text in (("A", first), ("B", second)):
        if text == STANDARD:
            take_stdin(name, click.get_current_context())
    from ...tools.language.said import Said
    from ..compare import OfB, compared
    from ..report.compare import render_comparison

    said = said_of_options(options)
    other: Said | None = None
    if hardware_b is not None:
        text, fields = hardware_b
        other = Said(**fields, words=dict.fromkeys(fields, f"--hardware-b {text}"))
    comparison = compared(
        _side(first),
        _side(second),
        said,
        OfB(usd_per_gpu_hour_b, other),
        titles=(_titled(first), _titled(second)),
        calibration=calibration,
    )
    write_answer(comparison, output_format, render_comparison)
    return comparison.exit_status


def _titled(text: str) -> str:
    from ..compare import is_words

    if text == STANDARD:
        return title_of(Path(STANDARD))
    return value_text(text, _MOST_TITLE) if is_words(text) else title_of(named_path(text))


def _side(text: str) -> Plan | Words:
    from ..compare import Words, is_words

    if text != STANDARD and is_words(text):
        return Words(text)
    path = named_path(text)
    written = read_plan_text(path)
    from ...tools.importing.launch import is_launch

    return Words(written) if is_launch(written) else typed_text(written, path)
