"""`sweep`: every model on every cluster under every workload of a file, as a table."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from .documents import title_of
from .flags import COUNT, DASHED_INPUT, FILE, TEXT, output_format, own_calibration, time_limit_option
from .online_flag import online_option
from .progress import progress_bar
from .streams import STANDARD, check_places, read_stdin, write_answer, write_files

if TYPE_CHECKING:
    from ..sweep.document import Sweep
    from ..sweep.run import Running, SweepResult


@click.command("sweep", short_help="Search many models on many clusters under many workloads.")
@click.argument("document", metavar="FILE", type=DASHED_INPUT)
@click.option("-o", "--output", type=FILE, help="The table: FILE.csv or FILE.parquet.")
@click.option("--jobs", type=COUNT, help="Processes on this machine.  [default: one for each core]")
@click.option(
    "--ray",
    type=TEXT,
    is_flag=False,
    flag_value="auto",
    metavar="[ADDRESS]",
    help="Run on a Ray cluster: the one running here, or that at ADDRESS. Put it behind FILE.",
)
@click.option("--plot", type=FILE, help="Draw it: FILE.svg or FILE.png.")
@click.option("--fresh", is_flag=True, help="Begin anew: keep nothing of an earlier run.")
@own_calibration
@time_limit_option(" each case")
@online_option
@output_format
def sweep_command(
    document: Path,
    output: Path | None,
    jobs: int | None,
    ray: str | None,
    plot: Path | None,
    fresh: bool,
    calibration: Path | None,
    time_limit: float,
    output_format: str,
) -> int:
    """Search the best strategy for every model, cluster and workload that FILE (YAML or JSON) lists.

    \b
      models: [llama-3.1-70b, ./my-model/config.json]
      hardware: ["1x8:h100-sxm", "2x8:h200-sxm"]
      workloads:
        - {name: chat, input_tokens: 2048, output_tokens: 256, objective: latency}
        - {name: batch, input_tokens: 8192, output_tokens: 1024, objective: throughput, tpot_ms_max: 50}
      precision: [bf16, fp8]        # as the checkpoint where left out

    Also relaxations, disaggregated, engine, memory_utilization. Finished cases are kept in OUTPUT.journal: the same
    call goes on where an earlier one ended. Exit 1 where not one case has a plan.
    """
    if jobs is not None and ray is not None:
        raise click.UsageError("--jobs is of this machine, --ray of a cluster: give one of the two")
    sweep = _read(document, calibration)
    _check(output, plot, ray, sweep)
    from ..sweep.run import Running

    result = _run(sweep, Running(jobs=jobs, ray=ray, time_limit_s=time_limit), output, fresh=fresh)
    contents: dict[Path, bytes] = {}
    if output is not None:
        from ..sweep.table import check_ending, table_bytes

        contents[output] = table_bytes(result.rows, check_ending(output))
    if plot is not None:
        from ..report.sweep_plot import sweep_picture

        contents[plot] = sweep_picture(result.rows, plot.suffix.lower())

    def report(unwritten: frozenset[Path]) -> None:
        from ..report.sweep import render_sweep

        saved_as = None if output is None or output in unwritten else title_of(output)
        write_answer(result, output_format, render_sweep, saved_as=saved_as)

    write_files(contents, report)
    return 0 if result.feasible else 1


def _read(document: Path, calibration: Path | None) -> Sweep:
    from ..sweep.document import MAX_FILE_BYTES, read_sweep, read_sweep_file

    if str(document) == STANDARD:
        sweep = read_sweep(read_stdin(MAX_FILE_BYTES), title_of(document))
    else:
        sweep = read_sweep_file(document)
    if calibration is None:
        return sweep
    from ...tools.calibration.custom import read_calibration

    return replace(sweep, calibration=read_calibration(calibration))


def _check(output: Path | None, plot: Path | None, ray: str | None, sweep: Sweep) -> None:
    """Refuse now what would be refused after hours of work."""
    check_places({"-o": output, "--plot": plot})
    if output is not None:
        from ..sweep.table import check_ending

        check_ending(output)
    if plot is not None:
        from ..report.pictures import ready_to_plot
        from ..report.sweep_plot import check_size

        ready_to_plot(plot)
        sizes = [len({getattr(case, name) for case in sweep.cases}) for name in ("model", "hardware", "workload")]
        check_size(*sizes)
    if ray is not None:
        from ..sweep.ray_cluster import ray_library

        ray_library()


def _run(sweep: Sweep, running: Running, output: Path | None, *, fresh: bool) -> SweepResult:
    from ..sweep.run import journal_of, run_sweep, sweep_journal

    with ExitStack() as stack:
        journal = None
        if output is not None:
            journal = stack.enter_context(sweep_journal(sweep, journal_of(output), fresh=fresh))
            if journal.changed:
                kept = sum(key in journal.rows for key in sweep.keys)
                click.echo(f"the sweep is not that of {journal.path}: {kept:,} of its cases are kept", err=True)
        try:
            with progress_bar(len(sweep.cases)) as progress:
                return run_sweep(sweep, running, journal=journal, progress=progress)
        except KeyboardInterrupt:
            if journal is None:
                raise
            kept = f"{len(journal.rows):,} finished cases are kept in {journal.path}: the same call goes on from there"
            raise KeyboardInterrupt(kept) from None
