"""`plan`: from words, briefs and options to a plan document and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from .asking import asked, asks
from .flags import output_format
from .mixing import deliver_mix, mix_option
from .streams import STANDARD, may_style, text_width, write_file, write_json, write_stdout

if TYPE_CHECKING:
    from ..results import PlanResult

# Strategies that the report of a plan for a mix lists.
MIXES_SHOWN = 5


@click.command("plan", short_help="Plan a deployment from words, a brief or options.")
@asks
@click.option(
    "--proposer",
    type=click.Choice(["builtin", "llm"]),
    default="builtin",
    show_default=True,
    help="Who proposes the strategy.",
)
@mix_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the plan document to this file.")
@output_format
def plan_command(
    request: tuple[str, ...],
    brief: tuple[Path, ...],
    calibration: Path | None,
    output: Path | None,
    output_format: str,
    **options: Any,
) -> int:
    """Plan a deployment: REQUEST in words (English or Chinese), a brief, options, or all of them.

    An option wins over the words. What nobody said is assumed, and the report says so.

    \b
      shardwright plan "Serve DeepSeek-V3 on 16 H200, 4k/1k, best throughput"
      shardwright plan --model llama-3.1-70b --hardware 1x8:h100-sxm --ttft-ms 500
      shardwright plan --brief requirements.md -o plan.json
    """
    if options["proposer"] == "llm":
        raise InputError("--proposer llm is not built yet; leave it out to plan with the built-in proposer")
    intent = asked(request, brief, calibration, options, "plan")
    mix: Path | None = options["mix"]
    if mix is not None:
        return deliver_mix(intent, mix, top=MIXES_SHOWN, output_format=output_format, output=output)
    from ..pipeline import plan_intent

    result = plan_intent(intent, keep_stated=not brief)
    _deliver(result, output, output_format)
    return result.exit_status


def _deliver(result: PlanResult, output: Path | None, output_format: str) -> None:
    document = result.plan.model_dump_json(indent=2) + "\n" if result.plan is not None else None
    to_stdout = output is not None and str(output) == STANDARD
    if output is not None and not to_stdout and document is not None:
        write_file(output, document)
    if to_stdout and document is not None:
        write_stdout(document)
        return
    if output_format == "json":
        write_json(result)
        return
    from ..report.plan import render_plan

    text = render_plan(result, width=text_width(), bold=may_style(), saved_as=output)
    if to_stdout:  # standard output was promised a document; there is none
        sys.stderr.write(text)
    else:
        write_stdout(text)
