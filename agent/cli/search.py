"""`search`: all legal strategies ranked for the objective, the Pareto front, and why the others lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..runs.time_limit import within
from .asking import asked, asks
from .endpoint_flags import endpoint_options
from .flags import COUNT, FILE, output_format, strict_option, time_limit_option
from .mixing import deliver_mix, mix_option
from .proposing import reader_of, reader_option
from .streams import check_places, write_answer, write_files

if TYPE_CHECKING:
    from ..search_results import SearchAnswer

DEFAULT_TOP = 10


@click.command("search", short_help="Rank all legal strategies; the Pareto front; why the others lost.")
@asks
@endpoint_options
@reader_option
@click.option(
    "--top",
    type=COUNT,
    help=f"How many strategies to show ({DEFAULT_TOP} where left out; JSON has all that are listed).",
)
@click.option(
    "--sensitivity", is_flag=True, help="Search again for what flips the answer; takes several times as long."
)
@click.option(
    "--plot",
    type=FILE,
    metavar="FILE",
    help="Draw the Pareto front: FILE.svg or FILE.png. Needs matplotlib: pip install 'shardwright[plot]'.",
)
@mix_option
@time_limit_option()
@strict_option
@output_format
def search_command(
    request: tuple[str, ...],
    brief: tuple[Path, ...],
    calibration: Path | None,
    output_format: str,
    mix: Path | None,
    plot: Path | None,
    time_limit: float,
    **options: Any,
) -> int:
    """Rank all legal strategies: REQUEST in words (English or Chinese), a brief, options, or all of them, as for plan.

    Exit 1 where no strategy holds the limits; the report then says which binds, and what would do.

    \b
      shardwright search "DeepSeek-V3 on 16 H200, 4k/1k, best throughput, TPOT under 50 ms"
      shardwright search --model llama-3.1-70b --hardware 1x8:h100-sxm --plot front.svg --sensitivity
    """
    if plot is not None:
        from ..report.pictures import ready_to_plot

        ready_to_plot(plot)
    check_places({"--plot": plot}, [*brief, mix])
    intent = asked(request, brief, calibration, options, "search for", reader_of(options))
    if mix is not None:
        with within(time_limit):
            top, is_strict = options["top"] or DEFAULT_TOP, options["strict"]
            return deliver_mix(intent, mix, top=top, output_format=output_format, is_strict=is_strict)
    from ..search_api import search_intent

    # The picture shows every strategy, whatever the table is cut to.
    with within(time_limit):
        answer = search_intent(intent, sensitivity=options["sensitivity"])
    pictures = {} if plot is None else _drawn(answer, plot)

    def report(unwritten: frozenset[Path]) -> None:
        _deliver(answer, options["top"], output_format, next(iter(pictures.keys() - unwritten), None))

    write_files(pictures, report)
    return answer.exit_status or int(options["strict"] and bool(answer.not_acted_on))


def _drawn(answer: SearchAnswer, plot: Path) -> dict[Path, bytes]:
    """The picture by its path, where there is anything to draw."""
    from ..report.search_plot import front_picture

    picture = front_picture(answer, plot.suffix.lower())
    if picture is None:
        click.echo("shardwright search: no strategy fits into memory: there is nothing to draw", err=True)
        return {}
    return {plot: picture}


def _deliver(answer: SearchAnswer, top: int | None, output_format: str, plotted: Path | None) -> None:
    from ..report.search import render_search
    from ..search_api import leading

    if output_format == "json" and top is not None:
        answer = leading(answer, top)
    write_answer(answer, output_format, render_search, top=top or DEFAULT_TOP, plotted=plotted)
