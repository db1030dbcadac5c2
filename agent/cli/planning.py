"""`plan`: from words, briefs and options to a plan document and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError, ServiceError
from ..report.safe import one_line
from ..runs.time_limit import within
from .asking import asked, asks, request_text
from .day_flags import asks_of_day
from .flags import FILE, output_format, strict_option, time_limit_option
from .mixing import deliver_mix, mix_option
from .proposing import agent_of, proposer_options
from .streams import check_places, write_saved

if TYPE_CHECKING:
    from ..agent import Agent
    from ..intent.intent import Intent
    from ..reading.reader import ModelReader
    from ..results import PlanResult

# Strategies that the report of a plan for a mix lists.
MIXES_SHOWN = 5


@click.command("plan", short_help="Plan a deployment from words, a brief or options.")
@asks
@asks_of_day
@proposer_options
@mix_option
@time_limit_option()
@click.option("-o", "--output", type=FILE, help="Write the plan document to this file.")
@click.option("--full", is_flag=True, help="Print the whole report: largest costs, what was read, all sources.")
@strict_option
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
      shardwright plan "Llama-3.1-8B on H100, 1k/256, TTFT under 1 s" --rate-curve 0-8=1,8-18=12,18-24=4

    The exit status is 0 with a valid plan, 1 without, or with --strict where words were not acted on. Where --proposer
    llm asked for a language model that did not answer it is 3, beside the plan of the built-in proposer; with auto the
    first lines say so, and it is 1 with --strict.
    """
    check_places({"-o": output, "--transcript": options["transcript"]}, [*brief, options["mix"], _named(options)])
    agent, reader = agent_of(options)
    if agent is not None:
        words = request_text(request)
        request = () if words is None else (words,)
    intent = asked(request, brief, calibration, options, "plan", reader)
    mix: Path | None = options["mix"]
    if mix is not None:
        if intent.day is not None:
            raise click.UsageError(
                "--mix is planned for the shares of its kinds, not for the rates of a day; leave one out"
            )
        with within(options["time_limit"]):
            return deliver_mix(
                intent, mix, top=MIXES_SHOWN, output_format=output_format, is_strict=options["strict"], output=output
            )
    if agent is not None:
        status = _by_model(agent, intent, request, output, output_format, reader, options)
        return status or int(options["strict"] and bool(intent.unread))
    if options["transcript"] is not None:
        click.echo("shardwright plan: no transcript is written: no language model is asked", err=True)
    from ..pipeline import plan_intent

    with within(options["time_limit"]):
        result = plan_intent(intent, keep_stated=not brief)
    _deliver(result, output, output_format, is_whole=options["full"])
    return result.exit_status or int(options["strict"] and _is_short(result))


def _named(options: dict[str, Any]) -> Path | None:
    """The model's name, which may be the path of a config."""
    return None if options["model"] is None else Path(options["model"])


def _by_model(
    agent: Agent,
    intent: Intent,
    request: tuple[str, ...],
    output: Path | None,
    output_format: str,
    reader: ModelReader | None,
    options: dict[str, Any],
) -> int:
    """Plan with a language model; if it does not answer, say so beside the plan.

    Raises:
        ServiceError: it did not, and nobody but a model was to propose.
        InputError: the transcript could not be written.
    """
    result = agent.run_intent(intent, request_text(request) or "", reader)
    _deliver(result, output, output_format, is_whole=options["full"])
    use = None if result.report is None else result.report.model_use
    if use is None:
        return result.exit_status
    silence = use.silence
    if use.transcript_failure is not None:
        raise InputError("; ".join(filter(None, (use.transcript_failure, silence))))
    if silence is not None and options["proposer"] == "llm":
        raise ServiceError(silence)
    if silence is not None:
        click.echo(f"shardwright plan: {one_line(silence)}", err=True)
    return result.exit_status or int(options["strict"] and (silence is not None or _is_short(result)))


def _is_short(result: PlanResult) -> bool:
    """Whether something that was asked for is not done: not acted on, or served by an engine that does not start."""
    unheld = None if result.estimate is None else result.estimate.memory.unheld_request
    return unheld is not None or bool(result.report is not None and result.report.not_acted_on)


def _deliver(result: PlanResult, output: Path | None, output_format: str, *, is_whole: bool) -> None:
    from ..report.plan import render_plan

    document = result.plan.model_dump_json(indent=2) + "\n" if result.plan is not None else None
    write_saved(result, output_format, render_plan, output, document, is_whole=is_whole)
